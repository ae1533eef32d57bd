/**
 * Rotates the signing keys. The next keys are published before they sign, so that every replica and every client that
 * caches the key set knows them in time. A retired key verifies tokens until the last token that it signed has expired.
 * Only the public half of a retired key is kept. One replica rotates the keys. If two replicas try, only one write
 * succeeds, because writes check the resourceVersion of the Secret.
 */
import type { PlatformConfiguration } from '../config/schema.ts';
import { parseMilliseconds, repeat, rfc3339, type Clock } from '../runtime/time.ts';
import type { Logger } from '../runtime/logger.ts';
import type { KeyData } from './key-secret.ts';
import { keyNames, retire, retiredOf, type RetiredKey, type SigningKeys } from './signing-keys.ts';

type Settings = Pick<PlatformConfiguration['authentication'], 'keyRotation' | 'accessTokenMaxAge' | 'maximumClockSkew'>;

/** Annotation of the Secret. A changed value starts a rotation. */
const command = 'platform.io/rotate-keys';
/** State of the rotation, stored in the Secret. */
interface Plan {
  /** Time when the current keys started to sign. */
  readonly since?: string;
  /** Time when the next keys start to sign. */
  readonly nextFrom?: string;
  /** Last command that was executed. */
  readonly command?: string;
}

/**
 * Milliseconds between publication and first use of a key. Clients cache the key set for five minutes, and a replica
 * may lag behind.
 */
const lead = 10 * 60_000;
/** Milliseconds for which a replica that lags behind may still sign with a retired key. */
const margin = 5 * 60_000;
/** Maximum number of retired keys, so that frequent rotations do not grow the Secret and the key set indefinitely. */
const maxRetired = 16;
const interval = 5_000;

interface KeyRotationOptions {
  readonly keys: SigningKeys;
  readonly settings: () => Settings;
  /** Returns true if this replica rotates the keys. */
  readonly isLeader: () => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

export class KeyRotation {
  readonly #options: KeyRotationOptions;
  readonly #stopped = new AbortController();
  #isFailing = false;

  constructor(options: KeyRotationOptions) {
    this.#options = options;
  }

  start(): void {
    void repeat(this.#options.clock, interval, this.#stopped.signal, () => this.#rotateIfDue());
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #rotateIfDue(): Promise<void> {
    const { keys, isLeader, log } = this.#options;
    if (!isLeader()) return;
    try {
      await keys.change((data, metadata) => {
        const { creationTimestamp = '', annotations = {} } = metadata;
        return this.#next(data, parseMilliseconds(creationTimestamp), annotations[command]);
      });
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.error('signing key rotation failed', { error });
      this.#isFailing = true;
    }
  }

  /** Returns the new data of the Secret; undefined if nothing is due. `created` is in milliseconds since the epoch. */
  async #next(data: KeyData, created: number, requested: string | undefined): Promise<KeyData | undefined> {
    const { keys, settings, clock, log } = this.#options;
    const now = clock.now();
    const { keyRotation, accessTokenMaxAge, maximumClockSkew } = settings();
    const plan = planOf(data);
    const all = retiredOf(data);
    const retired = all.filter(({ until }) => parseMilliseconds(until) > now);
    const isRequested = requested !== undefined && requested !== plan.command;

    if (plan.nextFrom !== undefined) {
      // An invalid time counts as reached, because no comparison with NaN is true.
      if (!(now < parseMilliseconds(plan.nextFrom))) {
        const until = rfc3339(now + accessTokenMaxAge + maximumClockSkew + margin);
        log.info('signing keys rotated');
        return {
          ...Object.fromEntries(keyNames.map(({ current, next }) => [current, data[next] ?? Buffer.alloc(0)])),
          ...encodeRotation([...retired, ...retire(data, until)], {
            ...plan,
            since: rfc3339(now),
            nextFrom: undefined,
          }),
        };
      }
    } else if (retired.length + keyNames.length <= maxRetired) {
      const since = plan.since === undefined ? created : parseMilliseconds(plan.since);
      if (isRequested || now >= since + keyRotation) {
        log.info('next signing keys published', { reason: isRequested ? 'requested' : 'age' });
        return {
          ...data,
          ...(await keys.make('next')),
          ...encodeRotation(retired, {
            since: rfc3339(since),
            command: requested ?? plan.command,
            nextFrom: rfc3339(now + lead),
          }),
        };
      }
    }
    return retired.length === all.length ? undefined : { ...data, ...encodeRotation(retired, plan) };
  }
}

const planOf = (data: KeyData): Plan => JSON.parse(data['rotation.json']?.toString('utf8') ?? '{}') as Plan;

const encodeRotation = (
  retired: readonly RetiredKey[],
  plan: { [key in keyof Plan]: Plan[key] | undefined },
): KeyData => ({
  'retired.json': Buffer.from(JSON.stringify(retired)),
  'rotation.json': Buffer.from(JSON.stringify(plan)),
});
