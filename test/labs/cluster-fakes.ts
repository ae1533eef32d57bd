import { PassThrough, Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../src/runtime/time.ts';
import type { KubeClient, KubeRequest, KubeResponse } from '../../src/cluster/client/client.ts';
import type { Change } from '../../src/cluster/cache/history.ts';
import type { KubeObject } from '../../src/cluster/client/kube-object.ts';
import type { Store } from '../../src/cluster/cache/store.ts';

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/** A clock whose time changes only when `advance` is called. */
export class FakeClock implements Clock {
  #now = 1_000_000;
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  after(milliseconds: number, run: () => void): () => void {
    const timer = { at: this.#now + milliseconds, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  random(): number {
    return 0.5;
  }

  /** Returns the milliseconds until each pending timer, in ascending order. */
  pending(): number[] {
    return [...this.#timers].map(({ at }) => at - this.#now).toSorted((a, b) => a - b);
  }

  /**
   * Advances the time and runs the timers that are due. Waits for one turn of the event loop after each timer, and for
   * `settle` after the last timer of the same time.
   */
  async advance(milliseconds: number): Promise<void> {
    const end = this.#now + milliseconds;
    for (;;) {
      let next = Infinity;
      for (const { at } of this.#timers) next = Math.min(next, at);
      if (next > end) break;
      this.#now = next;
      const due = [...this.#timers].filter(({ at }) => at === next);
      // A timer that is due can cancel another timer that is due.
      for (const timer of due) {
        if (!this.#timers.delete(timer)) continue;
        timer.run();
        await turn();
      }
      await settle();
    }
    this.#now = end;
    await settle();
  }
}

/** Waits for a few turns of the event loop, in which all pending promises settle. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 5; i += 1) await turn();
}

/** A request whose response the test controls. */
export class FakeRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal | undefined;
  readonly body: PassThrough = new PassThrough();
  readonly #resolve: (response: KubeResponse) => void;
  readonly #reject: (error: Error) => void;

  constructor(
    path: string,
    options: KubeRequest,
    resolve: (response: KubeResponse) => void,
    reject: (error: Error) => void,
  ) {
    this.path = path;
    this.query = Object.fromEntries(Object.entries(options.query ?? {}).filter(([, value]) => value !== undefined));
    this.signal = options.signal;
    this.#resolve = resolve;
    this.#reject = reject;
    this.body.on('error', () => undefined);
    options.signal?.addEventListener('abort', () => {
      const reason = options.signal?.reason as Error;
      this.#reject(reason);
      this.body.destroy(reason);
    });
  }

  async respond(status: number, body: unknown): Promise<void> {
    this.#resolve({ status, headers: {}, body: Readable.from([Buffer.from(JSON.stringify(body))]) });
    await settle();
  }

  async fail(error: Error): Promise<void> {
    this.#reject(error);
    await settle();
  }

  /** Starts a response of status 200 whose body is written in pieces. */
  async open(): Promise<void> {
    this.#resolve({ status: 200, headers: {}, body: this.body });
    await settle();
  }

  async send(...events: unknown[]): Promise<void> {
    this.body.write(events.map((event) => `${JSON.stringify(event)}\n`).join(''));
    await settle();
  }

  async sendBytes(bytes: Buffer): Promise<void> {
    this.body.write(bytes);
    await settle();
  }

  async end(): Promise<void> {
    this.body.end();
    await settle();
  }

  async reset(): Promise<void> {
    this.body.destroy(new Error('read ECONNRESET'));
    await settle();
  }
}

/** A kube-apiserver that holds each request until the test responds. */
export class FakeCluster implements Pick<KubeClient, 'stream'> {
  readonly requests: FakeRequest[] = [];

  stream(path: string, options: KubeRequest = {}): Promise<KubeResponse> {
    return new Promise((resolve, reject) => {
      this.requests.push(new FakeRequest(path, options, resolve, reject));
    });
  }

  /** Responds to the last request with a list, and opens the watch that follows. Returns the request of the watch. */
  async list(items: readonly unknown[], resourceVersion: string): Promise<FakeRequest> {
    await this.last.respond(200, listOf(items, { resourceVersion }));
    const watch = this.last;
    await watch.open();
    return watch;
  }

  get last(): FakeRequest {
    const request = this.requests.at(-1);
    if (request === undefined) throw new Error('no request is pending');
    return request;
  }
}

export const status = (code: number, reason: string): Record<string, unknown> => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  message: `${reason} in a test`,
  reason,
  code,
});

export const configMap = (name: string, resourceVersion: string, data = {}): KubeObject & { data: object } => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { name, namespace: 'default', uid: `uid-${name}`, resourceVersion },
  data,
});

export const listOf = (items: readonly unknown[], metadata: object): object => ({
  kind: 'ConfigMapList',
  apiVersion: 'v1',
  metadata,
  items,
});

export const bookmark = (resourceVersion: string): unknown => ({
  type: 'BOOKMARK',
  object: { kind: 'ConfigMap', apiVersion: 'v1', metadata: { resourceVersion, creationTimestamp: null } },
});

/**
 * Returns the changes after a resourceVersion in the form of a watch, oldest first; undefined if the history does not
 * reach back that far.
 */
export function changesAfter<F>(store: Store<F>, resourceVersion: number): readonly Change<F>[] | undefined {
  const first = store.history.positionAfter(resourceVersion);
  if (first === undefined) return undefined;
  const changes: Change<F>[] = [];
  for (let change = store.history.at(first); change !== undefined; change = store.history.at(first + changes.length))
    changes.push(change);
  return changes;
}
