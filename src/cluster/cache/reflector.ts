/**
 * Keeps a cache of one resource current: lists, then watches from the resourceVersion of the list, and repeats
 * (k8s.io/client-go tools/cache/reflector.go). Receivers get each object both as the bytes from kube-apiserver and
 * decoded.
 */
import type { Logger } from '../../runtime/logger.ts';
import { lists, watchEvents } from '../../runtime/metrics/definitions.ts';
import { sleep, type Clock } from '../../runtime/time.ts';
import { withoutSpan } from '../../runtime/tracing.ts';
import { KubeError } from '../client/kube-error.ts';
import { keyOf, type ChangeType, type KubeObject } from '../client/kube-object.ts';
import { decodeObject, membersOfObject, type ObjectMembers } from './json-scan.ts';
import { parseWatchEvent, withTypeMeta, type SplitList } from './kube-responses.ts';
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
   * buffer: copy bytes that the item retains. `members`: the members in the bytes, if known.
   */
  decode(object: KubeObject, bytes: Buffer, members?: ObjectMembers): T;
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
 * The request in flight, or the next one. A streaming list is a watch whose first events are all existing objects. When
 * all these events have arrived, the state becomes `watch`. A paged list that expires between two pages is repeated as
 * one whole page.
 */
type State = 'streaming list' | 'paged list' | 'whole list' | 'watch';

const pageSize = 500;
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

/**
 * Returns true if the cluster does not support streaming lists and rejects their parameters, as invalid or as forbidden
 * for a watch.
 */
const isRefused = (error: unknown): boolean => error instanceof KubeError && (error.code === 400 || error.code === 422);

/** Error for an event that could not be applied, so that the change is missing from the cache. */
class LostEvent extends Error {}

export class Reflector<T> {
  readonly #options: ReflectorOptions<T>;
  readonly #clock: Clock;
  /** Plural name of the resource, for the metrics. */
  readonly #resource: string;
  readonly #requests: ListWatch;
  readonly #stopped = new AbortController();
  #state: State = 'streaming list';
  /** The resourceVersion of the last list, change or bookmark. */
  #resourceVersion = '';
  /** Objects of an incomplete streaming list by key. */
  #initialItems = new Map<string, T>();
  #supportsStreamingLists = true;
  #hasSynced = false;
  #isOpen = false;
  /** Number of requests that kube-apiserver has accepted. */
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
    return this.#isOpen && this.#state === 'watch';
  }

  /** Returns a number that differs for each open watch; 0 while no watch is open. */
  openWatch(): number {
    return this.isWatching() ? this.#opened : 0;
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
      if (this.#state === 'streaming list') await this.#watchList();
      else await this.#list(this.#state === 'paged list' ? pageSize : undefined);
      return 0;
    } catch (error) {
      return this.#stopped.signal.aborted ? 0 : this.#recover(error);
    } finally {
      this.#isOpen = false;
      this.#initialItems.clear();
      if (wasHurried) this.#isHurried = false;
    }
  }

  async #list(limit: number | undefined): Promise<void> {
    const items: T[] = [];
    let page: SplitList | undefined;
    do {
      page = await this.#requests.list({ limit, continue: page?.metadata.continue });
      for (const bytes of page.items) items.push(this.#decodeItem(bytes, page));
    } while ((page.metadata.continue ?? '') !== '');
    await this.#replace(items, page.metadata.resourceVersion ?? '');
  }

  #decodeItem(bytes: Buffer, { kind, apiVersion }: SplitList): T {
    const members = membersOfObject(bytes);
    const object = decodeObject(bytes, members, this.#options.unreadStatus) as KubeObject;
    return object.kind === undefined
      ? this.#options.decode({ kind, apiVersion, ...object }, withTypeMeta(bytes, kind, apiVersion))
      : this.#options.decode(object, bytes, members);
  }

  async #watchList(): Promise<void> {
    await this.#follow({ sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' });
    if (this.#state !== 'watch') throw new Error('the streaming list ended before it was complete');
  }

  async #watch(): Promise<number> {
    const startedAt = this.#clock.now();
    const resourceVersion = this.#resourceVersion;
    await this.#follow({ resourceVersion });
    // kube-apiserver is faulty if a watch ends immediately without an event.
    const isIdle = this.#resourceVersion === resourceVersion && this.#clock.now() - startedAt < 1000;
    return isIdle ? this.#backoff() : 0;
  }

  async #follow(from: Readonly<Record<string, string>>): Promise<void> {
    // kube-apiserver also ends an incomplete streaming list after timeoutSeconds.
    const isList = this.#state === 'streaming list';
    const { watchSeconds } = this.#options;
    const usualSeconds = 300 + Math.floor(this.#clock.random() * 300);
    const configuredSeconds = isList ? usualSeconds : (watchSeconds ?? usualSeconds);
    const timeoutSeconds = this.#isHurried ? hurriedSeconds : configuredSeconds;
    await this.#requests.watch({ timeoutSeconds, ...from }, async (events) => {
      this.#isOpen = true;
      this.#opened += 1;
      for await (const event of events) {
        try {
          if (this.#state === 'watch') this.#apply(event);
          else await this.#collect(event);
        } catch (cause) {
          throw cause instanceof KubeError ? cause : new LostEvent('could not apply an event', { cause });
        }
        this.#failures = 0;
        // The list is complete: a watch with the configured duration replaces its stream.
        if (isList && this.#state === 'watch' && watchSeconds !== undefined) return;
      }
    });
  }

  /** Handles an event of a streaming list. */
  #collect(event: Buffer): Promise<void> | undefined {
    const { type, object, bytes, members } = parseWatchEvent(event, this.#options.unreadStatus);
    if (type === 'DELETED') this.#initialItems.delete(keyOf(object));
    else if (type !== 'BOOKMARK') this.#initialItems.set(keyOf(object), this.#options.decode(object, bytes, members));
    else if (object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true') {
      const items = [...this.#initialItems.values()];
      this.#initialItems.clear();
      return this.#replace(items, object.metadata.resourceVersion ?? '');
    }
    return undefined;
  }

  /** Handles an event of a watch. */
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
    if (this.#state === 'streaming list' && isRefused(error)) {
      this.#supportsStreamingLists = false;
      this.#state = 'paged list';
      log.info('cluster does not support streaming lists', { path, error });
      return 0;
    }
    const expired = isExpired(error);
    // If kube-apiserver only refuses to resume a watch, a list will succeed, so earlier failures cause no delay. If
    // kube-apiserver also refuses to watch from that list, lists without a delay would follow one another.
    const earlier = this.#state === 'watch' ? this.#expirations : this.#failures;
    const delay = expired && earlier === 0 ? 0 : this.#backoff();
    if (expired && this.#state === 'watch') this.#expirations += 1;
    this.#failures += 1;
    this.#state = this.#stateAfter(error);
    // 429 means that the storage of a new CustomResourceDefinition is being prepared.
    const level = error instanceof KubeError && error.code === 429 ? 'info' : 'warn';
    log.log(level, expired ? 'resourceVersion expired, listing again' : 'list or watch failed', { path, error, delay });
    return delay;
  }

  #stateAfter(error: unknown): State {
    if (this.#state === 'streaming list') return 'paged list';
    if (this.#state === 'paged list' && isExpired(error)) return 'whole list';
    if (this.#state === 'watch' && !isExpired(error) && !(error instanceof LostEvent)) return 'watch';
    return this.#supportsStreamingLists ? 'streaming list' : 'paged list';
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
