import type { RequestFilter } from '../exchange.ts';

/** RFC 9700 section 2.6: people are led there, no script has anything to read. */
const neverForScripts = '/oauth/authorize';

/** On every answer unless a handler says otherwise. CORS only for configured origins, and never with credentials. */
export const securityHeaders =
  (allowedOrigins: () => readonly string[]): RequestFilter =>
  ({ req, res, path }) => {
    res.setHeader('Cache-Control', 'no-cache, private');
    res.setHeader('X-Content-Type-Options', 'nosniff');
    const origins = allowedOrigins();
    if (origins.length > 0) res.setHeader('Vary', 'Origin');
    const { origin } = req.headers;
    if (origin === undefined || !origins.includes(origin) || path === neverForScripts) return;
    res.setHeader('Access-Control-Allow-Origin', origin);
    res.setHeader('Access-Control-Allow-Headers', 'Authorization, Content-Type, Accept');
    res.setHeader('Access-Control-Allow-Methods', 'GET, HEAD, POST, PUT, PATCH, DELETE');
    res.setHeader('Access-Control-Expose-Headers', 'Audit-Id, Retry-After');
    // A preflight carries no identity (Fetch standard, section 3.2.2) and asks for nothing else.
    if (req.method !== 'OPTIONS' || req.headers['access-control-request-method'] === undefined) return;
    res.setHeader('Access-Control-Max-Age', '600');
    res.statusCode = 204;
    res.end();
  };
