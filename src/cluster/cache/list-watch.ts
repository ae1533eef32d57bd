/** Sends the list and watch requests for one collection, one at a time (client-go tools/cache ListWatch). */
import type { Readable } from 'node:stream';
import { readBody } from '../../runtime/promises.ts';
import type { Clock } from '../../runtime/time.ts';
import type { KubeClient } from '../client/client.ts';
import { KubeError } from '../client/kube-error.ts';
import { metadataAs } from '../client/kube-object.ts';
import { lines, splitList, type SplitList } from './kube-responses.ts';

export interface Collection {
  readonly client: Pick<KubeClient, 'stream'>;
  /** Path of the collection, such as /api/v1/nodes. */
  readonly path: string;
  readonly fieldSelector?: string;
  /** True to request metav1.PartialObjectMetadata. */
  readonly metadataOnly?: boolean;
}

interface ListWatchOptions extends Collection {
  readonly clock: Clock;
  /** Milliseconds without a byte from kube-apiserver after which a request is interrupted. */
  readonly maxSilence: number;
  /** Aborts every request. */
  readonly signal: AbortSignal;
}

type Query = Readonly<Record<string, string | number | undefined>>;

/** Error for a request that this server aborted itself. kube-apiserver may be healthy. */
export class Interrupted extends Error {}

const headersTimeout = 60_000;
/** Objects in the first page, and at most in a later page. Many small pages cost kube-apiserver more than few large. */
const [firstPageSize, maxPageSize] = [500, 2_000];
/** Bytes that a page has after the first page. */
const usualPageBytes = 2 * 1024 * 1024;
/** Maximum bytes of a page with several objects. A page is scanned in one step. etcd stores objects of up to 1.5 MB. */
const maxPageBytes = 4 * usualPageBytes;

class PageTooLarge extends Error {}

/**
 * Memory for the text of one page at a time. It is reused, because new buffers of this size for each page would leave
 * the C heap fragmented.
 */
class PageMemory {
  #memory = Buffer.allocUnsafeSlow(64 * 1024);

  /** Returns a view of the memory. Throws PageTooLarge as soon as the page exceeds `maxBytes`. */
  async read(chunks: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
    let length = 0;
    for await (const chunk of chunks) {
      const end = length + chunk.length;
      if (end > maxBytes) throw new PageTooLarge();
      if (end > this.#memory.length) this.#grow(end, length);
      chunk.copy(this.#memory, length);
      length = end;
    }
    return this.#memory.subarray(0, length);
  }

  #grow(minLength: number, used: number): void {
    const memory = Buffer.allocUnsafeSlow(Math.max(minLength, 2 * this.#memory.length));
    this.#memory.copy(memory, 0, 0, used);
    this.#memory = memory;
  }
}

export class ListWatch {
  /** Time of the last data from kube-apiserver, in milliseconds since the epoch; 0 before any data has arrived. */
  lastSignOfLife = 0;
  readonly #options: ListWatchOptions;
  /** Maximum objects of the next page. */
  #pageSize = firstPageSize;
  #interruption = new AbortController();
  /** Time of the last data or of the start of the request, by the monotonic clock. */
  #lastData = 0;
  #cancelTimer: () => void = () => undefined;

  constructor(options: ListWatchOptions) {
    this.#options = options;
  }

  /**
   * Yields the pages of a list. kube-apiserver prepares the next page while the caller handles a page. The texts of a
   * page are valid until the caller takes the next page.
   */
  async *list(): AsyncGenerator<SplitList, void> {
    this.#pageSize = firstPageSize;
    let [memory, otherMemory] = [new PageMemory(), new PageMemory()];
    let next: Promise<SplitList> | undefined = this.#page(memory);
    try {
      while (next !== undefined) {
        const page: SplitList = await next;
        const { continue: token = '' } = page.metadata;
        [memory, otherMemory] = [otherMemory, memory];
        next = token === '' ? undefined : this.#page(memory, token);
        // Prevents an unhandled rejection. The error is thrown when the page is awaited.
        next?.catch(() => undefined);
        yield page;
      }
    } finally {
      if (next !== undefined) this.interrupt('the list was abandoned');
    }
  }

  /**
   * Reads a page, and determines the size of the next page from the size of its objects. Requests fewer objects if the
   * page is too large. One object is always accepted.
   */
  async #page(memory: PageMemory, token?: string): Promise<SplitList> {
    for (;;) {
      const limit = this.#pageSize;
      const maxBytes = limit === 1 ? Infinity : maxPageBytes;
      const query = { limit, continue: token };
      const read = (chunks: AsyncIterable<Buffer>): Promise<Buffer> => memory.read(chunks, maxBytes);
      try {
        const text = await this.#request(query, 'PartialObjectMetadataList', read);
        const page = splitList(text);
        const objectBytes = text.length / Math.max(page.items.length, 1);
        this.#pageSize = Math.min(Math.ceil(usualPageBytes / objectBytes), 4 * limit, maxPageSize);
        return page;
      } catch (error) {
        if (!(error instanceof PageTooLarge)) throw error;
        this.#pageSize = Math.ceil(limit / 4);
      }
    }
  }

  /** Calls `follow` with the events when the watch is open. */
  watch<R>(query: Query, follow: (events: AsyncIterable<Buffer>) => Promise<R>): Promise<R> {
    const parameters = { watch: 'true', allowWatchBookmarks: 'true', ...query };
    return this.#request(parameters, 'PartialObjectMetadata', (chunks) => follow(lines(chunks)));
  }

  /** Makes the request in flight throw Interrupted. */
  interrupt(reason: string): void {
    this.#interruption.abort(new Interrupted(reason));
  }

  async #request<R>(query: Query, kind: string, read: (chunks: AsyncIterable<Buffer>) => Promise<R>): Promise<R> {
    const { client, path, fieldSelector, metadataOnly = false, signal } = this.#options;
    this.#interruption = new AbortController();
    const interruption = this.#interruption.signal;
    try {
      this.#restartTimer();
      const response = await client.stream(path, {
        query: { fieldSelector, ...query },
        ...(metadataOnly ? { headers: { accept: metadataAs(kind) } } : {}),
        signal: AbortSignal.any([signal, interruption]),
        timeout: headersTimeout,
      });
      this.#restartTimer();
      const chunks = this.#chunks(response.body);
      if (response.status !== 200) throw KubeError.from(response.status, (await readBody(chunks)).toString('utf8'));
      this.lastSignOfLife = this.#options.clock.now();
      return await read(chunks);
    } catch (error) {
      throw interruption.aborted ? interruption.reason : error;
    } finally {
      this.#cancelTimer();
    }
  }

  async *#chunks(body: Readable): AsyncGenerator<Buffer> {
    for await (const chunk of body) {
      this.#lastData = this.#options.clock.monotonic();
      this.lastSignOfLife = this.#options.clock.now();
      yield chunk as Buffer;
    }
  }

  #restartTimer(): void {
    this.#lastData = this.#options.clock.monotonic();
    this.#waitForSilence(this.#options.maxSilence);
  }

  /** Waits `delay` milliseconds, and then for the rest of the silence. The timer is not restarted at each chunk. */
  #waitForSilence(delay: number): void {
    const { clock, maxSilence } = this.#options;
    this.#cancelTimer();
    this.#cancelTimer = clock.after(delay, () => {
      const rest = this.#lastData + maxSilence - clock.monotonic();
      if (rest > 0) this.#waitForSilence(rest);
      else this.interrupt(`kube-apiserver sent nothing for ${maxSilence / 1000} s`);
    });
  }
}
