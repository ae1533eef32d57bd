/**
 * Lets failed logins count on every replica, so that many replicas are not many times as many guesses: each writes what it has counted
 * into an object of its own and watches those of the others. So nobody waits for anybody, no two write the same object, and however many
 * names are guessed at a replica writes once a second. Names that do not exist travel like those that do: else what another replica
 * answers would tell them apart. An object outlives its replica until what is in it is too old to count.
 */
import { randomUUID } from 'node:crypto';
import { loginFailuresPath } from '../config/names.ts';
import type { KubeClient } from '../kube/client.ts';
import { rfc3339, systemClock, type Clock } from '../kube/clock.ts';
import { createInformer, type Informer, type KubeObject } from '../kube/informer.ts';
import { isKubeError } from '../kube/kube-error.ts';
import type { Logger } from '../logger.ts';
import type { LoginLimiter, MarkedChain } from './login-limit.ts';
import { longestAnswer, WriteBehind } from './write-behind.ts';

interface LoginFailureTable extends KubeObject {
  readonly status: {
    readonly failures: readonly {
      readonly key: string;
      readonly count: number;
      /** RFC 3339, these two. */
      readonly last?: string;
      readonly forgiven?: string;
    }[];
  };
}

/** Of pairs and users together, in one object. */
const most = 1_000;
const sweepInterval = 60_000;

export class SharedFailures {
  readonly #client: Pick<KubeClient, 'json'>;
  readonly #path: string;
  readonly #limiter: Pick<LoginLimiter, 'onChange' | 'shared' | 'learn' | 'forget'>;
  readonly #within: () => number;
  readonly #maySweep: () => boolean;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #informer: Informer<LoginFailureTable>;
  readonly #writes: WriteBehind<true>;
  /** Of the object that this replica writes. */
  readonly #name = randomUUID();
  #stopSweeping: () => void = () => undefined;
  #isStopped = false;

  constructor(options: {
    client: KubeClient;
    namespace: string;
    limiter: Pick<LoginLimiter, 'onChange' | 'shared' | 'learn' | 'forget'>;
    /** How long a failure counts, in milliseconds. */
    within: () => number;
    /** Whether it is for this replica to delete what is over. */
    maySweep: () => boolean;
    clock?: Clock;
    log: Logger;
  }) {
    const { client, clock = systemClock, log } = options;
    this.#client = client;
    this.#path = loginFailuresPath(options.namespace);
    this.#limiter = options.limiter;
    this.#within = options.within;
    this.#maySweep = options.maySweep;
    this.#clock = clock;
    this.#log = log;
    this.#informer = createInformer<LoginFailureTable>({ client, path: this.#path, log, clock });
    this.#informer.onChange((type, { metadata: { name }, status }) => {
      if (name === this.#name) return;
      if (type === 'DELETED') this.#limiter.forget(name);
      else this.#limiter.learn(name, status.failures.map(chainOf));
    });
    this.#writes = new WriteBehind<true>({
      what: 'the failed logins',
      write: () => this.#write(),
      merge: () => true,
      clock,
      log,
    });
  }

  start(): void {
    this.#limiter.onChange(() => this.#writes.put(this.#name, true));
    this.#informer.start();
    this.#sweepLater();
  }

  /** What the others do not know yet is written first. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopSweeping();
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
    const signal = AbortSignal.timeout(longestAnswer);
    const status = { failures };
    try {
      const contentType = 'application/merge-patch+json';
      await this.#client.json(`${this.#path}/${this.#name}`, {
        method: 'PATCH',
        contentType,
        body: { status },
        signal,
      });
    } catch (error) {
      if (!isKubeError(error, 404)) throw error;
      const type = { apiVersion: 'iam.platform.io/v1alpha2', kind: 'LoginFailureTable' };
      const body = { ...type, metadata: { name: this.#name }, status };
      await this.#client.json(this.#path, { method: 'POST', body, signal });
    }
  }

  #sweepLater(): void {
    this.#stopSweeping = this.#clock.after(sweepInterval * (0.5 + this.#clock.random()), () => {
      void this.#sweep()
        .catch((error: unknown) => this.#log.warn('failed logins could not be swept', { error }))
        .finally(() => {
          if (!this.#isStopped) this.#sweepLater();
        });
    });
  }

  async #sweep(): Promise<void> {
    if (!this.#maySweep()) return;
    for (const { metadata, status } of this.#informer.list()) {
      const times = status.failures.map(chainOf).map(({ last, forgiven = 0 }) => Math.max(last, forgiven));
      if (this.#isStopped) return;
      if (this.#clock.now() - Math.max(0, ...times) >= this.#within()) await this.#delete(metadata);
    }
  }

  /** Unless it has been written meanwhile. */
  async #delete({ name, resourceVersion }: KubeObject['metadata']): Promise<void> {
    try {
      await this.#client.json(`${this.#path}/${name}`, {
        method: 'DELETE',
        body: { preconditions: { resourceVersion } },
        signal: AbortSignal.timeout(longestAnswer),
      });
    } catch (error) {
      if (!isKubeError(error, 404) && !isKubeError(error, 409)) throw error;
    }
  }
}

type Entry = LoginFailureTable['status']['failures'][number];

const chainOf = ({ key, count, last, forgiven }: Entry): MarkedChain => ({
  key,
  count,
  last: last === undefined ? 0 : Date.parse(last),
  ...(forgiven === undefined ? {} : { forgiven: Date.parse(forgiven) }),
});
