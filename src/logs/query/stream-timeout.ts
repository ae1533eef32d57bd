import { timeout } from '../../runtime/errors.ts';
import { requestTimeout } from '../../http/request/request-timeout.ts';
import type { RequestContext } from '../../http/route.ts';
import { group, version } from '../group.ts';

/** kube-apiserver's --request-timeout, in milliseconds. */
const maxProxied = 60_000;
/** Time that the reason has to arrive, in milliseconds. */
const margin = 5_000;
/** Longest delay of setTimeout in milliseconds: 24 days. */
const maxTimer = 2 ** 31 - 1;

/**
 * Returns a signal that is aborted, with the reason, after `timeout`. kube-apiserver breaks off a proxied request after 60 s, or after
 * `timeout`, unless it is a watch; it is aborted shortly before, so that the response can end with the reason.
 */
export function streamTimeout(context: Pick<RequestContext, 'info' | 'query' | 'onEnd'>): AbortSignal {
  const over = new AbortController();
  const requested = requestTimeout(context.query);
  const isProxied = context.info.prefix === 'apis';
  if (requested === 0 && !isProxied) return over.signal;
  const limit = isProxied && (requested === 0 || requested > maxProxied) ? maxProxied : Math.min(requested, maxTimer);
  const reason = isProxied
    ? `kube-apiserver proxies no request for longer than ${limit / 1_000} s; /kapis/${group}/${version}/logs of the gateway has no such limit`
    : `the request exceeded its timeout of ${context.query.get('timeout')}`;
  const timer = setTimeout(() => over.abort(timeout(reason)), isProxied ? limit - Math.min(margin, limit / 4) : limit);
  context.onEnd(() => clearTimeout(timer));
  return over.signal;
}
