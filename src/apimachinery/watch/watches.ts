/**
 * Serves the watches of a resource (k8s.io/apiserver pkg/endpoints/handlers/watch.go and pkg/storage/cacher). Changes
 * that the store receives in one turn of the event loop are encoded once for all watches that see the same changes. The
 * encoded changes are written to each connection.
 */
import type { Request, Response } from 'express';
import { setImmediate as turn } from 'node:timers/promises';
import { InProgress } from '../../runtime/bounded-cache.ts';
import { expired, type StatusError } from '../../runtime/errors.ts';
import { isHandshake } from '../../http/listeners/web-socket.ts';
import type { Framing } from '../../http/response/streamed-body.ts';
import { fanOutDelays } from '../../runtime/metrics/definitions.ts';
import { Wheel } from '../../runtime/wheel.ts';
import { Slice } from '../../runtime/slice.ts';
import type { Change } from '../../cluster/cache/history.ts';
import type { Store } from '../../cluster/cache/store.ts';
import type { View } from '../list/views.ts';
import { beginWatch, refuse } from './response.ts';
import { Channel } from './channel.ts';
import type { Format } from './frames.ts';
import { tooOldVersion, Watch, type WatchRequest } from './watch.ts';

/** Approximate maximum bytes of changes that are encoded together. */
const partSize = 256 * 1024;

/** Open watches of one store on /apis or /kapis. */
export class Watches<F> {
  readonly #store: Store<F>;
  readonly #open = new Map<Watch<F>, number>();
  readonly #channels = new Set<Channel<F>>();
  /** Channels that further watches can join, by their keys. */
  readonly #joinable = new InProgress<Channel<F>>('watch_channels');
  /** Numbers of lasting views, for the keys of channels. */
  readonly #views = new WeakMap<View<F>, number>();
  #viewCount = 0;
  readonly #wheel = new Wheel<Watch<F>>((watch) => this.#tick(watch));
  /** Changes that are not yet sent. */
  #pending: Change<F>[] = [];
  /** Position of the first pending change in the store's history. */
  #position = 0;
  #isSending = false;
  /** Arrival times of the pending changes, by `performance.now()`. */
  #arrivals: number[] = [];
  #unsubscribe: (() => void) | undefined;

  constructor(store: Store<F>) {
    this.#store = store;
  }

  /** Starts the response and writes events until the watch ends. Throws StatusError. */
  serve(req: Request, res: Response, request: WatchRequest<F>): void {
    const store = this.#store;
    const { from, serverSentEvents, isResumed } = request;
    const position = from === undefined ? store.history.position : store.history.positionAfter(from);
    const tooOld = (): StatusError => tooOldVersion(from, store.history.gapAt(from ?? 0)?.to);
    // If the status were 200, a client of server-sent events would repeat the same request forever.
    if (position === undefined && serverSentEvents === true && isResumed !== true && !isHandshake(res)) throw tooOld();
    const response = beginWatch(req, res, serverSentEvents);
    const { format, body } = response;
    if (req.method === 'HEAD') return body.end();
    if (position === undefined) return refuse(response, tooOld());
    this.#follow();
    const channel = this.#join(request, format, body.framing);
    const closed = (watch: Watch<F>): void => this.#leave(watch);
    const watch = new Watch({ request, store, channel, body, position, closed });
    channel.watches.add(watch);
    this.#open.set(watch, this.#wheel.put(watch, watch.due));
    res.once('close', () => watch.end());
    watch.start();
  }

  #follow(): void {
    if (this.#unsubscribe !== undefined) return;
    this.#position = this.#store.history.position;
    this.#unsubscribe = this.#store.subscribe({
      change: (change) => {
        this.#arrivals.push(performance.now());
        this.#pending.push(change);
        if (!this.#isSending) void this.#sendPending();
      },
      gap: (from, to) => {
        for (const watch of this.#open.keys()) watch.endWithin(from, to);
      },
      reset: () => {
        const error = expired('too old resource version: the history of the cluster was replaced');
        for (const watch of this.#open.keys()) watch.refuse(error);
      },
    });
  }

  #join({ view, filters }: WatchRequest<F>, format: Format, framing: Framing): Channel<F> {
    const { view: lasting, key: derivation } = view.origin ?? { view, key: '' };
    const isShared = filters.every((filter) => filter.key !== undefined);
    const key = isShared
      ? JSON.stringify([this.#numberOf(lasting), framing, format, derivation, ...filters.map((filter) => filter.key)])
      : undefined;
    const known = key === undefined ? undefined : this.#joinable.get(key);
    if (known !== undefined) return known;
    const channel = new Channel({ view, filters, format, framing, key });
    this.#channels.add(channel);
    if (key !== undefined) this.#joinable.set(key, channel);
    return channel;
  }

  #numberOf(view: View<F>): number {
    const number = this.#views.get(view) ?? (this.#viewCount += 1);
    this.#views.set(view, number);
    return number;
  }

  #leave(watch: Watch<F>): void {
    const { channel } = watch;
    this.#wheel.remove(watch, this.#open.get(watch) ?? 0);
    this.#open.delete(watch);
    channel.watches.delete(watch);
    if (channel.watches.size > 0) return;
    const { key } = channel.options;
    this.#channels.delete(channel);
    if (key !== undefined) this.#joinable.delete(key);
    if (this.#channels.size > 0) return;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#pending = [];
    this.#arrivals = [];
  }

  #tick(watch: Watch<F>): void {
    watch.tick();
    if (!watch.isOver) this.#open.set(watch, this.#wheel.put(watch, watch.due));
  }

  /** Sends pending changes in the next turn of the event loop, so that all changes of one turn are sent together. */
  async #sendPending(): Promise<void> {
    this.#isSending = true;
    while (this.#pending.length > 0) {
      // Waiting between two parts lets a client that keeps up read a part before the next part is written.
      await turn();
      const changes = this.#takePending();
      const [oldest] = this.#arrivals.splice(0, changes.length);
      // The changes were dropped, because no watch is open any more.
      if (oldest === undefined) break;
      const start = this.#position;
      this.#position += changes.length;
      await this.#send(changes, start);
      fanOutDelays.observe({}, (performance.now() - oldest) / 1_000);
      for (const watch of this.#open.keys()) if (watch.isLost) watch.cut();
    }
    this.#isSending = false;
  }

  /** Removes and returns the next changes to send together. */
  #takePending(): readonly Change<F>[] {
    let size = 0;
    let count = 0;
    while (count < this.#pending.length && size < partSize) {
      size += (this.#pending[count] as Change<F>).object.length;
      count += 1;
    }
    return this.#pending.splice(0, count);
  }

  /** Sends changes to all watches. The loop pauses for single turns, so that other work gets every other turn. */
  async #send(changes: readonly Change<F>[], start: number): Promise<void> {
    const end = start + changes.length;
    let slice = new Slice();
    for (const channel of this.#channels) {
      // If a channel is in lanes, its watches encode changes in the lanes of their users.
      const part = channel.isInLanes ? undefined : this.#partOf(channel, changes);
      for (const watch of channel.watches) {
        if (slice.isOver) {
          await turn();
          slice = new Slice();
        }
        watch.take(start, end, part);
      }
    }
  }

  #partOf(channel: Channel<F>, changes: readonly Change<F>[]): Buffer | undefined {
    try {
      return channel.part(changes);
    } catch (error) {
      for (const watch of channel.watches) watch.fail(error);
      return undefined;
    }
  }
}
