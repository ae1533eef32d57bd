/**
 * Lets failed logins count on every replica, so that many replicas are not many times as many guesses: each writes what it has counted
 * into an object of its own and watches those of the others. So nobody waits for anybody, no two write the same object, and however many
 * names are guessed at a replica writes once a second. Names that do not exist travel like those that do: else what another replica
 * answers would tell them apart. An object outlives its replica until what is in it is too old to count.
 *
 * Where users have logged in all replicas write into one object, each what the others have not: for once a day and pair that is little,
 * and it outlives them all.
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
      /** RFC 3339, these two. */
      readonly last?: string;
      readonly forgiven?: string;
    }[];
    /** When who logged in where. RFC 3339. */
    readonly familiar?: Readonly<Record<string, string>>;
  };
}

type Limiter = Pick<LoginLimiter, 'onChange' | 'shared' | 'learn' | 'forget' | 'familiar' | 'meet'>;

/** The one object of all replicas. */
const familiarName = 'familiar';
/** In it. */
const maxFamiliar = 2_000;

/** Of pairs and users together, in one object. */
const most = 1_000;
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
  /** Of the object that this replica writes. */
  readonly #name = randomUUID();
  /** What stands there. */
  #familiar: ReadonlyMap<string, number> = new Map();
  readonly #stopped = new AbortController();

  constructor(options: {
    client: KubeClient;
    namespace: string;
    limiter: Limiter;
    /** How long a failure counts, in milliseconds. */
    within: () => number;
    /** Whether it is for this replica to delete what is over. */
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
        this.#limiter.meet(this.#familiar);
        return;
      }
      if (type === 'DELETED') this.#limiter.forget(name);
      else this.#limiter.learn(name, status.failures.map(chainOf));
    });
    this.#writes = new WriteBehind<true>({
      what: 'the failed logins',
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
      this.#sweep().catch((error: unknown) => void this.#log.warn('failed logins could not be swept', { error })),
    );
  }

  /** What the others do not know yet is written first. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#writes.stop();
    this.#informer.stop();
  }

  async #write(): Promise<void> {
    const failures = this.#limiter.shared(most).map(({ key, count, last, forgiven }) => ({
      key,
      count,
      ...(count === 0 ? {} : { last: rfc3339(last) }),
      ...(forgiven === undefined ? {} : { forgiven: rfc3339(forgiven) }),
    }));
    if (!(await this.#objects.patch(this.#name, { status: { failures } })))
      await this.#create(this.#name, { failures });
  }

  /** What is not there yet, and what is too much or too old. */
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
    // If it cannot be created, another replica has just done so.
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
