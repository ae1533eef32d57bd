import { annotations } from '../../audit/annotations.ts';
import {
  logins,
  requestDurations,
  requests,
  tokenRequestsRefused,
  tokensIssued,
} from '../../runtime/metrics/definitions.ts';
import type { Exchange } from '../exchange.ts';

/** Counts a request that has ended. Logins and token requests are counted here, so that each counts once, with its final result. */
export function countRequest(exchange: Exchange, seconds: number): void {
  const { info, status } = exchange;
  const { verb } = info;
  const resource = info.isResourceRequest ? info.resource : '';
  requests.add({ verb, resource, code: String(status) });
  if (verb !== 'watch') requestDurations.observe({ verb, resource }, seconds);
  if (!exchange.path.startsWith('/oauth/')) return;
  const grant = exchange.annotation(annotations.grantType) ?? '';
  const client = exchange.annotation(annotations.client) ?? '';
  const outcome = exchange.annotation(annotations.login);
  if (outcome !== undefined) logins.add({ outcome: status >= 500 ? 'Unavailable' : outcome, grant, client });
  if (exchange.path !== '/oauth/token') return;
  if (status === 200) tokensIssued.add({ grant, client });
  else tokenRequestsRefused.add({ grant, client, error: exchange.failure?.reason ?? 'aborted' });
}
