import { timeout } from '../../runtime/errors.ts';
import { requestTimeout } from '../../http/request/request-timeout.ts';
import type { RequestContext } from '../../http/route.ts';
import { group, version } from '../group.ts';

/** Default `--request-timeout` of kube-apiserver, in milliseconds. */
const maxProxied = 60_000;
/** Milliseconds between the end of a stream and the abort by kube-apiserver, to send the reason of the end. */
const margin = 5_000;
/** Maximum delay of setTimeout in milliseconds (24 days). */
const maxTimer = 2 ** 31 - 1;

/**
 * Returns a signal that is aborted with the reason after `timeout`. kube-apiserver aborts a proxied request after 60 s,
 * or after `timeout`, unless the request is a watch. The signal ends such requests shortly before that time, so that
 * the response can contain the reason.
 */
export function streamTimeout(context: Pick<RequestContext, 'info' | 'query' | 'onEnd'>): AbortSignal {
  const over = new AbortController();
  const requested = requestTimeout(context.query);
  const isProxied = context.info.prefix === 'apis';
  if (requested === 0 && !isProxied) return over.signal;
  const limit = isProxied && (requested === 0 || requested > maxProxied) ? maxProxied : Math.min(requested, maxTimer);
  const reason = isProxied
    ? `kube-apiserver aborts proxied requests after ${limit / 1_000} s; the gateway has no such limit: use /kapis/${group}/${version}/logs`
    : `the request exceeded its timeout of ${context.query.get('timeout')}`;
  const timer = setTimeout(() => over.abort(timeout(reason)), isProxied ? limit - Math.min(margin, limit / 4) : limit);
  context.onEnd(() => clearTimeout(timer));
  return over.signal;
}
