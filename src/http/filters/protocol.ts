import { IncomingMessage, METHODS, ServerResponse } from 'node:http';
import { badRequest } from '../../runtime/errors.ts';
import type { RequestFilter } from '../exchange.ts';
import { checkHandshake, isHandshake } from '../listeners/web-socket.ts';

/** Comes last: who may not ask is told that first. */
export const webSocket: RequestFilter = ({ req, res, info, isProxied }) => {
  if (!isHandshake(res) || isProxied) return;
  if (info.verb !== 'watch') throw badRequest('a WebSocket carries a watch and nothing else: ask with watch=true');
  checkHandshake(req);
};

/**
 * RFC 9110 section 10.1.1: who asks first whether to send the body is told so here, after the other filters. Who is refused sends none,
 * and what then comes on the connection is nobody's next request: listen.ts has it closed.
 */
export const expectation: RequestFilter = ({ req, res }) => {
  // HTTP/1.0 has no such answer.
  if (req.headers.expect?.toLowerCase() !== '100-continue' || req.httpVersion === '1.0') return;
  if (res instanceof ServerResponse)
    res.shouldKeepAlive = !/(?:^|,)\s*close\s*(?:,|$)/i.test(req.headers.connection ?? '');
  res.writeContinue();
};

const methods = new Set(METHODS);

/** What the parsers let pass: any method of HTTP/2 (RFC 9110 section 9.1), and RFC 9112 sections 2.3, 3.2 and 6.1 of HTTP/1.1. */
export const protocol: RequestFilter = ({ req, res }) => {
  // The router would find a route for `post` that is not reviewed as `create`.
  if (!methods.has(req.method)) throw badRequest('unknown method: methods are case-sensitive, such as GET and POST');
  if (!(req instanceof IncomingMessage)) return;
  if (req.httpVersion !== '1.1' && req.httpVersion !== '1.0')
    throw badRequest(`HTTP/${req.httpVersion} is not spoken here, only HTTP/1.0, HTTP/1.1 and, over TLS, HTTP/2`);
  let hosts = 0;
  for (let at = 0; at < req.rawHeaders.length; at += 2) if (isHost(req.rawHeaders[at])) hosts += 1;
  const coding = req.headers['transfer-encoding'];
  // Another one Node would leave in the body without a word.
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw badRequest('the only Transfer-Encoding here is "chunked"');
  // RFC 9112 section 6.1: its sender may not know where the body ends.
  if (coding !== undefined && req.httpVersion === '1.0') (res as ServerResponse).shouldKeepAlive = false;
  if (hosts > 1 || (hosts === 0 && req.httpVersion === '1.1'))
    throw badRequest('the request must have exactly one Host header');
};

const isHost = (name: string | undefined): boolean => name?.length === 4 && name.toLowerCase() === 'host';
