/**
 * Shares failed logins between replicas, so that more replicas do not allow more guesses. Each replica writes its
 * counts to its own object and watches the objects of the others. No replica waits for another, no two write the same
 * object, and a replica writes at most once a second, however many names are guessed. Failures with nonexistent names
 * are shared too: otherwise the responses of other replicas would reveal which names exist. An object outlives its
 * replica until its failures are too old to count.
 *
 * Familiar addresses are in one object to which all replicas add missing entries. Each pair of user and address costs
 * at most one small write per day. The object outlives all replicas.
 */
import { randomUUID } from 'node:crypto';
import { iamAPIVersion, loginFailuresPath } from '../../config/names.ts';
import type { KubeClient } from '../../cluster/client/client.ts';
import { parseMilliseconds, repeat, rfc3339, type Clock } from '../../runtime/time.ts';
import { Informer } from '../../cluster/cache/informer.ts';
import type { KubeObject } from '../../cluster/client/kube-object.ts';
import { Objects } from '../../cluster/objects.ts';
import type { Logger } from '../../runtime/logger.ts';
import { familiarFor, type LoginLimiter, type MarkedChain } from './limit.ts';
import { WriteBehind } from '../../cluster/write-behind.ts';

interface LoginFailureTable extends KubeObject {
  readonly status: {
    readonly failures: readonly {
      readonly key: string;
      readonly count: number;
      /** Time of the last failure in RFC 3339 format. */
      readonly last?: string;
      /** Time up to which failures no longer count, in RFC 3339 format. */
      readonly forgiven?: string;
    }[];
    /** Time of the last login by pair of user and address, in RFC 3339 format. */
    readonly familiar?: Readonly<Record<string, string>>;
  };
}

type Limiter = Pick<LoginLimiter, 'onChange' | 'shared' | 'setPeer' | 'removePeer' | 'familiar' | 'addFamiliar'>;

/** Name of the object that all replicas share. */
const familiarName = 'familiar';
/** Maximum number of entries in the shared object. */
const maxFamiliar = 2_000;

/** Maximum number of pairs and users in the object of a replica. */
const maxFailures = 1_000;
const sweepInterval = 60_000;

export class SharedFailures {
  readonly #objects: Objects<LoginFailureTable>;
  readonly #limiter: Limiter;
  readonly #within: () => number;
  readonly #maySweep: () => boolean;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #informer: Informer<LoginFailureTable>;
  readonly #writes: WriteBehind<true>;
  /** Name of the object that this replica writes. */
  readonly #name = randomUUID();
  /** Content of the shared object. */
  #familiar: ReadonlyMap<string, number> = new Map();
  readonly #stopped = new AbortController();

  constructor(options: {
    client: KubeClient;
    namespace: string;
    limiter: Limiter;
    /** Returns the milliseconds for which a failure counts. */
    within: () => number;
    /** Returns whether this replica deletes expired objects. */
    maySweep: () => boolean;
    clock: Clock;
    log: Logger;
  }) {
    const { client, clock, log } = options;
    const path = loginFailuresPath(options.namespace);
    this.#objects = new Objects(client, path);
    this.#limiter = options.limiter;
    this.#within = options.within;
    this.#maySweep = options.maySweep;
    this.#clock = clock;
    this.#log = log;
    this.#informer = new Informer<LoginFailureTable>({ client, path, log, clock });
    this.#informer.onChange((type, { metadata: { name }, status }) => {
      if (name === this.#name) return;
      if (name === familiarName) {
        this.#familiar = new Map(type === 'DELETED' ? [] : familiarOf(status));
        this.#limiter.addFamiliar(this.#familiar);
        return;
      }
      if (type === 'DELETED') this.#limiter.removePeer(name);
      else this.#limiter.setPeer(name, status.failures.map(chainOf));
    });
    this.#writes = new WriteBehind<true>({
      what: 'failed logins',
      write: (name) => (name === familiarName ? this.#writeFamiliar() : this.#write()),
      merge: () => true,
      clock,
      log,
    });
  }

  start(): void {
    this.#limiter.onChange((what) => this.#writes.put(what === 'familiar' ? familiarName : this.#name, true));
    this.#informer.start();
    void repeat(this.#clock, sweepInterval, this.#stopped.signal, () =>
      this.#sweep().catch((error: unknown) => void this.#log.warn('deletion of old login failures failed', { error })),
    );
  }

  /** Writes pending failures, then stops. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#writes.stop();
    this.#informer.stop();
  }

  async #write(): Promise<void> {
    const failures = this.#limiter.shared(maxFailures).map(({ key, count, last, forgiven }) => ({
      key,
      count,
      ...(count === 0 ? {} : { last: rfc3339(last) }),
      ...(forgiven === undefined ? {} : { forgiven: rfc3339(forgiven) }),
    }));
    if (!(await this.#objects.patch(this.#name, { status: { failures } })))
      await this.#create(this.#name, { failures });
  }

  /** Adds missing entries to the shared object, and removes excess and outdated entries. */
  async #writeFamiliar(): Promise<void> {
    const before = this.#familiar;
    const all = new Map(before);
    for (const [key, at] of this.#limiter.familiar(maxFamiliar)) if (at > (all.get(key) ?? -Infinity)) all.set(key, at);
    const oldest = this.#clock.now() - familiarFor;
    const kept = new Map(
      [...all]
        .filter(([, at]) => at > oldest)
        .toSorted(([, a], [, b]) => b - a)
        .slice(0, maxFamiliar),
    );
    const added = Object.fromEntries(
      [...kept].filter(([key, at]) => before.get(key) !== at).map(([key, at]) => [key, rfc3339(at)]),
    );
    const gone = Object.fromEntries([...before.keys()].filter((key) => !kept.has(key)).map((key) => [key, null]));
    const patch = (): Promise<boolean> =>
      this.#objects.patch(familiarName, { status: { familiar: { ...added, ...gone } } });
    // If the object cannot be created, another replica has just created it.
    if (!(await patch()) && !(await this.#create(familiarName, { failures: [], familiar: added }))) await patch();
  }

  #create(name: string, status: LoginFailureTable['status']): Promise<boolean> {
    const type = { apiVersion: iamAPIVersion, kind: 'LoginFailureTable' };
    return this.#objects.create({ ...type, metadata: { name }, status });
  }

  async #sweep(): Promise<void> {
    if (!this.#maySweep()) return;
    for (const { metadata, status } of this.#informer.list()) {
      if (metadata.name === familiarName) continue;
      const times = status.failures.map(chainOf).map(({ last, forgiven = 0 }) => Math.max(last, forgiven));
      if (this.#stopped.signal.aborted) return;
      if (this.#clock.now() - Math.max(0, ...times) >= this.#within()) await this.#objects.delete(metadata);
    }
  }
}

const familiarOf = ({ familiar = {} }: LoginFailureTable['status']): [string, number][] =>
  Object.entries(familiar).map(([key, at]) => [key, parseMilliseconds(at)]);

type Entry = LoginFailureTable['status']['failures'][number];

const chainOf = ({ key, count, last, forgiven }: Entry): MarkedChain => ({
  key,
  count,
  last: last === undefined ? 0 : parseMilliseconds(last),
  ...(forgiven === undefined ? {} : { forgiven: parseMilliseconds(forgiven) }),
});
