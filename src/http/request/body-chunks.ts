import type { IncomingMessage } from 'node:http';
import { badRequest } from '../../runtime/errors.ts';

/**
 * Yields the whole body. Throws 400 if the client aborted the body, because an incomplete body must not look complete.
 * If the reader stops, the rest of the body is drained, so that the connection stays open for the response and the next
 * request.
 */
export async function* chunksOf(req: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    yield* req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  } catch (cause) {
    // The status is 400, because the client caused the error.
    throw badRequest('the request body is incomplete', { cause });
  } finally {
    req.resume();
  }
}
