/**
 * Index of RBAC RoleBindings by subject: the namespaces in which a caller may have rights. A binding is not proof,
 * because its role may grant other rights: each namespace is confirmed by a review.
 */
import type { KubeClient } from '../client/client.ts';
import type { Clock } from '../../runtime/time.ts';
import type { KubeObject } from '../client/kube-object.ts';
import { Reflector } from '../cache/reflector.ts';
import type { Logger } from '../../runtime/logger.ts';

/** Fields of rbac.authorization.k8s.io/v1 RoleBinding that are used. */
interface RoleBinding extends KubeObject {
  readonly subjects?: readonly {
    readonly kind?: string;
    readonly name?: string;
    readonly namespace?: string;
  }[];
}

/** Indexed part of a RoleBinding. */
interface Binding {
  readonly namespace: string;
  readonly name: string;
  /** `u:` and a username, or `g:` and the name of a group. */
  readonly subjects: readonly string[];
}

const path = '/apis/rbac.authorization.k8s.io/v1/rolebindings';

function decode({ metadata: { namespace = '', name }, subjects = [] }: RoleBinding): Binding {
  const keys = subjects.flatMap((subject) => {
    const { kind, name: subjectName = '' } = subject;
    if (kind === 'User') return [`u:${subjectName}`];
    if (kind === 'Group') return [`g:${subjectName}`];
    return kind === 'ServiceAccount'
      ? [`u:system:serviceaccount:${subject.namespace ?? namespace}:${subjectName}`]
      : [];
  });
  return { namespace, name, subjects: [...new Set(keys)] };
}

export class GrantedNamespaces {
  readonly #reflector: Reflector<Binding>;
  readonly #bindings = new Map<string, Binding>();
  /** Namespaces by subject, each with the number of its bindings. */
  readonly #bySubject = new Map<string, Map<string, number>>();

  constructor(options: { client: Pick<KubeClient, 'stream'>; log: Logger; clock: Clock }) {
    this.#reflector = new Reflector<Binding>({
      ...options,
      path,
      decode,
      replace: (items) => {
        this.#bindings.clear();
        this.#bySubject.clear();
        for (const item of items) this.#add(item);
      },
      apply: (type, item) => {
        this.#remove(item);
        if (type !== 'DELETED') this.#add(item);
      },
    });
  }

  start(): void {
    this.#reflector.start();
  }

  stop(): void {
    this.#reflector.stop();
  }

  hasSynced(): boolean {
    return this.#reflector.hasSynced();
  }

  /**
   * Returns the namespaces in which a binding names the user, a group of the user or the user's ServiceAccount. Sorts
   * the namespaces.
   */
  of({ username, groups }: { readonly username: string; readonly groups: readonly string[] }): readonly string[] {
    const found = new Set<string>();
    for (const subject of [`u:${username}`, ...groups.map((group) => `g:${group}`)])
      for (const namespace of this.#bySubject.get(subject)?.keys() ?? []) found.add(namespace);
    return [...found].toSorted((a, b) => (a < b ? -1 : 1));
  }

  #add(binding: Binding): void {
    const { namespace, name, subjects } = binding;
    this.#bindings.set(`${namespace}/${name}`, binding);
    for (const subject of subjects) {
      const namespaces = this.#bySubject.get(subject) ?? new Map<string, number>();
      this.#bySubject.set(subject, namespaces.set(namespace, (namespaces.get(namespace) ?? 0) + 1));
    }
  }

  #remove({ namespace, name }: Binding): void {
    const key = `${namespace}/${name}`;
    const before = this.#bindings.get(key);
    if (before === undefined) return;
    this.#bindings.delete(key);
    for (const subject of before.subjects) {
      const namespaces = this.#bySubject.get(subject) as Map<string, number>;
      const left = (namespaces.get(namespace) ?? 0) - 1;
      if (left > 0) namespaces.set(namespace, left);
      else namespaces.delete(namespace);
      if (namespaces.size === 0) this.#bySubject.delete(subject);
    }
  }
}
