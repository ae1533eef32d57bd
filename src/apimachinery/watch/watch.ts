import type { StatusError } from '../../runtime/errors.ts';
import type { RequestContext } from '../../http/route.ts';
import { Slice } from '../../runtime/slice.ts';
import { framed, type StreamedBody } from '../../http/response/streamed-body.ts';
import type { Store } from '../../cluster/cache/store.ts';
import type { StoredObject } from '../../cluster/cache/stored-object.ts';
import type { ObjectFilter } from '../../cluster/cache/selection.ts';
import type { View } from '../list/views.ts';
import type { Channel } from './channel.ts';
import type { Step } from './lanes.ts';
import { errorFrame, frame, idFrame, keepAliveFrame, keepAliveInterval, seen } from './frames.ts';

export interface WatchRequest<F> {
  /** Changes after this resourceVersion; undefined: from the present on. */
  readonly from: number | undefined;
  /** Begin with the present objects as ADDED. */
  readonly initialEvents: boolean;
  /** Mark the end of these by a BOOKMARK. */
  readonly initialEventsEnd: boolean;
  /** A BOOKMARK each minute and one before the end. */
  readonly bookmarks: boolean;
  /** Each frame as a server-sent event (HTML, section 9.2), whose id is the resourceVersion to go on from. */
  readonly serverSentEvents?: boolean;
  /** `from` is not of the URL, which its client asks again, but what it was told last. */
  readonly isResumed?: boolean;
  /** Until the server ends it, in milliseconds. */
  readonly duration: number;
  readonly filters: readonly ObjectFilter<F>[];
  /** Has it work in the turns of its user, because its filters look for values in objects. */
  readonly inLane?: ((step: Step) => void) | undefined;
  readonly view: View<F>;
  /** Of the first frame: a Table names its columns once. */
  readonly firstView: View<F>;
  /** Throws StatusError when the caller is no longer allowed to watch the same. */
  readonly recheck: () => Promise<void>;
  readonly onRecheck: RequestContext['onRecheck'];
  /** Aborted, with a StatusError, when what it tells is no longer what was asked for. */
  readonly outdated?: AbortSignal;
  /** Aborted when the client goes away or the server drains. */
  readonly signal: AbortSignal;
  readonly log: RequestContext['log'];
}

interface WatchOptions<F> {
  readonly request: WatchRequest<F>;
  readonly store: Store<F>;
  readonly channel: Channel<F>;
  readonly body: StreamedBody;
  /** In the store's history: of the first change that is not yet told. */
  readonly position: number;
  readonly closed: (watch: Watch<F>) => void;
}

/** What goes to the socket together. */
interface Part {
  readonly pieces: Buffer[];
  size: number;
}

const minute = 60_000;
const lastBookmark = 2_000;
/** What one watch alone needs is written in parts of about so many bytes, or of what a slice has time for. */
const partSize = 64 * 1024;
const nothing = Buffer.alloc(0);

/**
 * One reader. As long as it keeps up it is given what its channel has framed for all. What only it needs – the present objects, the
 * past, what it missed while it did not read – it takes from the store by itself, at its reader's pace: it holds a place in the
 * history, never a queue.
 */
export class Watch<F> {
  readonly channel: Channel<F>;
  readonly #request: WatchRequest<F>;
  readonly #store: Store<F>;
  readonly #body: StreamedBody;
  readonly #closed: (watch: Watch<F>) => void;
  #position: number;
  /** Those of the present objects that are not yet told. */
  #present: readonly StoredObject<F>[];
  #presentTold = 0;
  /** These are the state at this resourceVersion, and their end is to be told. */
  #initialEnd: number | undefined;
  #isFirst = true;
  /** It may have begun ahead of this replica's copy: changes up to this resourceVersion are not told. */
  #after: number;
  #bookmarkIsDue = false;
  /** What the channel has framed is what it needs next. */
  #follows = false;
  #isCatchingUp = false;
  #isOver = false;
  #nextMinute: number;
  #last: number;
  #keepAlive = Infinity;
  readonly #end: number;
  /** The progress of its filters on the next states: how many filters they pass, or the decision. */
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
    this.#present = initialEvents ? store.snapshot() : [];
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

