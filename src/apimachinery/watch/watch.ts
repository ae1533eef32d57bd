import { expired, type StatusError } from '../../runtime/errors.ts';
import type { RequestContext } from '../../http/route.ts';
import { Slice } from '../../runtime/slice.ts';
import { framed, type StreamedBody } from '../../http/response/streamed-body.ts';
import type { Store } from '../../cluster/cache/store.ts';
import type { StoredObject } from '../../cluster/cache/stored-object.ts';
import type { ObjectFilter } from '../../cluster/cache/selection.ts';
import type { View } from '../list/views.ts';
import type { Channel } from './channel.ts';
import type { Step } from './lanes.ts';
import { errorFrame, frame, idFrame, keepAliveFrame, keepAliveInterval, visibleEvent } from './frames.ts';

export interface WatchRequest<F> {
  /** Version after which changes are sent; undefined to send only new changes. */
  readonly from: number | undefined;
  /** True if the watch starts with the existing objects as ADDED. */
  readonly initialEvents: boolean;
  /** True if a BOOKMARK marks the end of the initial events. */
  readonly initialEventsEnd: boolean;
  /** True if the watch sends a BOOKMARK each minute and before its end. */
  readonly bookmarks: boolean;
  /**
   * True if the watch sends server-sent events (HTML, section 9.2). The id of an event is the resourceVersion from
   * which the client resumes.
   */
  readonly serverSentEvents?: boolean;
  /**
   * True if `from` is the last id that the client received. If `from` is a URL parameter instead, the client sends the
   * same value each time it reconnects.
   */
  readonly isResumed?: boolean;
  /** Milliseconds after which the server ends the watch. */
  readonly duration: number;
  readonly filters: readonly ObjectFilter<F>[];
  /**
   * Schedules the steps of the watch in the turns of its user. Set if the filters of the watch search the bytes of
   * objects.
   */
  readonly inLane?: ((step: Step) => void) | undefined;
  readonly view: View<F>;
  /** View of the first frame: only the first Table has column definitions. */
  readonly firstView: View<F>;
  /** Authorizes the watch again. Throws StatusError if the caller is no longer allowed to watch. */
  readonly recheck: () => Promise<void>;
  readonly onRecheck: RequestContext['onRecheck'];
  /** Signal that is aborted with a StatusError when the events no longer match the request. */
  readonly outdated?: AbortSignal;
  /** Signal that is aborted when the client disconnects or the server drains. */
  readonly signal: AbortSignal;
  readonly log: RequestContext['log'];
}

interface WatchOptions<F> {
  readonly request: WatchRequest<F>;
  readonly store: Store<F>;
  readonly channel: Channel<F>;
  readonly body: StreamedBody;
  /** Position of the first unsent change in the store's history. */
  readonly position: number;
  readonly closed: (watch: Watch<F>) => void;
}

/** Returns the error for a version from which a watch cannot continue. `oldest` is a version that is not too old. */
export const tooOldVersion = (version: number | undefined, oldest: number | undefined): StatusError =>
  expired(`too old resource version: ${version} (${oldest})`);

/** Pieces that are written together. */
interface Part {
  readonly pieces: Buffer[];
  size: number;
}

const minute = 60_000;
/** Milliseconds between the last BOOKMARK and the end of the watch. */
const lastBookmark = 2_000;
/** Approximate bytes of a part that is encoded for one watch. A part is smaller if the time slice ends earlier. */
const partSize = 64 * 1024;
const nothing = Buffer.alloc(0);

/**
 * One open watch. As long as its client keeps up, the watch writes the parts that its channel has encoded for all
 * watches. The watch itself encodes events that only it needs (existing objects, history, changes that the client was
 * too slow for) from the store, at the client's pace. The watch stores a position in the history and never has a queue.
 */
export class Watch<F> {
  readonly channel: Channel<F>;
  readonly #request: WatchRequest<F>;
  readonly #store: Store<F>;
  readonly #body: StreamedBody;
  readonly #closed: (watch: Watch<F>) => void;
  #position: number;
  /** Existing objects for the initial events; empty once all are sent. */
  #initialObjects: readonly StoredObject<F>[];
  #initialSent = 0;
  /** The resourceVersion of the initial objects; undefined once the end of these objects is marked. */
  #initialEnd: number | undefined;
  #isFirst = true;
  /** Changes up to this resourceVersion are not sent: the watch may start ahead of this replica's cache. */
  #after: number;
  #bookmarkIsDue = false;
  /** True if this watch needs the next part of the channel. */
  #follows = false;
  #isCatchingUp = false;
  #isOver = false;
  #nextMinute: number;
  #last: number;
  #keepAlive = Infinity;
  readonly #end: number;
  /**
   * Progress of the filters on the object versions that are next: the number of filters that the version has passed, or
   * the final result.
   */
  readonly #verdicts = new Map<StoredObject<F>, number | boolean>();
  readonly #passes: (object: StoredObject<F>) => boolean;

