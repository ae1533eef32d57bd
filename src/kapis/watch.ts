/**
 * Following a resource (k8s.io/apiserver pkg/endpoints/handlers/watch.go and pkg/storage/cacher/cache_watcher.go). Each watch reads
 * the store's changes into a queue and writes them at its reader's pace; a frame is made once for all that ask for the same view.
 */
import type { Request, Response } from 'express';
import { setImmediate as turn } from 'node:timers/promises';
import { expired, StatusError } from '../errors.ts';
import { BodyWriter } from '../http/body-writer.ts';
import type { RequestContext } from '../http/route.ts';
import { Slice } from '../kube/slice.ts';
import type { Change } from '../kube/history.ts';
import type { Store } from '../kube/store.ts';
import type { StoredObject } from '../kube/stored-object.ts';
import type { Filter } from './query.ts';
import type { FrameType, View } from './views.ts';

export interface WatchRequest<F> {
  readonly store: Store<F>;
  /** Changes after this resourceVersion; undefined: from the present on. */
  readonly from: number | undefined;
  /** Begin with the present objects as ADDED. */
  readonly initialEvents: boolean;
  /** Mark the end of these by a BOOKMARK. */
  readonly initialEventsEnd: boolean;
  /** A BOOKMARK about each minute and one before the end. */
  readonly bookmarks: boolean;
  /** Each frame as a server-sent event (HTML, section 9.2), whose id is the resourceVersion to go on from. */
  readonly serverSentEvents?: boolean;
  /** Until the server ends it, in milliseconds. */
  readonly duration: number;
  readonly filters: readonly Filter<F>[];
  readonly view: View<F>;
  /** Of the first frame: a Table names its columns once. */
  readonly firstView: View<F>;
  /** Throws StatusError when the caller may no longer watch; asked about each minute and when the caller becomes another. */
  readonly recheck: () => Promise<void>;
  readonly onUserChange: RequestContext['onUserChange'];
  /** Aborted when the client goes away or the server drains. */
  readonly signal: AbortSignal;
}

export const eventStream = 'text/event-stream';

/** Until the server ends a watch, in milliseconds: what is asked for, else a random time of 30 to 60 minutes. */
export const watchDuration = (timeoutSeconds: number | undefined): number =>
  Math.min(timeoutSeconds === undefined ? 1_800_000 * (1 + Math.random()) : timeoutSeconds * 1000, 2 ** 31 - 1);

/** A reader that does not read and is so many changes behind is cut off; it can come back with its last resourceVersion. */
const longestQueue = 10_000;
const bookmarkInterval = 60_000;
const lastBookmark = 2000;
/** Frames go to the socket joined to about so many bytes. */
const batchSize = 256 * 1024;

const heads: Readonly<Record<FrameType | 'BOOKMARK' | 'ERROR', Buffer>> = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
  BOOKMARK: Buffer.from('{"type":"BOOKMARK","object":'),
  ERROR: Buffer.from('{"type":"ERROR","object":'),
};
const tail = Buffer.from('}\n');

const frame = (type: keyof typeof heads, object: readonly Buffer[]): Buffer =>
  Buffer.concat([heads[type], ...object, tail]);

const errorFrame = (error: StatusError): Buffer => frame('ERROR', [Buffer.from(JSON.stringify(error.toStatus()))]);

/** A frame has one line end, its last byte. Without an id the client keeps the one before. */
const event = (frameBytes: Buffer, id: number | undefined): Buffer =>
  Buffer.concat([Buffer.from(id === undefined ? 'data: ' : `id: ${id}\ndata: `), frameBytes, Buffer.from('\n')]);

/** Frames that several watches share, by change and view. */
const shared = new WeakMap<object, Map<object, Buffer>>();

