import type { IncomingMessage } from 'node:http';
import { badRequest } from '../../runtime/errors.ts';

/**
 * Yields the whole body, or throws 400, because a body that the client aborted must not look complete. If the reader
 * stops, the rest is drained, so that the connection stays open for the response and the next request.
 */
export async function* chunksOf(req: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    yield* req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  } catch (cause) {
    // The client caused the error, not a dependency.
    throw badRequest('the request body is incomplete', { cause });
  } finally {
    req.resume();
  }
}
