import { IncomingMessage } from 'node:http';
import { badRequest } from '../../errors.ts';
import type { Filter } from '../exchange.ts';

/** RFC 9112 sections 2.3 and 3.2: what HTTP/1.1's parser lets pass. HTTP/2 has checks of its own. */
export const protocol: Filter = ({ req }) => {
  if (!(req instanceof IncomingMessage)) return;
  if (req.httpVersion !== '1.1' && req.httpVersion !== '1.0')
    throw badRequest(`HTTP/${req.httpVersion} is not spoken here, only HTTP/1.0, HTTP/1.1 and, over TLS, HTTP/2`);
  let hosts = 0;
  for (let at = 0; at < req.rawHeaders.length; at += 2) if (isHost(req.rawHeaders[at])) hosts += 1;
  if (hosts > 1 || (hosts === 0 && req.httpVersion === '1.1'))
    throw badRequest('the request must have exactly one Host header');
};

const isHost = (name: string | undefined): boolean => name?.length === 4 && name.toLowerCase() === 'host';
