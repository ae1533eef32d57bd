/** Helpers for promises and streams. */

/**
 * Maps the items with at most `max` calls in progress. Throws the first failure. No further call starts after a
 * failure.
 */
export async function mapConcurrent<A, B>(
  items: readonly A[],
  max: number,
  map: (item: A) => Promise<B>,
): Promise<B[]> {
  const results: B[] = [];
  let hasFailed = false;
  const entries = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of entries) {
      if (hasFailed) return;
      results[index] = await map(item);
    }
  };
  const workers = Array.from({ length: Math.min(max, items.length) }, work);
  await Promise.all(workers).finally(() => (hasFailed = true));
  return results;
}

/**
 * Returns a function whose callers share requests. A caller never gets the response to a request that was sent before
 * its call, so every response is current. At most one request is in flight, and at most one more waits until that
 * request ends.
 */
export function sharedRequest<T>(send: () => Promise<T>): () => Promise<T> {
  let inFlight: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  function request(): Promise<T> {
    if (inFlight === undefined) {
      inFlight = send().finally(() => {
        inFlight = undefined;
      });
      return inFlight;
    }
    next ??= inFlight
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return request();
      });
    return next;
  }
  return request;
}

/**
 * Returns a promise that settles like `promise`, or rejects with the signal's reason as soon as the signal is aborted.
 */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** Reads a whole body. Throws the error from `tooLarge` as soon as the body exceeds `maxBytes`. */
export async function readBody(
  body: AsyncIterable<unknown>,
  maxBytes = Infinity,
  tooLarge: () => Error = () => new RangeError(`the body is larger than ${maxBytes} bytes`),
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += (chunk as Buffer).length;
    if (size > maxBytes) throw tooLarge();
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

/** Reads a whole body, and returns its last `maxBytes`. */
export async function readEnd(body: AsyncIterable<unknown>, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk as Buffer);
    size += (chunk as Buffer).length;
    while (size - (chunks[0]?.length ?? 0) >= maxBytes) size -= chunks.shift()?.length ?? 0;
  }
  return Buffer.concat(chunks).subarray(-maxBytes);
}
