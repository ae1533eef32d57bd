import type { Response } from 'express';
import type { ServerHttp2Stream } from 'node:http2';

/** The stream of a response over HTTP/2. */
export const http2StreamOf = (res: Response): ServerHttp2Stream | undefined =>
  (res as Response & { readonly stream?: ServerHttp2Stream }).stream;

/**
 * Ends a response that is incomplete, so that its client knows. Over HTTP/1.1 the connection ends before the body does. Over HTTP/2 the
 * stream is reset with INTERNAL_ERROR: curl and Node take a reset with NO_ERROR for the end of the body, which is what `destroy` without
 * an error sends, and Node takes CANCEL for it too.
 */
export function cutOff(res: Response): void {
  const stream = http2StreamOf(res);
  if (stream === undefined) res.destroy();
  else stream.destroy(new Error('the response is incomplete'));
}
