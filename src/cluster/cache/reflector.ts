/**
 * Keeps a cache of one resource current: lists, then watches from the resourceVersion of the list, and repeats
 * (k8s.io/client-go tools/cache/reflector.go). Receivers get each object both as the bytes from kube-apiserver and
 * decoded.
 */
import type { Logger } from '../../runtime/logger.ts';
import { lists, watchEvents } from '../../runtime/metrics/definitions.ts';
import { Slice } from '../../runtime/slice.ts';
import { sleep, type Clock } from '../../runtime/time.ts';
import { withoutSpan } from '../../runtime/tracing.ts';
import { KubeError } from '../client/kube-error.ts';
import type { ChangeType, KubeObject } from '../client/kube-object.ts';
import { decodeObject, type ObjectMembers, type ObjectText } from './json-scan.ts';
import { parseWatchEvent, type SplitList } from './kube-responses.ts';
import { Interrupted, ListWatch, type Collection } from './list-watch.ts';

export interface ReflectorOptions<T> extends Collection {
  readonly log: Logger;
  readonly clock: Clock;
  /**
   * Duration of a watch in seconds, after which the watch is resumed. A resumed watch proves that no change was missed.
   * While kube-apiserver is healthy, `lastSignOfLife` is therefore never older than this duration. Default: 5 to 10
   * minutes, with a bookmark about once a minute.
   */
  readonly watchSeconds?: number;
  /** Member of the status that is not decoded. */
  readonly unreadStatus?: string | undefined;
  /**
   * Returns the item to cache for an object, which is decoded without managedFields. `bytes` is a view of a larger
   * buffer: copy bytes that the item retains. In the bytes of a listed object, kind and apiVersion may be missing.
   */
  decode(object: KubeObject, bytes: Buffer, members: ObjectMembers): T;
  /**
   * Replaces all items after a list. No change is applied until the returned promise resolves. `stopped` is aborted when
   * the reflector stops.
   */
  replace(items: readonly T[], resourceVersion: string, stopped: AbortSignal): Promise<void> | void;
  /**
   * Applies a change. Changes arrive in the order of their resourceVersions. For DELETED, `item` is the last version of
   * the object.
   */
  apply(type: ChangeType, item: T): void;
  /** Reports that nothing else has changed up to this resourceVersion. */
  bookmark?(resourceVersion: string): void;
}

/**
 * The request in flight, or the next one. A list is not streamed as the first events of a watch (sendInitialEvents),
 * because kube-apiserver ends such a watch if objects change while it sends them (docs/adr/0017-lists-in-pages.md).
 */
type State = 'list' | 'watch';

const minDelay = 500;
const maxDelay = 30_000;
/**
 * Milliseconds without data after which a request is interrupted. kube-apiserver sends a bookmark about once a minute
 * (bookmarkFrequency), unless the resource has never changed.
 */
const maxSilence = 75_000;
/**
 * Duration in seconds of a watch that gets a bookmark after one second: kube-apiserver sends the last bookmark 2 s
 * before the end.
 */
export const hurriedSeconds = 3;

/** Returns true for 410: kube-apiserver no longer has the resourceVersion, or the list that was read in pages. */
const isExpired = (error: unknown): boolean =>
  error instanceof KubeError && (error.code === 410 || error.reason === 'Expired');

/** Error for an event that could not be applied, so that the change is missing from the cache. */
class LostEvent extends Error {}

export class Reflector<T> {
  readonly #options: ReflectorOptions<T>;
  readonly #clock: Clock;
  /** Plural name of the resource, for the metrics. */
  readonly #resource: string;
  readonly #requests: ListWatch;
  readonly #stopped = new AbortController();
  #state: State = 'list';
  /** The resourceVersion of the last list, change or bookmark. */
  #resourceVersion = '';
  #hasSynced = false;
  /** True while a watch is open. */
  #isOpen = false;
  /** Number of watches that kube-apiserver has accepted. */
  #opened = 0;
  /** True if the next watch is short, so that a bookmark comes soon. */
  #isHurried = false;
  /** Expired watches since the last event of a watch. */
  #expirations = 0;
  /** Failures since kube-apiserver last sent a list or an event. */
  #failures = 0;

