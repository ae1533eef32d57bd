import { ServerResponse } from 'node:http';
import type { RequestFilter } from '../exchange.ts';

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
