import type { RequestFilter } from '../exchange.ts';
import { parseAccept } from '../request/negotiate.ts';
import { isSecure } from '../listeners/face.ts';
import type { PlatformConfiguration } from '../../config/schema.ts';

/**
 * RFC 6797, at the host of gateway.externalURL alone: a browser applies the policy to every port of a host, and the host name of the
 * Service has plain HTTP at port 80.
 */
export function strictTransportSecurity(gateway: () => PlatformConfiguration['gateway']): RequestFilter {
  let own: { readonly externalURL: string; readonly hostname: string | undefined } | undefined;
  return ({ req, res }) => {
    const { externalURL, strictTransportSecurity: maxAge } = gateway();
    if (maxAge === 0 || !isSecure(req)) return;
    if (own?.externalURL !== externalURL) own = { externalURL, hostname: hostnameOf(externalURL) };
    if (hostnameOf(`https://${req.headers.host ?? ''}`) !== own.hostname) return;
    res.setHeader('Strict-Transport-Security', `max-age=${Math.ceil(maxAge / 1_000)}`);
  };
}

const hostnameOf = (url: string): string | undefined => URL.parse(url)?.hostname;

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
