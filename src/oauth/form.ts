import type { Request } from 'express';
import { Http2ServerRequest } from 'node:http2';
import { OAuthError } from '../errors.ts';

const mediaType = 'application/x-www-form-urlencoded';
const limit = 64 * 1024;
/** Milliseconds. A body that does not come must not hold its place. */
const longestWait = 10_000;

/** RFC 6749 appendix B knows UTF-8 only. */
const accepted = new RegExp(`^${mediaType}\\s*(;\\s*(charset="?utf-8"?\\s*)?)?$`, 'i');
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The form of a request to an OAuth endpoint. RFC 6749 section 3.2: parameters without a value are treated as omitted, none may
 * be repeated; a bearer never stands in a form. Throws OAuthError 415, 413, 408 or 400.
 */
export async function readForm(req: Request, wait: number = longestWait): Promise<ReadonlyMap<string, string>> {
  if (!accepted.test(req.headers['content-type'] ?? ''))
    throw new OAuthError('invalid_request', `the body must be ${mediaType} in UTF-8`, { status: 415 });
  if (!/^identity$/i.test(req.headers['content-encoding'] ?? 'identity'))
    throw new OAuthError('invalid_request', 'the body must not be compressed', {
      status: 415,
      headers: { 'Accept-Encoding': 'identity' },
    });
  const body = await readBody(req, wait);
  const form = new Map<string, string>();
  for (const pair of textOf(body).split('&')) {
    if (pair === '') continue;
    const at = pair.indexOf('=');
    const name = decode(at === -1 ? pair : pair.slice(0, at));
    const value = at === -1 ? '' : decode(pair.slice(at + 1));
    if (form.has(name)) throw new OAuthError('invalid_request', `the parameter ${JSON.stringify(name)} is repeated`);
    form.set(name, value);
  }
  if (form.has('access_token'))
    throw new OAuthError('invalid_request', 'an access token belongs in the Authorization header, never in a form');
  for (const [name, value] of form) if (value === '') form.delete(name);
  return form;
}

/** Over HTTP/2 nothing need announce a body (RFC 9113 section 8.1.1): only its end says how long it is. */
async function readBody(req: Request, wait: number): Promise<Buffer> {
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<Buffer>((resolve, reject) => {
      const refuse = (description: string, status: number, headers = {}): void =>
        reject(new OAuthError('invalid_request', description, { status, headers }));
      const chunks: Buffer[] = [];
      let size = 0;
      // They stay when all is said: what comes later is read and dropped.
      req.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size <= limit) chunks.push(chunk);
        else refuse('the body of the request is too large', 413);
      });
      req.on('end', () => resolve(Buffer.concat(chunks)));
      for (const event of ['error', 'aborted', 'close']) req.on(event, () => refuse('the request was aborted', 400));
      timer = setTimeout(() => {
        // HTTP/2 knows no such header.
        const headers = req instanceof Http2ServerRequest ? {} : { Connection: 'close' };
        refuse('the body of the request did not arrive in time', 408, headers);
      }, wait);
    });
  } finally {
    clearTimeout(timer);
  }
}

function textOf(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new OAuthError('invalid_request', 'the form is no UTF-8');
  }
}

/** RFC 6749 appendix B: UTF-8, percent-encoded, a plus for a space. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw new OAuthError('invalid_request', 'the form has a bad percent-encoding or is no UTF-8');
  }
}

/** A parameter that must be there. */
export function required(form: ReadonlyMap<string, string>, name: string): string {
  const value = form.get(name);
  if (value === undefined) throw new OAuthError('invalid_request', `the parameter "${name}" is missing`);
  return value;
}
