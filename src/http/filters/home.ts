import type { RequestFilter } from '../exchange.ts';
import { parseAccept } from '../request/negotiate.ts';
import { isSecure } from '../listeners/secure.ts';

/**
 * Leads a browser that opens the server by its name to a page for people, which are there over TLS alone. Programs, and whoever shows an
 * identity, get what is at `/`.
 */
export const home =
  (page: string | undefined): RequestFilter =>
  ({ req, res, path }) => {
    const { method, headers } = req;
    if (path !== '/' || page === undefined || (method !== 'GET' && method !== 'HEAD')) return;
    const isBrowser = parseAccept(headers.accept).some(({ type, subtype }) => type === 'text' && subtype === 'html');
    if (!isBrowser || headers.authorization !== undefined || !isSecure(req)) return;
    res.statusCode = 303;
    res.setHeader('Location', page);
    res.appendHeader('Vary', 'Accept');
    res.setHeader('Content-Length', '0');
    res.end();
  };
