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

/** Of kube-apiserver's --request-timeout, in milliseconds. */
const longest = 60_000;
/** For the last words to arrive. */
const margin = 5_000;
/** Of setTimeout: 24 days. */
const longestTimer = 2 ** 31 - 1;

/**
 * What goes on and on ends after `timeout`. Beyond that kube-apiserver breaks off what it has passed on for 60 s, or for as long as `timeout` says,
 * unless it takes it for a watch. Aborted shortly before: what ends by itself can say why, and where it need not. Throws StatusError 400.
 */
export function streamLimit(context: Pick<RequestContext, 'info' | 'query' | 'onEnd'>): AbortSignal {
  const over = new AbortController();
  const asked = requestTimeout(context.query);
  const isPassedOn = context.info.prefix === 'apis';
  if (asked === 0 && !isPassedOn) return over.signal;
  const limit = isPassedOn && (asked === 0 || asked > longest) ? longest : Math.min(asked, longestTimer);
  const reason = isPassedOn
    ? `kube-apiserver passes nothing on for longer than ${limit / 1_000} s: /kapis/${group}/${version}/logs of the gateway has no such limit`
    : `the request was to be given up after ${context.query.get('timeout')}, as its timeout says`;
  const timer = setTimeout(() => over.abort(timeout(reason)), isPassedOn ? limit - Math.min(margin, limit / 4) : limit);
  context.onEnd(() => clearTimeout(timer));
  return over.signal;
}
