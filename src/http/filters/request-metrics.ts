import { annotations } from '../../audit/annotations.ts';
import {
  logins,
  requestDurations,
  requests,
  tokenRequestsRefused,
  tokensIssued,
} from '../../runtime/metrics/definitions.ts';
import type { Completion, Exchange } from '../exchange.ts';

/**
 * Counts a request whose response has ended. Observes its duration, except for watches and streams, whose duration
 * depends on the client. The resource is omitted while the caller is not authenticated: anyone could otherwise create
 * the time series of all resources, and influence the objectives of the alerts.
 */
export function countRequest({ info, user, isProxied }: Exchange, { status, seconds }: Completion): void {
  const { verb, isLongRunning } = info;
  const resource = info.isResourceRequest && user !== undefined ? info.resource : '';
  const backend = isProxied ? 'kube-apiserver' : 'platform-apiserver';
  requests.add({ verb, resource, backend, code: String(status) });
  if (!isLongRunning) requestDurations.observe({ verb, resource, backend }, seconds);
}

/**
 * Counts the login or token request that a handler has completed. Each request is counted once, with its final result,
 * even if the client disconnected earlier.
 */
export function countLogin(exchange: Exchange): void {
  const outcome = exchange.annotation(annotations.login);
  const { issuesTokens } = exchange.route;
  if (outcome === undefined && issuesTokens !== true) return;
  const grant = exchange.annotation(annotations.grantType) ?? '';
  const client = exchange.annotation(annotations.client) ?? '';
  if (outcome !== undefined) logins.add({ outcome, grant, client });
  if (issuesTokens !== true) return;
  if (exchange.status === 200) tokensIssued.add({ grant, client });
  else tokenRequestsRefused.add({ grant, client, error: exchange.failure?.reason ?? 'aborted' });
}
