/** Decodes header values that name an identity. Node decodes headers as Latin-1, but names in Kubernetes are UTF-8. */
import { badRequest } from '../runtime/errors.ts';
import type { IncomingMessage } from 'node:http';

/**
 * Returns all values of all headers by lower-case name, without joining them: Node joins repeated headers, and its
 * headersDistinct does not exist for HTTP/2.
 */
export function headerValues({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): Map<string, string[]> {
  const headers = new Map<string, string[]>();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase();
    const values = headers.get(name);
    if (values === undefined) headers.set(name, [rawHeaders[at + 1] ?? '']);
    else values.push(rawHeaders[at + 1] ?? '');
  }
  return headers;
}

/** Keeps a byte order mark as part of the name. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Decodes a header value. Throws 400 for invalid UTF-8, because a replacement character would name a different user.
 */
export function identityText(header: string, value: string): string {
  if (isASCII(value)) return value;
  try {
    return utf8.decode(Buffer.from(value, 'latin1'));
  } catch {
    throw badRequest(`the header ${header} is not valid UTF-8`);
  }
}

const isASCII = (text: string): boolean => /^[ -~]*$/.test(text);

/**
 * Decodes the key of an extra field from the rest of the header name. A key with invalid percent-encoding is kept as
 * received, as in unescapeExtraKey of k8s.io/apiserver. Throws 400 for invalid UTF-8.
 */
export function extraKey(header: string, encoded: string): string {
  if (/%(?![0-9a-f]{2})/i.test(encoded)) return encoded;
  try {
    return decodeURIComponent(encoded);
  } catch {
    throw badRequest(`the name of the header ${header} is not valid UTF-8`);
  }
}