function sharedFrame<F>(change: Change<F>, view: View<F>): Buffer {
  let frames = shared.get(change);
  if (frames === undefined) shared.set(change, (frames = new Map<object, Buffer>()));
  let bytes = frames.get(view);
  if (bytes === undefined) frames.set(view, (bytes = frame(change.type, view.object(change.object))));
  return bytes;
}

/** What a change is to a watch that sees only what its filters let through: undefined if nothing. */
function seen<F>(
  { type, object, previous, resourceVersion }: Change<F>,
  filters: readonly Filter<F>[],
): { type: FrameType; object: StoredObject<F> } | undefined {
  const passes = (state: StoredObject<F> | undefined): boolean =>
    state !== undefined && filters.every((filter) => filter(state));
  const before = passes(previous);
  const after = type !== 'DELETED' && passes(object);
  if (after) return { type: before ? 'MODIFIED' : 'ADDED', object };
  if (!before || previous === undefined) return undefined;
  return { type: 'DELETED', object: type === 'DELETED' ? object : previous.withResourceVersion(resourceVersion) };
}

function begin(res: Response, contentType = 'application/json'): BodyWriter {
  res.statusCode = 200;
  res.setHeader('Content-Type', contentType);
  res.setHeader('Cache-Control', 'no-cache, private');
  res.flushHeaders();
  return new BodyWriter(res);
}

/** Begins the answer and writes frames until the watch ends. Never throws: once begun, an error is a frame. */
export async function serveWatch<F>(req: Request, res: Response, request: WatchRequest<F>): Promise<void> {
  const { serverSentEvents = false } = request;
  const body = begin(res, serverSentEvents ? eventStream : undefined);
  if (req.method === 'HEAD') return body.end();
  const past = request.from === undefined ? [] : request.store.changesAfter(request.from);
  if (past === undefined) {
    const { from, store } = request;
    const bytes = errorFrame(expired(`too old resource version: ${from} (${store.oldestResourceVersion})`));
    await body.write(serverSentEvents ? event(bytes, undefined) : bytes);
    body.end();
    return;
  }
  await new Watch(body, request, past).run(res);
}

/** Ends a watch that cannot begin, the way that clients expect it: 200 and one ERROR. */
export async function refuseWatch(res: Response, error: StatusError): Promise<void> {
  const body = begin(res);
  await body.write(errorFrame(error));
  body.end();
}

type Queued<F> = Change<F> | { readonly bookmark: number; readonly initial: boolean } | { readonly error: StatusError };

class Watch<F> {
  readonly #body: BodyWriter;
  readonly #request: WatchRequest<F>;
  /** The objects at the start. */
  readonly #present: readonly StoredObject<F>[];
  #queue: Queued<F>[];
  /** Those before it are written. */
  #next = 0;
  #isFirst = true;
  #ended = false;
  /** Why nothing more may be told. */
  #refusal: StatusError | undefined;
  #wake: (() => void) | undefined;
  #batch: Buffer[] = [];
  #size = 0;

  constructor(body: BodyWriter, request: WatchRequest<F>, past: readonly Change<F>[]) {
    this.#body = body;
    this.#request = request;
    this.#queue = [...past];
    this.#present = request.initialEvents ? request.store.order('name').slice() : [];
    if (request.initialEventsEnd) this.#queue.push({ bookmark: request.store.resourceVersion, initial: true });
  }