  constructor(options: ReflectorOptions<T>) {
    const { clock, watchSeconds } = options;
    this.#options = options;
    this.#clock = clock;
    this.#resource = options.path.slice(options.path.lastIndexOf('/') + 1);
    this.#requests = new ListWatch({
      ...options,
      clock,
      maxSilence: watchSeconds === undefined ? maxSilence : (watchSeconds + 5) * 1000,
      signal: this.#stopped.signal,
    });
  }

  start(): void {
    void withoutSpan(() => this.#run());
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** Returns true once the first list is complete. */
  hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** Returns true if a watch is open, so that changes arrive immediately. */
  isWatching(): boolean {
    return this.#isOpen;
  }

  /** Returns a number that differs for each open watch; 0 while no watch is open. */
  openWatch(): number {
    return this.#isOpen ? this.#opened : 0;
  }

  /** Time of the last data from kube-apiserver, in milliseconds since the epoch; 0 before any data has arrived. */
  lastSignOfLife(): number {
    return this.#requests.lastSignOfLife;
  }

  /** Requests a bookmark within two seconds instead of a minute, if a watch is open. */
  requestBookmark(): void {
    if (!this.isWatching() || this.#isHurried) return;
    this.#isHurried = true;
    this.#requests.interrupt('a bookmark is needed soon');
  }

  async #run(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      const delay = await this.#listAndWatch();
      if (delay > 0) await sleep(this.#clock, delay, this.#stopped.signal);
    }
  }

  /** Sends a request. Returns the milliseconds until the next request. */
  async #listAndWatch(): Promise<number> {
    const wasHurried = this.#isHurried;
    try {
      if (this.#state === 'watch') return await this.#watch();
      await this.#list();
      return 0;
    } catch (error) {
      return this.#stopped.signal.aborted ? 0 : this.#recover(error);
    } finally {
      this.#isOpen = false;
      if (wasHurried) this.#isHurried = false;
    }
  }

  async #list(): Promise<void> {
    const items: T[] = [];
    let resourceVersion = '';
    const slice = new Slice(this.#stopped);
    for await (const page of this.#requests.list()) {
      resourceVersion = page.metadata.resourceVersion ?? '';
      for (const item of page.items) {
        if (slice.isOver) await slice.next();
        items.push(this.#decodeItem(item, page));
      }
    }
    await this.#replace(items, resourceVersion);
  }

  #decodeItem({ bytes, members }: ObjectText, { kind, apiVersion }: SplitList): T {
    const object = decodeObject(bytes, members, this.#options.unreadStatus) as KubeObject;
    return this.#options.decode({ kind, apiVersion, ...object }, bytes, members);
  }

  async #watch(): Promise<number> {
    const startedAt = this.#clock.now();
    const resourceVersion = this.#resourceVersion;
    await this.#follow(resourceVersion);
    // kube-apiserver is faulty if a watch ends immediately without an event.
    const isIdle = this.#resourceVersion === resourceVersion && this.#clock.now() - startedAt < 1000;
    return isIdle ? this.#backoff() : 0;
  }

  async #follow(resourceVersion: string): Promise<void> {
    const usualSeconds = 300 + Math.floor(this.#clock.random() * 300);
    const timeoutSeconds = this.#isHurried ? hurriedSeconds : (this.#options.watchSeconds ?? usualSeconds);
    await this.#requests.watch({ timeoutSeconds, resourceVersion }, async (events) => {
      this.#isOpen = true;
      this.#opened += 1;
      for await (const event of events) {
        try {
          this.#apply(event);
        } catch (cause) {
          throw cause instanceof KubeError ? cause : new LostEvent('could not apply an event', { cause });
        }
        this.#failures = 0;
      }
    });
  }

  #apply(event: Buffer): void {
    const { type, object, bytes, members } = parseWatchEvent(event, this.#options.unreadStatus);
    const resourceVersion = object.metadata.resourceVersion ?? '';
    if (type === 'BOOKMARK') this.#options.bookmark?.(resourceVersion);
    else {
      this.#options.apply(type, this.#options.decode(object, bytes, members));
      watchEvents.add({ resource: this.#resource });
    }
    this.#resourceVersion = resourceVersion;
    this.#expirations = 0;
  }

  async #replace(items: readonly T[], resourceVersion: string): Promise<void> {
    const { log, path } = this.#options;
    const replaced = this.#options.replace(items, resourceVersion, this.#stopped.signal);
    // Without a promise, `hasSynced` must change in the same turn as the items.
    if (replaced !== undefined) await replaced;
    this.#resourceVersion = resourceVersion;
    this.#state = 'watch';
    this.#hasSynced = true;
    this.#failures = 0;
    lists.add({ resource: this.#resource });
    log.info('listed', { path, items: items.length, resourceVersion });
  }

  /** Chooses the next request after an error. Returns the milliseconds until that request. */
  #recover(error: unknown): number {
    const { log, path } = this.#options;
    // kube-apiserver may send nothing while nothing changes: the next watch shows whether it is healthy.
    if (error instanceof Interrupted && this.isWatching()) return 0;
    const expired = isExpired(error);
    // If kube-apiserver only refuses to resume a watch, a list will succeed, so earlier failures cause no delay. If
    // kube-apiserver also refuses to watch from that list, lists without a delay would follow one another.
    const earlier = this.#state === 'watch' ? this.#expirations : this.#failures;
    const delay = expired && earlier === 0 ? 0 : this.#backoff();
    if (expired && this.#state === 'watch') this.#expirations += 1;
    this.#failures += 1;
    if (expired || error instanceof LostEvent) this.#state = 'list';
    // 429 means that the storage of a new CustomResourceDefinition is being prepared.
    const level = error instanceof KubeError && error.code === 429 ? 'info' : 'warn';
    log.log(level, expired ? 'resourceVersion expired, listing again' : 'list or watch failed', { path, error, delay });
    return delay;
  }

  /**
   * Returns the delay before the next request. The delay doubles with each consecutive failure, with jitter: 0.25 to
   * 0.5 s, 0.5 to 1 s, … 15 to 30 s, or up to watchSeconds.
   */
  #backoff(): number {
    const { watchSeconds } = this.#options;
    const max = watchSeconds === undefined ? maxDelay : watchSeconds * 1000;
    const delay = Math.min(max, minDelay * 2 ** Math.min(Math.max(this.#failures, this.#expirations - 1), 10));
    return (delay / 2) * (1 + this.#clock.random());
  }
}
