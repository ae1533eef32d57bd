import type { IncomingMessage } from 'node:http';
import type { RequestFilter } from '../exchange.ts';
import { parseAccept } from '../request/negotiate.ts';
import { isSecure } from '../listeners/http-handler.ts';
import { OAuthError } from '../../runtime/errors.ts';
import type { PlatformConfiguration } from '../../config/schema.ts';

/**
 * Sends Strict-Transport-Security (RFC 6797), only at the host of gateway.externalURL. Browsers apply the policy to
 * every port of a host, and the host name of the Service serves plain HTTP at port 80.
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

/**
 * Path that RFC 9700 section 2.6 excludes from CORS. Browsers are redirected to this path, and scripts must not read
 * its responses.
 */
const withoutCORS = '/oauth/authorize';

/**
 * Sets security headers, which handlers can override. CORS is allowed only for configured origins, and never with
 * credentials.
 */
export const securityHeaders =
  (allowedOrigins: () => readonly string[]): RequestFilter =>
  ({ req, res, path }) => {
    res.setHeader('Cache-Control', 'no-cache, private');
    res.setHeader('X-Content-Type-Options', 'nosniff');
    const origins = allowedOrigins();
    if (origins.length > 0) res.setHeader('Vary', 'Origin');
    const { origin } = req.headers;
    if (origin === undefined || !origins.includes(origin) || path === withoutCORS) return;
    res.setHeader('Access-Control-Allow-Origin', origin);
    res.setHeader('Access-Control-Allow-Headers', 'Authorization, Content-Type, Accept');
    res.setHeader('Access-Control-Allow-Methods', 'GET, HEAD, POST, PUT, PATCH, DELETE');
    res.setHeader('Access-Control-Expose-Headers', 'Audit-Id, Retry-After, Warning');
    // A preflight carries no credentials (Fetch standard, section 3.2.2) and needs only these headers.
    if (req.method !== 'OPTIONS' || req.headers['access-control-request-method'] === undefined) return;
    res.setHeader('Access-Control-Max-Age', '600');
    res.statusCode = 204;
    res.end();
  };

export interface PageOptions {
  /** Path of the page for browsers that open `/`. */
  readonly home?: string | undefined;
  /** URL at which browsers reach the HTTPS port, without a trailing slash; undefined if it is unknown. */
  readonly publicURL?: (() => string | undefined) | undefined;
}

/**
 * Redirects browsers that open `/` to the home page, and browsers that open a page over plain HTTP to the same page
 * over HTTPS. Other clients get the list of paths at `/`, and a 404 that contains the HTTPS URL for pages that require
 * TLS. The target comes only from the configuration. The client chooses Host and X-Forwarded-Host, so using them would
 * create an open redirect.
 */
export const pageRedirect =
  ({ home, publicURL }: PageOptions): RequestFilter =>
  ({ req, res, path, route }) => {
    const isHome = path === '/' && home !== undefined;
    const secure = isSecure(req);
    if (!isHome && (secure || route.isPage !== true)) return;
    // A proxy that terminates TLS would forward the redirected request here over plain HTTP again.
    const isProxied = !secure && terminatesTLS(req);
    const base = secure ? '' : isProxied ? undefined : publicURL?.();
    if (base === undefined || !isBrowser(req)) {
      if (route.isTLSOnly === true && !secure) throw tlsRequired(base && `${base}${path}`, isProxied);
      return;
    }
    // The redirect is temporary, because the configuration may change.
    res.statusCode = secure ? 303 : 307;
    res.setHeader('Location', `${base}${isHome ? home : req.url}`);
    res.appendHeader('Vary', 'Accept');
    res.setHeader('Content-Length', '0');
    res.end();
  };

const tlsRequired = (url: string | undefined, isProxied: boolean): OAuthError =>
  new OAuthError(
    'invalid_request',
    `this page is available over https only${
      isProxied
        ? '; a proxy that terminates TLS must connect to this server over https'
        : url === undefined
          ? '; /.well-known/openid-configuration has the address of this server'
          : `: ${url}`
    }`,
    { status: 404 },
  );

const isBrowser = ({ method, headers }: IncomingMessage): boolean =>
  (method === 'GET' || method === 'HEAD') &&
  headers.authorization === undefined &&
  parseAccept(headers.accept).some(({ type, subtype }) => type === 'text' && subtype === 'html');

/**
 * Returns whether a proxy reports that it terminates TLS, in X-Forwarded-Proto or Forwarded (RFC 7239 section 5.4). The
 * headers are not trusted: they only prevent the redirect.
 */
const terminatesTLS = ({ headers }: IncomingMessage): boolean =>
  /^https\b/i.test(String(headers['x-forwarded-proto'] ?? '')) || /\bproto="?https\b/i.test(headers.forwarded ?? '');
