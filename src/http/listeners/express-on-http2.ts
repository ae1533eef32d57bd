import express, { type Express } from 'express';
import http2, { type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';

/** Whether a request came over TLS: HTTP/2 is spoken over that alone. */
export const isSecure = ({ httpVersionMajor, socket }: Pick<IncomingMessage, 'httpVersionMajor' | 'socket'>): boolean =>
  httpVersionMajor >= 2 || (socket as Partial<TLSSocket>).encrypted === true;

/** What both servers call with a request. */
export type Face = (req: IncomingMessage | Http2ServerRequest, res: ServerResponse | Http2ServerResponse) => void;

/** Methods of Express' request or response over another prototype. */
const over = (base: object, methods: object, app: Express): object =>
  Object.create(base, {
    ...Object.getOwnPropertyDescriptors(methods),
    app: { value: app, configurable: true, enumerable: true, writable: true },
  }) as object;

/**
 * RFC 9112 section 3.2.2: a server accepts a whole URL too, as a proxy is sent it. Express would leave some without a path, and
 * answer them by itself.
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

/**
 * Express 5 gives every request and response prototypes that derive from HTTP/1.1's classes, which HTTP/2's objects cannot bear.
 * This listener shows such requests to a view of the same app whose prototypes derive from the HTTP/2 classes.
 */
export function expressOnBothVersions(app: Express): Face {
  const view = Object.create(app, {
    request: { value: over(http2.Http2ServerRequest.prototype, express.request, app) },
    response: { value: over(http2.Http2ServerResponse.prototype, express.response, app) },
  }) as Express & { handle: Face };
  const plain = app as Express & { handle: Face };
  return (req, res) => (req instanceof http2.Http2ServerRequest ? view : plain).handle(req, res);
}
