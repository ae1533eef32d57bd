import type { Request } from 'express';
import { parseDuration } from '../../config/duration.ts';
import { badRequest, timeout } from '../../errors.ts';
import { parseAccept } from '../../http/negotiate.ts';
import type { RequestContext } from '../../http/route.ts';
import { group, version } from './group.ts';

/** Throws 400 telling `kubectl get logs`, which asks for a list of objects in pages or as a table, how logs are had. */
export function demandNoList(
  { headers }: Pick<Request, 'headers'>,
  { info, query }: Pick<RequestContext, 'info' | 'query'>,
): void {
  if (info.prefix !== 'apis') return;
  const isTable = parseAccept(headers.accept).some(({ parameters }) => parameters['as'] === 'Table');
  if (!isTable && !query.has('limit')) return;
  const field = query.has('limit') ? 'limit' : 'Accept';
  const message = `is of a list of objects, and logs are none; they are had by: kubectl get --raw '/apis/${group}/${version}/logs?namespaces=default&size=10'`;
  throw badRequest(`${field}: ${message}`, { details: { causes: [{ reason: 'FieldValueInvalid', field, message }] } });
}

/** Of kube-apiserver's --request-timeout, in milliseconds. */
const longest = 60_000;
/** For the last words to arrive. */
const margin = 5_000;

/**
 * kube-apiserver breaks off what it has passed on for 60 s, or as long as `timeout` says, unless it takes it for a watch. Aborted shortly
 * before: what ends by itself can say why, and where it need not.
 */
export function aggregatorLimit(context: Pick<RequestContext, 'info' | 'query' | 'onEnd'>): AbortSignal {
  const over = new AbortController();
  if (context.info.prefix !== 'apis') return over.signal;
  const asked = parseDuration(context.query.get('timeout') ?? '') ?? 0;
  const limit = asked > 0 ? Math.min(asked, longest) : longest;
  const reason = timeout(
    `kube-apiserver passes nothing on for longer than ${limit / 1_000} s: /kapis/${group}/${version}/logs of the gateway has no such limit`,
  );
  const timer = setTimeout(() => over.abort(reason), limit - Math.min(margin, limit / 4));
  context.onEnd(() => clearTimeout(timer));
  return over.signal;
}
