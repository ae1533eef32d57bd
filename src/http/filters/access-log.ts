import { maxUserAgent } from '../../audit/event.ts';
import { logRequest } from '../../runtime/logger.ts';
import type { RequestFilter } from '../exchange.ts';
import { countRequest } from './request-metrics.ts';

/** Paths that kubelets and load balancers poll: never limited, and logged only if they fail. */
export const probes: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz']);

/** Writes one log line and one metric observation per request when its response has ended. */
export const accessLog: RequestFilter = (exchange) => {
  const { req, res } = exchange;
  exchange.onEnd(() => {
    const seconds = (performance.now() - exchange.started) / 1_000;
    const { info, user } = exchange;
    const { status } = exchange;
    countRequest(exchange, seconds);
    const failed = status >= 500;
    if (probes.has(exchange.path) && !failed) return;
    logRequest(exchange.log, failed ? 'warn' : 'info', {
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
      aborted: !res.writableFinished,
    });
  });
};
