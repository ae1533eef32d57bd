import { demand, rechecking, type Attributes, type Authorizer } from '../../auth/authorizers/authorizer.ts';
import type { UserInfo } from '../../auth/user.ts';
import { unauthorized } from '../../runtime/errors.ts';
import type { Exchange, RequestFilter } from '../exchange.ts';
import type { RequestInfo } from '../route.ts';

/**
 * Reviews the rights that `access` of the route names. kube-apiserver authorizes what the gateway proxies; streams are reviewed again
 * here while they are open.
 */
export const authorization =
  (authorizer: Authorizer): RequestFilter =>
  (exchange) => {
    const { user, isProxied, route } = exchange;
    const { access } = route;
    if (isProxied) return guardStream(exchange, authorizer);
    if (access.kind === 'optional') return user && demandPath(exchange, user, authorizer);
    if (access.kind !== 'authorized') return undefined;
    if (user === undefined) throw unauthorized();
    return access.rights === 'path'
      ? demandPath(exchange, user, authorizer)
      : demand(authorizer, user, attributesOf(exchange));
  };

/**
 * No path writes by itself, so callers who are allowed to read it may learn its methods. A refusal names the method, as kube-apiserver's
 * does.
 */
async function demandPath({ req, path }: Exchange, user: UserInfo, authorizer: Authorizer): Promise<void> {
  const verb = req.method.toLowerCase();
  if (verb !== 'head' && (await authorizer.authorize(user, { verb: 'get', path })).allowed) return;
  await demand(authorizer, user, { verb, path });
}

function attributesOf({ info, req, path }: Exchange): Attributes {
  const { isResourceRequest, verb, group, resource, subresource, namespace, name } = info;
  if (!isResourceRequest) return { verb: req.method.toLowerCase(), path };
  return { verb, group, resource, subresource, namespace, name };
}

/** kube-apiserver authorizes a watch, exec or port-forward once, when it begins. A proxied one ends when the right is gone. */
function guardStream(exchange: Exchange, authorizer: Authorizer): void {
  if (!exchange.info.isLongRunning) return;
  const recheck = rechecking(authorizer);
  const attributes = attributesOf(exchange);
  const create = { ...attributes, verb: 'create' };
  const mayNeedCreate = isConnection(exchange.info);
  let needsCreate = false;
  // kube-apiserver 1.35 and later demand `create` for a WebSocket into a pod, too (feature gate
  // AuthorizePodWebsocketUpgradeCreatePermission). Earlier versions do not, so only a right that a review has seen can be lost.
  // A denial proves nothing: kube-apiserver may start the stream by a right that was granted after the review.
  const reviewCreate = async (by: Authorizer, user: UserInfo | undefined, maxAge?: number): Promise<void> => {
    if (!mayNeedCreate || needsCreate || user === undefined) return;
    const { allowed } = await by.authorize(user, create, maxAge);
    needsCreate ||= allowed;
  };
  // Without a decision the rechecks repeat the review.
  reviewCreate(authorizer, callerOf(exchange), 0).catch(() => undefined);
  const check = async (): Promise<void> => {
    const user = callerOf(exchange);
    if (user === undefined) throw unauthorized();
    await demand(recheck, user, attributes);
    if (needsCreate) await demand(recheck, user, create);
    else await reviewCreate(recheck, user);
  };
  exchange.onRecheck(check, () => exchange.abort());
}

const connections = new Set(['attach', 'exec', 'portforward']);

/** A WebSocket begins with a GET. The verb of SPDY is `create` already. */
const isConnection = ({ group, resource, subresource, verb }: RequestInfo): boolean =>
  group === '' && resource === 'pods' && connections.has(subresource) && verb !== 'create';

const callerOf = ({ user, impersonated }: Exchange): UserInfo | undefined => impersonated ?? user;
