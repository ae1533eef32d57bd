/**
 * Keeps a cache of one resource current: list, then watch from the list's resourceVersion, for ever
 * (k8s.io/client-go tools/cache/reflector.go). Objects arrive as the bytes that kube-apiserver wrote and decoded once beside them.
 */
import type { Logger } from '../../runtime/logger.ts';
import { sleep, type Clock } from '../../runtime/time.ts';
import { KubeError } from '../client/kube-error.ts';
import { keyOf, type ChangeType, type KubeObject } from '../client/kube-object.ts';
import { decodeWithoutManagedFields } from './json-scan.ts';
import { objectBytes, parseWatchEvent, withTypeMeta, type SplitList } from './kube-responses.ts';
import { Interrupted, ListWatch, type Collection } from './list-watch.ts';

export interface ReflectorOptions<T> extends Collection {
  readonly log: Logger;
  readonly clock: Clock;
  /**
   * Each watch is ended and resumed after about so many seconds, which proves that nothing was missed: `lastSignOfLife` is
   * never older while all is well, and soon fresh again after an absence. Unless stated a watch lasts 5 to 10 minutes, with a bookmark about each minute.
   */
  readonly watchSeconds?: number;
  /**
   * Returns what is kept of an object, which comes decoded without its managedFields. `bytes` is a view of a larger piece of memory: copy
   * what is to stay.
   */
  decode(object: KubeObject, bytes: Buffer): T;
  /** The whole state, after a list. */
  replace(items: readonly T[], resourceVersion: string): void;
  /** One change, in the order of the cluster. A DELETED item is the last state. */
  apply(type: ChangeType, item: T): void;
  /** Nothing else has changed up to this resourceVersion. */
  bookmark?(resourceVersion: string): void;
}

/**
 * The next request, or the one in flight. A streaming list is a watch whose first events are the whole state; it becomes `watch` when
 * these are complete. A list in pages that expires between two pages is repeated as one whole page.
 */
type State = 'streaming list' | 'paged list' | 'whole list' | 'watch';

const pageSize = 500;
const minDelay = 500;
const maxDelay = 30_000;
/** A watch has a bookmark about each minute (kube-apiserver's bookmarkFrequency), unless nothing ever changed. */
const maxSilence = 75_000;
/** A watch of so many seconds has its bookmark after one: kube-apiserver sends the last one 2 s before the end. */
export const hurriedSeconds = 3;

/** 410: the resourceVersion, or the list that was being paged through, is gone. */
const isExpired = (error: unknown): boolean =>
  error instanceof KubeError && (error.code === 410 || error.reason === 'Expired');

/** A cluster without streaming lists refuses the parameters, as invalid or as forbidden for watch. */
const isRefused = (error: unknown): boolean => error instanceof KubeError && (error.code === 400 || error.code === 422);

/** The change is missing from the cache. */
class LostEvent extends Error {}

export class Reflector<T> {
  readonly #options: ReflectorOptions<T>;
  readonly #clock: Clock;
  readonly #requests: ListWatch;
  readonly #stopped = new AbortController();
  #state: State = 'streaming list';
  /** Of the last list, change or bookmark. */
  #resourceVersion = '';
  /** The objects of a streaming list by key, until it is complete. */
  #initialItems = new Map<string, T>();
  #supportsStreamingLists = true;
  #hasSynced = false;
  #isOpen = false;
  /** The next watch is so short that a bookmark comes soon. */
  #isHurried = false;
  /** Since kube-apiserver last sent a list or an event. */
  #failures = 0;

