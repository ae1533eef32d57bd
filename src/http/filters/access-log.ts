import { maxUserAgent } from '../../audit/event.ts';
import { logRequest } from '../../runtime/logger.ts';
import type { RequestFilter } from '../exchange.ts';
import { countRequest } from './request-metrics.ts';

/**
 * Paths that kubelets and load balancers poll. Requests for these paths are never limited or counted, and only failed
 * requests are logged.
 */
export const probes: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz']);

const always = (): number => 1;

/**
 * Counts each request except probes. Writes a log line for each request with status 5xx, and for the fraction `sampling`
 * of the other requests except probes.
 */
export const accessLog =
  (sampling = always): RequestFilter =>
  (exchange) => {
    exchange.onCompleted((completion) => {
      const { req, info, user } = exchange;
      const { time, status, seconds, isWhole } = completion;
      const isProbe = probes.has(exchange.path);
      if (!isProbe) countRequest(exchange, completion);
      const failed = status >= 500;
      if (!failed && (isProbe || Math.random() >= sampling())) return;
      logRequest(exchange.log, failed ? 'warn' : 'info', {
        time,
        auditID: exchange.auditID,
        method: req.method,
        path: exchange.shownURL,
        verb: info.verb,
        status,
        seconds: Math.round(seconds * 1e4) / 1e4,
        sourceIP: exchange.sourceIP,
        userAgent: req.headers['user-agent']?.slice(0, maxUserAgent),
        user: user?.username,
        via: user?.via,
        aborted: !isWhole,
        traceID: exchange.span?.traceID,
      });
    });
  };
