import type { Request } from 'express';
import { Http2ServerRequest } from 'node:http2';
import { OAuthError } from '../../runtime/errors.ts';
import type { Arrival } from '../route.ts';

const limit = 64 * 1024;
/** Milliseconds. A body that does not come must not hold its place. */
const longestWait = 10_000;
/** Milliseconds in which bodies come that their senders do not hold back: they need no slot of their own. */
const grace = 100;

/**
 * Reads the body of a request to an OAuth endpoint. `name` is its media type; `arrival` counts the request while its body arrives. Throws
 * OAuthError 415, 413, 408 or 400, and StatusError 429.
 * The libraries raw-body and type-is know neither a slot for a slow body nor a limit of time.
 */
export async function readBody(
  req: Request,
  name: string,
  arrival: Arrival | undefined,
  wait: number = longestWait,
): Promise<Buffer> {
  // RFC 6749 appendix B, and RFC 8259 section 8.1, know UTF-8 only.
  const accepted = new RegExp(`^${name}\\s*(;\\s*(charset="?utf-8"?\\s*)?)?$`, 'i');
  if (!accepted.test(req.headers['content-type'] ?? ''))
    throw new OAuthError('invalid_request', `the body must be ${name} in UTF-8`, { status: 415 });
  if (!/^identity$/i.test(req.headers['content-encoding'] ?? 'identity'))
    throw new OAuthError('invalid_request', 'the body must not be compressed', {
      status: 415,
      headers: { 'Accept-Encoding': 'identity' },
    });
  return await readBytes(req, arrival, wait);
}

/** Over HTTP/2 nothing need announce a body (RFC 9113 section 8.1.1): only its end says how long it is. */
async function readBytes(req: Request, arrival: Arrival | undefined, wait: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let isOver = false;
  let isAwaited = false;
  let timer: NodeJS.Timeout | undefined;
  let slow: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const refuse = (description: string, status: number, headers = {}): void =>
        reject(new OAuthError('invalid_request', description, { status, headers }));
      let size = 0;
      // They stay when all is said: what comes later is read and dropped.
      req.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > limit) refuse('the body of the request is too large', 413);
        else if (!isOver) chunks.push(chunk);
      });
      req.on('end', () => resolve());
      for (const event of ['error', 'aborted', 'close']) req.on(event, () => refuse('the request was aborted', 400));
      timer = setTimeout(() => {
        // HTTP/2 knows no such header.
        const headers = req instanceof Http2ServerRequest ? {} : { Connection: 'close' };
        refuse('the body of the request did not arrive in time', 408, headers);
      }, wait);
      slow = setTimeout(() => {
        try {
          isAwaited = true;
          arrival?.awaitBody();
        } catch (error) {
          reject(error);
        }
      }, grace);
    });
    if (isAwaited) arrival?.bodyArrived();
    return Buffer.concat(chunks);
  } finally {
    isOver = true;
    chunks.length = 0;
    clearTimeout(timer);
    clearTimeout(slow);
  }
}
