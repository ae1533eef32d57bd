import { timeout } from '../../runtime/errors.ts';
import { badParameters, invalidParameter } from '../../http/request/parameters.ts';
import { parseAccept } from '../../http/request/negotiate.ts';
import { requestTimeout } from '../../http/request/request-timeout.ts';
import type { RequestContext } from '../../http/route.ts';
import { group, version } from '../group.ts';

interface ListRequest {
  readonly req: { readonly headers: { readonly accept?: string | undefined } };
  readonly context: Pick<RequestContext, 'query'>;
}

/** Throws 400 for `kubectl get logs`, which requests a list of objects in pages or as a table, with a command that returns logs. */
export function demandNoList({ req: { headers }, context: { query } }: ListRequest): void {
  const isTable = parseAccept(headers.accept).some(({ parameters }) => parameters['as'] === 'Table');
  if (!isTable && !query.has('limit')) return;
  const command = `kubectl get --raw '/apis/${group}/${version}/logs?namespaces=default&size=10'`;
  throw badParameters([
    invalidParameter(
      query.has('limit') ? 'limit' : 'Accept',
      `only lists of objects have pages and tables, logs have not; try: ${command}`,
    ),
  ]);
}

/** Milliseconds, of kube-apiserver's --request-timeout. */
const maxProxied = 60_000;
/** For the reason to arrive. */
const margin = 5_000;
/** Of setTimeout: 24 days. */
const maxTimer = 2 ** 31 - 1;

/**
 * Returns a signal that is aborted, with the reason, after `timeout`. kube-apiserver breaks off a proxied request after 60 s, or after
 * `timeout`, unless it is a watch; it is aborted shortly before, so that the response can end with the reason.
 */
export function streamLimit(context: Pick<RequestContext, 'info' | 'query' | 'onEnd'>): AbortSignal {
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
