import type { Filter } from '../exchange.ts';

/** API.md 1: on every answer unless a handler says otherwise. CORS only for configured origins, and never with credentials. */
export const securityHeaders =
  (allowedOrigins: () => readonly string[]): Filter =>
  ({ req, res }) => {
    res.setHeader('Cache-Control', 'no-cache, private');
    res.setHeader('X-Content-Type-Options', 'nosniff');
    const origin = req.headers.origin;
    if (origin === undefined || !allowedOrigins().includes(origin)) return;
    res.setHeader('Access-Control-Allow-Origin', origin);
    res.setHeader('Access-Control-Allow-Headers', 'Authorization, Content-Type, Accept');
    res.setHeader('Access-Control-Allow-Methods', 'GET, HEAD, POST, PUT, PATCH, DELETE');
    res.setHeader('Access-Control-Expose-Headers', 'Audit-Id, Retry-After');
    res.setHeader('Vary', 'Origin');
  };