  constructor({ request, store, channel, body, position, closed }: WatchOptions<F>) {
    const { initialEvents, initialEventsEnd, bookmarks, duration, from } = request;
    this.channel = channel;
    this.#request = request;
    this.#store = store;
    this.#body = body;
    this.#closed = closed;
    this.#position = position;
    this.#passes = request.inLane === undefined ? channel.passes : (object) => this.#verdicts.get(object) === true;
    this.#initialObjects = initialEvents ? store.snapshot() : [];
    const hasIDs = channel.options.format === 'server-sent events';
    if (initialEventsEnd || (initialEvents && hasIDs)) this.#initialEnd = store.resourceVersion;
    this.#after = from ?? 0;
    const now = performance.now();
    this.#nextMinute = now + minute;
    this.#end = now + duration;
    if (hasIDs) this.#keepAlive = now + keepAliveInterval;
    this.#last = bookmarks && duration > lastBookmark ? this.#end - lastBookmark : Infinity;
  }

  start(): void {
    const { signal, recheck, onRecheck, outdated } = this.#request;
    signal.addEventListener('abort', () => this.end(), { once: true });
    if (signal.aborted) return this.end();
    const refuse = (): void => this.refuse(outdated?.reason as StatusError);
    outdated?.addEventListener('abort', refuse, { once: true });
    if (outdated?.aborted === true) return refuse();
    onRecheck(recheck, (error) => this.refuse(error));
    this.catchUp();
  }

