import { IncomingMessage } from 'node:http';
import { headerValues } from '../../auth/header-values.ts';
import { badRequest } from '../../errors.ts';
import type { Filter } from '../exchange.ts';

/** RFC 9112 sections 2.3 and 3.2: what HTTP/1.1's parser lets pass. HTTP/2 has checks of its own. */
export const protocol: Filter = ({ req }) => {
  if (!(req instanceof IncomingMessage)) return;
  if (req.httpVersion !== '1.1' && req.httpVersion !== '1.0')
    throw badRequest(`HTTP/${req.httpVersion} is not spoken here, only HTTP/1.0, HTTP/1.1 and, over TLS, HTTP/2`);
  const hosts = headerValues(req).get('host')?.length ?? 0;
  if (hosts > 1 || (hosts === 0 && req.httpVersion === '1.1'))
    throw badRequest('the request must have exactly one Host header');
};
