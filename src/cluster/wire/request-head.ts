/** Serializes the request line and the headers (RFC 9112 section 3). */
import { badRequest } from '../../runtime/errors.ts';
import { notInValues, token } from './response-parser.ts';

/** Methods for which a request without a body needs `Content-Length: 0` (RFC 9110 section 8.6). */
const mayHaveBody = new Set(['POST', 'PUT', 'PATCH']);

export interface RequestHead {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly host: string;
  /** Alternating names and values, one character per byte, without headers that frame the body. */
  readonly headers: readonly string[];
  /** Bytes of the body; if undefined, the body is chunked. */
  readonly length?: number | undefined;
  readonly hasBody: boolean;
}

type HeaderFields = Readonly<Record<string, string | readonly string[]>>;

/**
 * Returns alternating names and values; a header with several values appears once per value. A header of a later layer
 * replaces the headers with the same name in earlier layers. Names are case-insensitive (RFC 9110 section 5.1).
 */
export function fieldsOf(...layers: readonly HeaderFields[]): string[] {
  const fields = new Map<string, string[]>();
  for (const layer of layers)
    for (const [name, values] of Object.entries(layer))
      fields.set(
        name.toLowerCase(),
        [values].flat().flatMap((value) => [name, value]),
      );
  return [...fields.values()].flat();
}

const identity = /^(?:authorization$|impersonate-)/i;
const single = new Set(['authorization', 'impersonate-user', 'impersonate-uid']);

/**
 * Throws if the headers are ambiguous about the impersonated user: kube-apiserver uses the first of several
 * `Impersonate-User` headers, and ignores an empty one. The right to impersonate is root-equivalent.
 */
export function assertOneIdentity(headers: readonly string[]): void {
  const seen = new Set<string>();
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] as string;
    if (!identity.test(name)) continue;
    const lower = name.toLowerCase();
    if (single.has(lower) && (seen.has(lower) || (headers[at + 1] ?? '').trim() === ''))
      throw new Error(`a request to kube-apiserver has several headers ${lower} or an empty one`);
    seen.add(lower);
  }
  seen.delete('authorization');
  if (seen.size > 0 && !seen.has('impersonate-user'))
    throw new Error('a request to kube-apiserver has impersonation headers without impersonate-user');
}

/** Returns the head of a request. Throws StatusError for characters that would change the meaning of the head. */
export function headOf({ method, target, host, headers, length, hasBody }: RequestHead): string {
  if (!token.test(method)) throw badRequest('the method of the request is malformed');
  if (/[^\x21-\xff]/.test(target)) throw badRequest('the path has a character that must be percent-encoded');
  assertOneIdentity(headers);
  let head = `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\n`;
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] as string;
    const value = headers[at + 1] as string;
    if (!token.test(name)) throw badRequest('the request has a malformed header name');
    if (notInValues.test(value))
      throw badRequest(`the value of the header ${name} has a character that is not allowed`);
    head += `${name}: ${value}\r\n`;
  }
  if (!hasBody) return mayHaveBody.has(method) ? `${head}Content-Length: 0\r\n\r\n` : `${head}\r\n`;
  return length === undefined
    ? `${head}Transfer-Encoding: chunked\r\n\r\n`
    : `${head}Content-Length: ${length}\r\n\r\n`;
}