  /**
   * Writes `part`, the changes from `start` to `end` as the channel encoded them. `part` is undefined if the watches of
   * the channel see none of these changes.
   */
  take(start: number, end: number, part: Buffer | undefined): void {
    if (this.#position >= end) return;
    if (!this.#follows || this.#position !== start || (part !== undefined && this.#body.isFull)) return this.catchUp();
    this.#position = end;
    if (part !== undefined) this.#write(part);
  }

  /** Time of the next call of `tick`, by `performance.now()`. */
  get due(): number {
    return Math.min(this.#nextMinute, this.#last, this.#end, this.#keepAlive);
  }

  tick(): void {
    if (this.#isOver) return;
    const now = performance.now();
    if (now >= this.#end) return this.end();
    if (now >= this.#last) {
      this.#last = Infinity;
      this.#bookmark();
    }
    if (now >= this.#keepAlive) this.#sendKeepAlive();
    if (now < this.#nextMinute) return;
    this.#nextMinute += minute;
    this.#bookmark();
  }

  /**
   * True if the history no longer contains the next change. When the client reconnects with the last resourceVersion
   * that it received, the server refuses this version as too old.
   */
  get isLost(): boolean {
    return !this.#follows && this.#position < this.#store.history.oldestPosition;
  }

  /** Ends the watch if it continues from a version between two lists, so that changes may be missing. */
  endWithin(from: number, to: number): void {
    if (this.#after > from && this.#after < to) this.refuse(tooOldVersion(this.#after, to));
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  #write(part: Buffer): void {
    this.#body.write(part);
    if (this.#keepAlive !== Infinity) this.#keepAlive = performance.now() + keepAliveInterval;
  }

  #sendKeepAlive(): void {
    const { history, resourceVersion } = this.#store;
    const isCurrent = this.#isUpToDate && this.#position === history.position && resourceVersion >= this.#after;
    const { framing } = this.channel.options;
    // A full body means that the client has unread data, so no keep-alive comment is needed.
    const part = this.#body.isFull
      ? nothing
      : framed(framing, [keepAliveFrame(isCurrent ? resourceVersion : undefined)]);
    this.#write(part);
  }

  /** Sends the error and ends the watch. */
  refuse(error: StatusError): void {
    if (this.#isOver) return;
    const { format, framing } = this.channel.options;
    this.#body.write(framed(framing, errorFrame(format, error)));
    this.end();
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#body.end();
    this.#initialObjects = [];
    this.#closed(this);
  }

  cut(): void {
    this.#body.cut();
    this.end();
  }

  /** Sends from the store the changes that the client has not received, unless that is already in progress. */
  catchUp(): void {
    if (this.#isCatchingUp || this.#isOver) return;
    this.#isCatchingUp = true;
    const { inLane } = this.#request;
    if (inLane === undefined) this.#catchUp().catch((error: unknown) => this.fail(error));
    else inLane(this.#step);
  }

  /** Ends the watch after an internal error. */
  fail(error: unknown): void {
    this.#request.log.error('watch failed', { error });
    this.cut();
  }

  /** True if all changes in the store are sent. */
  get #isUpToDate(): boolean {
    return this.#follows || (this.#request.inLane !== undefined && !this.#isCatchingUp);
  }

  /** Catches up in the lane of the user, one change at a time. */
  readonly #step: Step = (slice) => {
    try {
      if (this.isLost) this.cut();
      if (this.#isOver) return false;
      if (this.#body.isFull) {
        void this.#body.drained().then(() => this.#request.inLane?.(this.#step));
        return false;
      }
      if (!this.#decide(slice)) return true;
      const part = this.#next(slice);
      this.#verdicts.clear();
      if (part === undefined) this.#isCatchingUp = false;
      else if (part.length > 0) this.#write(part);
      return part !== undefined;
    } catch (error) {
      this.fail(error);
      return false;
    }
  };

  /**
   * Applies the filters one by one to the object versions that are next. Returns false if the time slice ends before
   * all filters are applied.
   */
  #decide(slice: Slice): boolean {
    const { filters } = this.channel.options;
    const object = this.#initialObjects[this.#initialSent];
    const change = this.#store.history.at(this.#position);
    const states = object === undefined ? [change?.previous, change?.object] : [object];
    let isFirst = true;
    for (const state of states) {
      if (state === undefined) continue;
      let verdict = this.#verdicts.get(state) ?? 0;
      while (typeof verdict === 'number') {
        if (!isFirst && slice.isOver) {
          this.#verdicts.set(state, verdict);
          return false;
        }
        isFirst = false;
        const filter = filters[verdict];
        verdict = filter === undefined || (filter(state) && verdict + 1);
      }
      this.#verdicts.set(state, verdict);
    }
    return true;
  }

  async #catchUp(): Promise<void> {
    this.#follows = false;
    const slice = new Slice();
    while (!this.#isOver) {
      if (this.isLost) return this.cut();
      if (this.#body.isFull) await this.#body.drained();
      else if (slice.isOver) await slice.next();
      else {
        // This code must not await anything between finding no more changes and setting #follows.
        const part = this.#next(slice);
        if (part === undefined) break;
        if (part.length > 0) this.#write(part);
      }
    }
    const { firstView, view } = this.#request;
    this.#follows = (!this.#isFirst || firstView === view) && this.#after <= this.#store.resourceVersion;
    this.#isCatchingUp = false;
  }

  /** Returns the next part to send, which may be empty; undefined if there is nothing more. */
  #next(slice: Slice): Buffer | undefined {
    const part: Part = { pieces: [], size: 0 };
    let visited = 0;
    const maxVisits = this.#request.inLane === undefined ? Infinity : 1;
    while (part.size < partSize && visited < maxVisits && (visited === 0 || !slice.isOver) && this.#addNext(part))
      visited += 1;
    if (visited === 0) return this.#nextBookmark();
    return part.size === 0 ? nothing : framed(this.channel.options.framing, part.pieces);
  }

  /**
   * Adds the next object or change if it passes the filters of the watch. Returns false if no object and no change is
   * left.
   */
  #addNext(part: Part): boolean {
    const passes = this.#passes;
    const { format } = this.channel.options;
    const add = (pieces: readonly Buffer[]): void => {
      for (const piece of pieces) part.size += piece.length;
      part.pieces.push(...pieces);
    };
    const object = this.#initialObjects[this.#initialSent];
    if (object !== undefined) {
      this.#initialSent += 1;
      if (passes(object)) add(frame(format, 'ADDED', this.#view().object(object)));
      return true;
    }
    const initialEnd = this.#initialEnd;
    if (initialEnd !== undefined) {
      this.#initialEnd = undefined;
      if (this.#request.initialEventsEnd)
        add(frame(format, 'BOOKMARK', this.#view().bookmark(initialEnd, true), initialEnd));
      else add([idFrame(initialEnd)]);
      return true;
    }
    this.#initialObjects = [];
    const change = this.#store.history.at(this.#position);
    if (change === undefined) return false;
    this.#position += 1;
    const shown = change.resourceVersion <= this.#after ? undefined : visibleEvent(change, passes);
    if (shown !== undefined) add(frame(format, shown.type, this.#view().object(shown.object), change.resourceVersion));
    return true;
  }

  /** Returns the BOOKMARK that is due, if any. All changes before the BOOKMARK have been sent. */
  #nextBookmark(): Buffer | undefined {
    const { resourceVersion } = this.#store;
    if (!this.#bookmarkIsDue) return undefined;
    this.#bookmarkIsDue = false;
    // If the watch is ahead of this replica's cache, the BOOKMARK would send an older version than the client already
    // has.
    if (resourceVersion < this.#after) return undefined;
    if (!this.#isFirst) return this.channel.bookmark(resourceVersion);
    const { format, framing } = this.channel.options;
    return framed(framing, frame(format, 'BOOKMARK', this.#view().bookmark(resourceVersion, false), resourceVersion));
  }

  #bookmark(): void {
    this.#bookmarkIsDue = this.#request.bookmarks;
    if (this.#bookmarkIsDue) this.catchUp();
  }

  #view(): View<F> {
    const { view, firstView } = this.#request;
    const next = this.#isFirst ? firstView : view;
    this.#isFirst = false;
    return next;
  }
}
