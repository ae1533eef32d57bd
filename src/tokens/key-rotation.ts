/**
 * The rotation of the signing keys. A next key is published before it signs, so that whoever keeps our key set for a while knows it
 * by then, and every replica does; one that signs no more verifies until the last of its tokens has expired, and of it only the public
 * half is kept. One replica does this; should two, the Secret's resourceVersion lets one of them.
 */
import type { PlatformConfiguration } from '../config/schema.ts';
import { parseMilliseconds, repeat, rfc3339, type Clock } from '../runtime/time.ts';
import type { Logger } from '../runtime/logger.ts';
import type { KeyData } from './key-secret.ts';
import { keyNames, retiredOf, retiring, type RetiredKey, type SigningKeys } from './signing-keys.ts';

type Settings = Pick<PlatformConfiguration['authentication'], 'keyRotation' | 'accessTokenMaxAge' | 'maximumClockSkew'>;

/** The command, on the Secret: another value than before begins a rotation. */
const command = 'platform.io/rotate-keys';
/** In the Secret: since when the keys sign, when the next ones take over, and the last command that was heeded. */
interface Plan {
  readonly since?: string;
  readonly nextFrom?: string;
  readonly command?: string;
}

/** The key set may be kept for five minutes, and a replica may be behind. */
const lead = 10 * 60_000;
/** A replica that was behind may have signed with a key a little longer. */
const margin = 5 * 60_000;
/** Public halves kept: who rotates all the time makes the Secret and the key set no larger. */
const maxRetired = 16;
const interval = 5_000;

interface KeyRotationOptions {
  readonly keys: SigningKeys;
  readonly settings: () => Settings;
  /** Whether this replica rotates the keys. */
  readonly isOurs: () => boolean;
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
    void repeat(this.#options.clock, interval, this.#stopped.signal, () => this.#look());
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #look(): Promise<void> {
    const { keys, isOurs, log } = this.#options;
    if (!isOurs()) return;
    try {
      await keys.change((data, metadata) => {
        const { creationTimestamp = '', annotations = {} } = metadata;
        return this.#next(data, parseMilliseconds(creationTimestamp), annotations[command]);
      });
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.error('the signing keys cannot be rotated now', { error });
      this.#isFailing = true;
    }
  }

  /** What the Secret shall hold; undefined if all is as it should be. `created` in milliseconds since the epoch. */
  async #next(data: KeyData, created: number, wanted: string | undefined): Promise<KeyData | undefined> {
    const { keys, settings, clock, log } = this.#options;
    const now = clock.now();
    const { keyRotation, accessTokenMaxAge, maximumClockSkew } = settings();
    const plan = planOf(data);
    const all = retiredOf(data);
    const retired = all.filter(({ until }) => parseMilliseconds(until) > now);
    const isAsked = wanted !== undefined && wanted !== plan.command;

    if (plan.nextFrom !== undefined) {
      // Also if that is no time at all.
      if (!(now < parseMilliseconds(plan.nextFrom))) {
        const until = rfc3339(now + accessTokenMaxAge + maximumClockSkew + margin);
        log.info('the next signing keys sign now');
        return {
          ...Object.fromEntries(keyNames.map(({ current, next }) => [current, data[next] ?? Buffer.alloc(0)])),
          ...written([...retired, ...retiring(data, until)], {
            ...plan,
            since: rfc3339(now),
            nextFrom: undefined,
          }),
        };
      }
    } else if (retired.length + keyNames.length <= maxRetired) {
      const since = plan.since === undefined ? created : parseMilliseconds(plan.since);
      if (isAsked || now >= since + keyRotation) {
        log.info('the next signing keys are published', { because: isAsked ? 'asked for' : 'of their age' });
        return {
          ...data,
          ...(await keys.make('next')),
          ...written(retired, {
            since: rfc3339(since),
            command: wanted ?? plan.command,
            nextFrom: rfc3339(now + lead),
          }),
        };
      }
    }
    return retired.length === all.length ? undefined : { ...data, ...written(retired, plan) };
  }
}

const planOf = (data: KeyData): Plan => JSON.parse(data['rotation.json']?.toString('utf8') ?? '{}') as Plan;

const written = (retired: readonly RetiredKey[], plan: { [key in keyof Plan]: Plan[key] | undefined }): KeyData => ({
  'retired.json': Buffer.from(JSON.stringify(retired)),
  'rotation.json': Buffer.from(JSON.stringify(plan)),
});
