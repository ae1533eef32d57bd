import http2, { type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { copied } from '../../runtime/bounded-cache.ts';

/** Returns true for requests over TLS. HTTP/2 is served only over TLS. */
export const isSecure = ({ httpVersionMajor, socket }: Pick<IncomingMessage, 'httpVersionMajor' | 'socket'>): boolean =>
  httpVersionMajor >= 2 || (socket as Partial<TLSSocket>).encrypted === true;

/** Serves a request of an HTTP/1.1 or HTTP/2 server. */
export type HttpHandler = (
  req: IncomingMessage | Http2ServerRequest,
  res: ServerResponse | Http2ServerResponse,
) => void;

/**
 * Returns the request target as a path. RFC 9112 section 3.2.2 requires servers to accept an absolute URL too, and the
 * router of Express finds no path in some absolute URLs.
 */
function originForm(target: string): string {
  const [, rest = target] = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\\]*(.*)$/is.exec(target) ?? [];
  // The path is copied, because results of routing are cached and a substring would keep the whole URL in memory.
  return copied(rest === '' || rest.startsWith('?') ? `/${rest}` : rest);
}

/** Rewrites the URL as a path, and sets Host from the authority of HTTP/2. */
export function normalized<R extends IncomingMessage | Http2ServerRequest>(req: R): R {
  if (req.url?.startsWith('/') !== true) req.url = originForm(req.url ?? '');
  // httpVersion is not used, because the HTTP/1.1 parser accepts any version number.
  if (req instanceof http2.Http2ServerRequest) req.headers.host ??= req.authority;
  return req;
}
