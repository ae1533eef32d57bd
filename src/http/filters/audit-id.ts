import { randomUUID } from 'node:crypto';
import type { RequestFilter } from '../exchange.ts';

/** The request's own Audit-Id when it is a plausible one, else a new one; every answer and log line carries it. */
export const auditID: RequestFilter = (exchange) => {
  const given = exchange.req.headers['audit-id'];
  exchange.auditID = typeof given === 'string' && /^[A-Za-z0-9-]{8,64}$/.test(given) ? given : randomUUID();
  exchange.res.setHeader('Audit-Id', exchange.auditID);
};
