import http2, { type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';

/** Whether a request came over TLS: HTTP/2 is spoken over that alone. */
export const isSecure = ({ httpVersionMajor, socket }: Pick<IncomingMessage, 'httpVersionMajor' | 'socket'>): boolean =>
  httpVersionMajor >= 2 || (socket as Partial<TLSSocket>).encrypted === true;

/** What both servers call with a request. */
export type Face = (req: IncomingMessage | Http2ServerRequest, res: ServerResponse | Http2ServerResponse) => void;

/**
 * RFC 9112 section 3.2.2: a server accepts a whole URL too, as a proxy is sent it. Express' router would find no path in some of them.
 */
function originForm(target: string): string {
  const [, rest = target] = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\\]*(.*)$/is.exec(target) ?? [];
  return rest === '' || rest.startsWith('?') ? `/${rest}` : rest;
}

/** With a path, and with what HTTP/2 has in the place of Host. */
export function normalized<R extends IncomingMessage | Http2ServerRequest>(req: R): R {
  if (req.url?.startsWith('/') !== true) req.url = originForm(req.url ?? '');
  // By its class: a request of HTTP/1.1's parser may claim any version.
  if (req instanceof http2.Http2ServerRequest) req.headers.host ??= req.authority;
  return req;
}