  async run(res: Response): Promise<void> {
    const { store, signal, bookmarks, duration, onUserChange, from = 0 } = this.#request;
    const unsubscribe = store.subscribe({
      // A watch may begin ahead of this replica's copy.
      change: (change) => {
        if (change.resourceVersion > from) this.#push(change);
        if (this.#queue.length - this.#next > longestQueue && res.writableNeedDrain) res.destroy();
      },
      reset: () => this.#push({ error: expired('too old resource version: the history of the cluster was replaced') }),
    });
    const end = (): void => {
      this.#ended = true;
      this.#wake?.();
      // Nobody reads: the end would never be written either.
      if (res.writableNeedDrain) res.destroy();
    };
    const bookmark = (): void => {
      if (bookmarks) this.#push({ bookmark: store.resourceVersion, initial: false });
    };
    signal.addEventListener('abort', end);
    res.once('close', end);
    if (signal.aborted) end();
    const minute = setInterval(() => {
      bookmark();
      void this.#recheck();
    }, bookmarkInterval);
    onUserChange(() => void this.#recheck());
    const last = setTimeout(bookmark, Math.max(duration - lastBookmark, 0));
    const over = setTimeout(end, duration);
    try {
      await this.#write();
    } finally {
      unsubscribe();
      clearInterval(minute);
      clearTimeout(last);
      clearTimeout(over);
      signal.removeEventListener('abort', end);
    }
    this.#body.end();
  }

  async #recheck(): Promise<void> {
    try {
      await this.#request.recheck();
    } catch (error) {
      // An authorizer that cannot tell now is asked again.
      if (!(error instanceof StatusError) || error.code >= 500) return;
      this.#refusal = error;
      this.#wake?.();
    }
  }

  #push(item: Queued<F>): void {
    this.#queue.push(item);
    this.#wake?.();
  }

  async #write(): Promise<void> {
    const { filters } = this.#request;
    let slice = new Slice();
    for (const object of this.#present) {
      if (slice.isOver) await slice.next();
      if (!filters.every((filter) => filter(object))) continue;
      this.#add(frame('ADDED', this.#view().object(object)));
      if (this.#size >= batchSize) await this.#flush();
      if (this.#ended || this.#refusal !== undefined) break;
    }
    while (!this.#ended) {
      if (this.#refusal !== undefined) {
        this.#add(errorFrame(this.#refusal));
        return this.#flush();
      }
      if (this.#next === this.#queue.length) {
        await this.#flush();
        this.#queue = this.#queue.slice(this.#next);
        this.#next = 0;
        if (this.#queue.length === 0) await this.#change();
        slice = new Slice();
        continue;
      }
      const item = this.#queue[this.#next] as Queued<F>;
      this.#next += 1;
      if ('error' in item) {
        this.#add(errorFrame(item.error));
        return this.#flush();
      }
      this.#take(item);
      if (this.#size >= batchSize) await this.#flush();
      if (slice.isOver) await slice.next();
    }
  }

  /** Resolves a turn of the event loop after something was queued: all that one turn brought goes out together. */
  async #change(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (this.#ended || this.#refusal !== undefined) resolve();
    });
    this.#wake = undefined;
    await turn();
  }

  #take(item: Exclude<Queued<F>, { error: StatusError }>): void {
    if ('bookmark' in item) {
      this.#add(frame('BOOKMARK', this.#view().bookmark(item.bookmark, item.initial)), item.bookmark);
      return;
    }
    const { resourceVersion } = item;
    const change = seen(item, this.#request.filters);
    if (change === undefined) return;
    const view = this.#view();
    const isWhole = change.type === item.type && change.object === item.object;
    const isShared = isWhole && view === this.#request.view && view.own !== true;
    this.#add(isShared ? sharedFrame(item, view) : frame(change.type, view.object(change.object)), resourceVersion);
  }

  #view(): View<F> {
    const { view, firstView } = this.#request;
    const now = this.#isFirst ? firstView : view;
    this.#isFirst = false;
    return now;
  }

  #add(bytes: Buffer, id?: number): void {
    const sent = this.#request.serverSentEvents === true ? event(bytes, id) : bytes;
    this.#batch.push(sent);
    this.#size += sent.length;
  }

  async #flush(): Promise<void> {
    const [only] = this.#batch;
    if (only === undefined) return;
    const bytes = this.#batch.length === 1 ? only : Buffer.concat(this.#batch, this.#size);
    this.#batch = [];
    this.#size = 0;
    await this.#body.write(bytes);
  }
}
