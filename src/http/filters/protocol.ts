import { IncomingMessage, type ServerResponse } from 'node:http';
import { badRequest } from '../../runtime/errors.ts';
import type { RequestFilter } from '../exchange.ts';

/** RFC 9112 sections 2.3, 3.2 and 6.1: what HTTP/1.1's parser lets pass. HTTP/2 has checks of its own. */
export const protocol: RequestFilter = ({ req, res }) => {
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
