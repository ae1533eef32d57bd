/**
 * Index of RBAC RoleBindings by subject: the namespaces in which a caller may have rights. A binding is not proof,
 * because its role may grant other rights: each namespace is confirmed by a review.
 */
import { BoundedCache } from '../../runtime/bounded-cache.ts';
import type { Logger } from '../../runtime/logger.ts';
import { visitInSlices } from '../../runtime/slice.ts';
import type { Clock } from '../../runtime/time.ts';
import { Reflector } from '../cache/reflector.ts';
import type { KubeClient } from '../client/client.ts';
import type { KubeObject } from '../client/kube-object.ts';

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
  readonly resourceVersion: string;
  /** `u:` and a username, or `g:` and the name of a group. */
  readonly subjects: readonly string[];
}

const path = '/apis/rbac.authorization.k8s.io/v1/rolebindings';

/**
 * State of the RoleBindings in a namespace that name a caller. Equal states mean the same unchanged bindings: each
 * addition and change raises `lastChange`, and a deletion that does not raise `lastChange` reduces `count`.
 */
export interface Bindings {
  readonly count: number;
  /** Number of the last change. */
  readonly lastChange: number;
  /** Monotonic time of the last change, in milliseconds. */
  readonly changedAt: number;
}

export const sameBindings = (a: Bindings, b: Bindings): boolean => a.count === b.count && a.lastChange === b.lastChange;

/** Namespaces in which RoleBindings name a caller. */
export type Granted = ReadonlyMap<string, Bindings>;

const none: Granted = new Map();

function decode({ metadata: { namespace = '', name, resourceVersion = '' }, subjects = [] }: RoleBinding): Binding {
  const keys = subjects.flatMap((subject) => {
    const { kind, name: subjectName = '' } = subject;
    if (kind === 'User') return [`u:${subjectName}`];
    if (kind === 'Group') return [`g:${subjectName}`];
    return kind === 'ServiceAccount'
      ? [`u:system:serviceaccount:${subject.namespace ?? namespace}:${subjectName}`]
      : [];
  });
  return { namespace, name, resourceVersion, subjects: [...new Set(keys)] };
}

/** The namespaces of several subjects, and the union of these namespaces. */
interface Union {
  readonly of: readonly Granted[];
  readonly granted: Granted;
}

/** Approximate bytes of a namespace in a union, and in each map of which the union was made. */
const unionBytes = 110;
const copyBytes = 45;

export class GrantedNamespaces {
  readonly #reflector: Reflector<Binding>;
  /** Bindings by namespace and name. */
  readonly #bindings = new Map<string, Binding>();
  readonly #bySubject = new Map<string, Map<string, Bindings>>();
  /** Copies of the namespaces of a subject, until a binding of the subject changes. */
  readonly #copies = new Map<string, Granted>();
  /** Unions by subjects. Requests of a front proxy have no other object in common. */
  readonly #unions: BoundedCache<Union>;
  readonly #clock: Clock;
  #changes = 0;

  constructor(options: { client: Pick<KubeClient, 'stream'>; log: Logger; clock: Clock }) {
    this.#clock = options.clock;
    this.#unions = new BoundedCache({
      name: 'granted_namespaces',
      maxEntries: 20_000,
      maxBytes: 32 * 1024 * 1024,
      ttl: 10 * 60_000,
      renewsOnGet: true,
      sizeOf: ({ of, granted }) => of.reduce((sum, { size }) => sum + size * copyBytes, granted.size * unionBytes),
      clock: () => options.clock.monotonic(),
    });
    this.#reflector = new Reflector<Binding>({
      ...options,
      path,
      decode,
      replace: (items, _, stopped) => this.#replaceAll(items, stopped),
      apply: (type, item) => this.#replace(keyOf(item), type === 'DELETED' ? undefined : item),
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
   * the same map for the same names until one of these bindings changes.
   */
  of({ username, groups }: { readonly username: string; readonly groups: readonly string[] }): Granted {
    const subjects = [...new Set([`u:${username}`, ...groups.map((group) => `g:${group}`)])].filter((subject) =>
      this.#bySubject.has(subject),
    );
    const found = subjects.map((subject) => this.#of(subject));
    const [first = none] = found;
    if (found.length < 2) return first;
    const key = JSON.stringify(subjects);
    const before = this.#unions.get(key);
    if (before?.of.every((one, index) => one === found[index]) === true) return before.granted;
    const granted = unionOf(found);
    this.#unions.set(key, { of: found, granted });
    return granted;
  }

  #of(subject: string): Granted {
    const copy = this.#copies.get(subject) ?? new Map(this.#bySubject.get(subject));
    this.#copies.set(subject, copy);
    return copy;
  }

  /** Works in slices. Until the end, some bindings are from before the list: reviews confirm each namespace anyway. */
  async #replaceAll(items: readonly Binding[], signal: AbortSignal): Promise<void> {
    const gone = new Set(this.#bindings.keys());
    await visitInSlices(items, { signal }, (item) => {
      const key = keyOf(item);
      gone.delete(key);
      if (this.#bindings.get(key)?.resourceVersion !== item.resourceVersion) this.#replace(key, item);
    });
    await visitInSlices(gone, { signal }, (key) => this.#replace(key, undefined));
  }

  /** Replaces a binding. `binding` is undefined if it was deleted. */
  #replace(key: string, binding: Binding | undefined): void {
    this.#changes += 1;
    const before = this.#bindings.get(key);
    if (binding === undefined) this.#bindings.delete(key);
    else this.#bindings.set(key, binding);
    for (const subject of before?.subjects ?? []) this.#count(subject, before?.namespace ?? '', -1);
    for (const subject of binding?.subjects ?? []) this.#count(subject, binding?.namespace ?? '', 1);
  }

  #count(subject: string, namespace: string, more: number): void {
    const namespaces = this.#bySubject.get(subject) ?? new Map<string, Bindings>();
    const count = (namespaces.get(namespace)?.count ?? 0) + more;
    if (count > 0) namespaces.set(namespace, { count, lastChange: this.#changes, changedAt: this.#clock.monotonic() });
    else namespaces.delete(namespace);
    if (namespaces.size > 0) this.#bySubject.set(subject, namespaces);
    else this.#bySubject.delete(subject);
    this.#copies.delete(subject);
  }
}

const keyOf = ({ namespace, name }: Binding): string => `${namespace}/${name}`;

function unionOf([first, ...others]: readonly Granted[]): Granted {
  const union = new Map(first);
  for (const other of others)
    for (const [namespace, bindings] of other) {
      const before = union.get(namespace);
      const latest = before !== undefined && before.lastChange > bindings.lastChange ? before : bindings;
      union.set(namespace, { ...latest, count: bindings.count + (before?.count ?? 0) });
    }
  return union;
}