  /** Changes from one place in the history to another, as the channel has framed them; undefined if they are nothing to its watches. */
  take(start: number, end: number, part: Buffer | undefined): void {
    if (this.#position >= end) return;
    if (!this.#follows || this.#position !== start || (part !== undefined && this.#body.isFull)) return this.catchUp();
    this.#position = end;
    if (part !== undefined) this.#write(part);
  }

  /** When `tick` is to be called next, by `performance.now()`. */
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
    if (now >= this.#keepAlive) this.#sayAlive();
    if (now < this.#nextMinute) return;
    this.#nextMinute += minute;
    this.#bookmark();
  }

  /**
   * What it has to take from the store is forgotten. Its client comes again with the last resourceVersion that it saw, and learns
   * that then.
   */
  get isLost(): boolean {
    return !this.#follows && this.#position < this.#store.history.oldestPosition;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  #write(part: Buffer): void {
    this.#body.write(part);
    if (this.#keepAlive !== Infinity) this.#keepAlive = performance.now() + keepAliveInterval;
  }

  #sayAlive(): void {
    const { history, resourceVersion } = this.#store;
    const isCurrent = this.#isUpToDate && this.#position === history.position && resourceVersion >= this.#after;
    const { framing } = this.channel.options;
    // Who does not read has something to read yet.
    const part = this.#body.isFull
      ? nothing
      : framed(framing, [keepAliveFrame(isCurrent ? resourceVersion : undefined)]);
    this.#write(part);
  }

  /** Tells why nothing more may be told, and ends. */
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
    this.#present = [];
    this.#closed(this);
  }

  cut(): void {
    this.#body.cut();
    this.end();
  }

  /** Tells by itself what there is to tell, unless it is doing that. */
  catchUp(): void {
    if (this.#isCatchingUp || this.#isOver) return;
    this.#isCatchingUp = true;
    const { inLane } = this.#request;
    if (inLane === undefined) this.#catchUp().catch((error: unknown) => this.fail(error));
    else inLane(this.#step);
  }

  /** Something here is wrong. */
  fail(error: unknown): void {
    this.#request.log.error('a watch failed', { error });
    this.cut();
  }

  /** All that the store knows has been told. */
  get #isUpToDate(): boolean {
    return this.#follows || (this.#request.inLane !== undefined && !this.#isCatchingUp);
  }

  /** Does the same in the lane of its user, one change at a time. */
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

  /** Asks one filter after the other about the states that come next. False if the slice ended before all was decided. */
  #decide(slice: Slice): boolean {
    const { filters } = this.channel.options;
    const object = this.#present[this.#presentTold];
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
        // Nothing may happen between the look that finds nothing more and the mark that the channel is followed.
        const part = this.#next(slice);
        if (part === undefined) break;
        if (part.length > 0) this.#write(part);
      }
    }
    const { firstView, view } = this.#request;
    this.#follows = (!this.#isFirst || firstView === view) && this.#after <= this.#store.resourceVersion;
    this.#isCatchingUp = false;
  }

  /** The next part of what there is to tell, which may be empty; undefined if there is nothing more. */
  #next(slice: Slice): Buffer | undefined {
    const part: Part = { pieces: [], size: 0 };
    let visited = 0;
    const most = this.#request.inLane === undefined ? Infinity : 1;
    while (part.size < partSize && visited < most && (visited === 0 || !slice.isOver) && this.#addNext(part))
      visited += 1;
    if (visited === 0) return this.#nextBookmark();
    return part.size === 0 ? nothing : framed(this.channel.options.framing, part.pieces);
  }

  /** Adds the next object or change, if it is to be seen; false if there is none. */
  #addNext(part: Part): boolean {
    const passes = this.#passes;
    const { format } = this.channel.options;
    const add = (frameOfIt: readonly Buffer[]): void => {
      for (const piece of frameOfIt) part.size += piece.length;
      part.pieces.push(...frameOfIt);
    };
    const object = this.#present[this.#presentTold];
    if (object !== undefined) {
      this.#presentTold += 1;
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
    this.#present = [];
    const change = this.#store.history.at(this.#position);
    if (change === undefined) return false;
    this.#position += 1;
    const shown = change.resourceVersion <= this.#after ? undefined : seen(change, passes);
    if (shown !== undefined) add(frame(format, shown.type, this.#view().object(shown.object), change.resourceVersion));
    return true;
  }

  /** If one is due; everything before it is told. */
  #nextBookmark(): Buffer | undefined {
    const { resourceVersion } = this.#store;
    if (!this.#bookmarkIsDue) return undefined;
    this.#bookmarkIsDue = false;
    // To one that is ahead of this replica's copy it would be a step back.
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
    const now = this.#isFirst ? firstView : view;
    this.#isFirst = false;
    return now;
  }
}
