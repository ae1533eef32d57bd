/** Status and headers of a response of kube-apiserver, as they are written to the caller. */
import type { Response } from 'express';
import { ServerResponse } from 'node:http';
import { badGateway } from '../runtime/errors.ts';

/** Headers that can have only one value in HTTP/2. Node rejects a response with more values. */
const singleValueHeaders = new Set([
  'age',
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-md5',
  'content-range',
  'content-type',
  'date',
  'dnt',
  'etag',
  'expires',
  'last-modified',
  'location',
  'retry-after',
  'tk',
  'x-content-type-options',
  // Node also limits these request headers to one value.
  'authorization',
  'from',
  'host',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'max-forwards',
  'range',
  'referer',
  'upgrade-insecure-requests',
  'user-agent',
]);

/** Returns the values of each header by lower-case name: only the first value of headers in `singleValueHeaders`. */
export function valuesByName(headers: readonly string[]): [string, string[]][] {
  const values = new Map<string, string[]>();
  for (let at = 0; at < headers.length; at += 2) {
    const name = (headers[at] ?? '').toLowerCase();
    const earlier = values.get(name) ?? [];
    if (earlier.length === 0 || !singleValueHeaders.has(name)) values.set(name, [...earlier, headers[at + 1] ?? '']);
  }
  return [...values];
}

/**
 * Characters of a reason phrase (RFC 9112 section 4). Node accepts other characters in a response that it receives, but
 * refuses to write them.
 */
const reasonPhrase = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Removes the default headers of this server from the response, and writes the status and headers that kube-apiserver
 * returned. Throws StatusError 502 if Node cannot write them.
 */
export function writeHead(res: Response, status: number, message: string | undefined, headers: string[]): void {
  for (const name of ['Cache-Control', 'X-Content-Type-Options']) res.removeHeader(name);
  try {
    if (res instanceof ServerResponse)
      res.writeHead(status, message !== undefined && reasonPhrase.test(message) ? message : undefined, headers);
    else {
      // HTTP/2 has no reason phrase, and `writeHead` would keep only one value of each header.
      for (const [name, values] of valuesByName(headers)) (res as Response).setHeader(name, values);
      (res as Response).writeHead(status);
    }
  } catch (cause) {
    // The error response has its own headers; only the audit ID is the same.
    for (const [name] of valuesByName(headers)) if (name !== 'audit-id') res.removeHeader(name);
    throw badGateway('kube-apiserver returned a response that cannot be forwarded', { cause });
  }
}
