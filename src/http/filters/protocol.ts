import { IncomingMessage, METHODS, ServerResponse } from 'node:http';
import { badRequest } from '../../runtime/errors.ts';
import type { RequestFilter } from '../exchange.ts';
import { checkHandshake, isHandshake } from '../listeners/web-socket.ts';

/** Checks WebSocket handshakes. This filter runs after authorization, so that unauthorized callers get 401 or 403. */
export const webSocket: RequestFilter = ({ req, res, info, isProxied }) => {
  if (!isHandshake(res) || isProxied) return;
  if (info.verb !== 'watch') throw badRequest('WebSockets are supported only for watches: add watch=true');
  checkHandshake(req);
};

/**
 * Sends 100 Continue (RFC 9110 section 10.1.1) after all other filters, so that refused clients send no body. The
 * connection of a refused client is closed (listen.ts), because a body that arrives anyway must not be parsed as the
 * next request.
 */
export const expectation: RequestFilter = ({ req, res }) => {
  // HTTP/1.0 has no interim responses.
  if (req.headers.expect?.toLowerCase() !== '100-continue' || req.httpVersion === '1.0') return;
  if (res instanceof ServerResponse)
    res.shouldKeepAlive = !/(?:^|,)\s*close\s*(?:,|$)/i.test(req.headers.connection ?? '');
  res.writeContinue();
};

const methods = new Set(METHODS);

/**
 * Checks rules that Node's parsers do not check: the method over HTTP/2 (RFC 9110 section 9.1), and RFC 9112 sections
 * 2.3, 3.2 and 6.1.
 */
export const protocol: RequestFilter = ({ req, res }) => {
  // The router would match `post` to a POST route, but the verb of the request would not be `create` in the review.
  if (!methods.has(req.method)) throw badRequest('unknown method: methods are case-sensitive, such as GET and POST');
  if (!(req instanceof IncomingMessage)) return;
  if (req.httpVersion !== '1.1' && req.httpVersion !== '1.0')
    throw badRequest(`unsupported HTTP version ${req.httpVersion}: use HTTP/1.0, HTTP/1.1 or, over TLS, HTTP/2`);
  let hosts = 0;
  for (let at = 0; at < req.rawHeaders.length; at += 2) if (isHost(req.rawHeaders[at])) hosts += 1;
  const coding = req.headers['transfer-encoding'];
  // Node would silently leave any other coding in the body.
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw badRequest('unsupported Transfer-Encoding: only "chunked" is accepted');
  // RFC 9112 section 6.1: an HTTP/1.0 client may be unable to detect where a chunked body ends.
  if (coding !== undefined && req.httpVersion === '1.0') (res as ServerResponse).shouldKeepAlive = false;
  if (hosts > 1 || (hosts === 0 && req.httpVersion === '1.1'))
    throw badRequest('the request must have exactly one Host header');
};

const isHost = (name: string | undefined): boolean => name?.length === 4 && name.toLowerCase() === 'host';
