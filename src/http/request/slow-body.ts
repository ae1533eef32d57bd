import type { Request } from 'express';
import { Http2ServerRequest } from 'node:http2';
import { OAuthError } from '../../runtime/errors.ts';
import type { Arrival } from '../route.ts';

const maxSize = 64 * 1024;
/** Milliseconds for a body to arrive: an incomplete body must not hold its slot for longer. */
const maxWait = 10_000;
/** Milliseconds after which an incomplete body moves to the slots for slow bodies. */
const grace = 100;

/**
 * Reads the body of a request to an OAuth endpoint. `name` is its media type; `arrival` moves the request between slots
 * while its body arrives. Throws OAuthError 415, 413, 408 or 400, and StatusError 429. The libraries raw-body and
 * type-is are not used, because they support neither slots for slow bodies nor a time limit.
 */
export async function readBody(
  req: Request,
  name: string,
  arrival: Arrival | undefined,
  wait: number = maxWait,
): Promise<Buffer> {
  // RFC 6749 appendix B and RFC 8259 section 8.1 allow only UTF-8.
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

/** Reads the bytes up to the end of the stream: HTTP/2 requires no Content-Length (RFC 9113 section 8.1.1). */
async function readBytes(req: Request, arrival: Arrival | undefined, wait: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let isOver = false;
  let isAwaited = false;
  let timer: NodeJS.Timeout | undefined;
  let slow: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const refuse = (description: string, status: number, headers = {}): void => {
        // Every request ends with the event `close`.
        if (!isOver) reject(new OAuthError('invalid_request', description, { status, headers }));
        isOver = true;
      };
      let size = 0;
      // The listeners stay after the promise is settled, so that later data is read and dropped.
      req.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > maxSize) refuse('the body of the request is too large', 413);
        else if (!isOver) chunks.push(chunk);
      });
      req.on('end', () => {
        isOver = true;
        resolve();
      });
      for (const event of ['error', 'aborted', 'close']) req.on(event, () => refuse('the request was aborted', 400));
      timer = setTimeout(() => {
        // HTTP/2 has no Connection header.
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
