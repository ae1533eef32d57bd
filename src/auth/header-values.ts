import type { IncomingMessage } from 'node:http';

/**
 * Every value of every header, by lower-case name, none joined with another: Node joins repeated headers, and its headersDistinct
 * does not exist for HTTP/2.
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
