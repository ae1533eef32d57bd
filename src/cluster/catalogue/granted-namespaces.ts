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
  readonly resourceVersion: number;
  /** `u:` and a username, or `g:` and the name of a group. */
  readonly subjects: readonly string[];
}

const path = '/apis/rbac.authorization.k8s.io/v1/rolebindings';

/**
 * Namespaces in alphabetical order, each with the sum of the resourceVersions of its bindings. The sum changes when one
 * of these bindings is added, changed or deleted.
 */
export type Granted = ReadonlyMap<string, number>;

const none: Granted = new Map();

function decode({ metadata: { namespace = '', name, resourceVersion }, subjects = [] }: RoleBinding): Binding {
  const keys = subjects.flatMap((subject) => {
    const { kind, name: subjectName = '' } = subject;
    if (kind === 'User') return [`u:${subjectName}`];
    if (kind === 'Group') return [`g:${subjectName}`];
    return kind === 'ServiceAccount'
      ? [`u:system:serviceaccount:${subject.namespace ?? namespace}:${subjectName}`]
      : [];
  });
  return { namespace, name, resourceVersion: Number(resourceVersion), subjects: [...new Set(keys)] };
}

export class GrantedNamespaces {
  readonly #reflector: Reflector<Binding>;
  readonly #bindings = new Map<string, Binding>();
  /** Namespaces by subject, each with the sum of the resourceVersions of its bindings. */
  readonly #bySubject = new Map<string, Map<string, number>>();
  /** Sorted namespaces by subject, until a binding of the subject changes. */
  readonly #sorted = new Map<string, Granted>();
  /** Namespaces of users with several subjects, and the namespaces of these subjects. */
  readonly #merged = new WeakMap<object, { readonly of: readonly Granted[]; readonly granted: Granted }>();

  constructor(options: { client: Pick<KubeClient, 'stream'>; log: Logger; clock: Clock }) {
    this.#reflector = new Reflector<Binding>({
      ...options,
      path,
      decode,
      replace: (items) => {
        this.#bindings.clear();
        this.#bySubject.clear();
        this.#sorted.clear();
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
   * Returns the namespaces in which a binding names the user, a group of the user or the user's ServiceAccount. Returns
   * the same map for the same `user` until one of these bindings changes.
   */
  of(user: { readonly username: string; readonly groups: readonly string[] }): Granted {
    const { username, groups } = user;
    const found: Granted[] = [];
    for (const subject of new Set([`u:${username}`, ...groups.map((group) => `g:${group}`)])) {
      const granted = this.#of(subject);
      if (granted !== undefined) found.push(granted);
    }
    const [first = none] = found;
    if (found.length < 2) return first;
    const before = this.#merged.get(user);
    if (before?.of.length === found.length && before.of.every((one, index) => one === found[index]))
      return before.granted;
    const sums = new Map<string, number>();
    for (const [namespace, sum] of found.flatMap((one) => [...one]))
      sums.set(namespace, (sums.get(namespace) ?? 0) + sum);
    const granted = sorted(sums);
    this.#merged.set(user, { of: found, granted });
    return granted;
  }

  #of(subject: string): Granted | undefined {
    const namespaces = this.#bySubject.get(subject);
    if (namespaces === undefined) return undefined;
    const granted = this.#sorted.get(subject) ?? sorted(namespaces);
    this.#sorted.set(subject, granted);
    return granted;
  }

  #add(binding: Binding): void {
    const { namespace, name, resourceVersion, subjects } = binding;
    this.#bindings.set(`${namespace}/${name}`, binding);
    for (const subject of subjects) {
      const namespaces = this.#bySubject.get(subject) ?? new Map<string, number>();
      this.#bySubject.set(subject, namespaces.set(namespace, (namespaces.get(namespace) ?? 0) + resourceVersion));
      this.#sorted.delete(subject);
    }
  }

  #remove({ namespace, name }: Binding): void {
    const key = `${namespace}/${name}`;
    const before = this.#bindings.get(key);
    if (before === undefined) return;
    this.#bindings.delete(key);
    for (const subject of before.subjects) {
      const namespaces = this.#bySubject.get(subject) as Map<string, number>;
      const left = (namespaces.get(namespace) ?? 0) - before.resourceVersion;
      if (left > 0) namespaces.set(namespace, left);
      else namespaces.delete(namespace);
      if (namespaces.size === 0) this.#bySubject.delete(subject);
      this.#sorted.delete(subject);
    }
  }
}

const sorted = (namespaces: ReadonlyMap<string, number>): Granted =>
  new Map([...namespaces].toSorted(([a], [b]) => (a < b ? -1 : 1)));