  constructor(options: ReflectorOptions<T>) {
    const { clock, watchSeconds } = options;
    this.#options = options;
    this.#clock = clock;
    this.#requests = new ListWatch({
      ...options,
      clock,
      maxSilence: watchSeconds === undefined ? maxSilence : (watchSeconds + 5) * 1000,
      signal: this.#stopped.signal,
    });
  }

  start(): void {
    void this.#run();
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** The first list is complete. */
  hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** A watch is open now, so every change arrives at once. */
  isWatching(): boolean {
    return this.#isOpen && this.#state === 'watch';
  }

  /** When kube-apiserver last sent anything, in milliseconds since the epoch; 0 before the first time. */
  lastSignOfLife(): number {
    return this.#requests.lastSignOfLife;
  }

  /** Makes a bookmark come within two seconds, not within a minute, if a watch is open. */
  hurry(): void {
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

  /** Makes one request. Returns the milliseconds until the next one. */
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
    this.#replace(items, page.metadata.resourceVersion ?? '');
  }

  #decodeItem(bytes: Buffer, { kind, apiVersion }: SplitList): T {
    const object = decodeWithoutManagedFields(bytes) as KubeObject;
    return object.kind === undefined
      ? this.#options.decode({ kind, apiVersion, ...object }, withTypeMeta(bytes, kind, apiVersion))
      : this.#options.decode(object, bytes);
  }

  async #watchList(): Promise<void> {
    await this.#follow({ sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' });
    if (this.#state !== 'watch') throw new Error('a streaming list ended before it was complete');
  }

  async #watch(): Promise<number> {
    const startedAt = this.#clock.now();
    const resourceVersion = this.#resourceVersion;
    await this.#follow({ resourceVersion });
    // A watch that ends at once without an event is a fault of kube-apiserver.
    const isIdle = this.#resourceVersion === resourceVersion && this.#clock.now() - startedAt < 1000;
    return isIdle ? this.#backoff() : 0;
  }

  async #follow(from: Readonly<Record<string, string>>): Promise<void> {
    const { watchSeconds = 300 + Math.floor(this.#clock.random() * 300) } = this.#options;
    const timeoutSeconds = this.#isHurried ? hurriedSeconds : watchSeconds;
    await this.#requests.watch({ timeoutSeconds, ...from }, async (events) => {
      this.#isOpen = true;
      for await (const event of events) {
        try {
          if (this.#state === 'watch') this.#apply(event);
          else this.#collect(event);
        } catch (cause) {
          throw cause instanceof KubeError ? cause : new LostEvent('an event could not be handled', { cause });
        }
        this.#failures = 0;
      }
    });
  }

  /** Takes an event of a streaming list. */
  #collect(event: Buffer): void {
    const { type, object } = parseWatchEvent(event);
    if (type === 'DELETED') this.#initialItems.delete(keyOf(object));
    else if (type !== 'BOOKMARK')
      this.#initialItems.set(keyOf(object), this.#options.decode(object, objectBytes(event, type)));
    else if (object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true') {
      this.#replace([...this.#initialItems.values()], object.metadata.resourceVersion ?? '');
      this.#initialItems.clear();
    }
  }

  /** Takes an event of a watch. */
  #apply(event: Buffer): void {
    const { type, object } = parseWatchEvent(event);
    const resourceVersion = object.metadata.resourceVersion ?? '';
    if (type === 'BOOKMARK') this.#options.bookmark?.(resourceVersion);
    else this.#options.apply(type, this.#options.decode(object, objectBytes(event, type)));
    this.#resourceVersion = resourceVersion;
  }

  #replace(items: readonly T[], resourceVersion: string): void {
    const { log, path } = this.#options;
    this.#options.replace(items, resourceVersion);
    this.#resourceVersion = resourceVersion;
    this.#state = 'watch';
    this.#hasSynced = true;
    this.#failures = 0;
    log.info('listed', { path, items: items.length, resourceVersion });
  }

  /** Chooses the next request after an error. Returns the milliseconds until it. */
  #recover(error: unknown): number {
    const { log, path } = this.#options;
    // kube-apiserver may be silent while nothing changes: the next watch shows whether it was alive.
    if (error instanceof Interrupted && this.isWatching()) return 0;
    if (this.#state === 'streaming list' && isRefused(error)) {
      this.#supportsStreamingLists = false;
      this.#state = 'paged list';
      log.info('the cluster has no streaming lists', { path, error });
      return 0;
    }
    const expired = isExpired(error);
    // A kube-apiserver that refuses to continue a watch is able to list, whatever failed before.
    const delay = expired && (this.#state === 'watch' || this.#failures === 0) ? 0 : this.#backoff();
    this.#failures += 1;
    this.#state = this.#stateAfter(error);
    // 429: the storage of a new CustomResourceDefinition is being prepared.
    const level = error instanceof KubeError && error.code === 429 ? 'info' : 'warn';
    log.log(level, expired ? 'listing again' : 'a list or watch failed', { path, error, delay });
    return delay;
  }

  #stateAfter(error: unknown): State {
    if (this.#state === 'streaming list') return 'paged list';
    if (this.#state === 'paged list' && isExpired(error)) return 'whole list';
    if (this.#state === 'watch' && !isExpired(error) && !(error instanceof LostEvent)) return 'watch';
    return this.#supportsStreamingLists ? 'streaming list' : 'paged list';
  }

  /** Doubles with each failure in a row, with jitter: 0.25 to 0.5 s, 0.5 to 1 s, … 15 to 30 s, or half to the whole of watchSeconds. */
  #backoff(): number {
    const { watchSeconds } = this.#options;
    const longest = watchSeconds === undefined ? maxDelay : watchSeconds * 1000;
    const delay = Math.min(longest, minDelay * 2 ** Math.min(this.#failures, 10));
    return (delay / 2) * (1 + this.#clock.random());
  }
}
