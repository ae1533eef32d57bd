import { assertAllowed, rechecking, type Attributes, type Authorizer } from '../../auth/authorizers/authorizer.ts';
import type { UserInfo } from '../../auth/user.ts';
import { unauthorized } from '../../runtime/errors.ts';
import type { Exchange, RequestFilter } from '../exchange.ts';
import type { RequestInfo } from '../route.ts';

/**
 * Reviews the rights that `access` of the route names. kube-apiserver authorizes proxied requests. For proxied
 * requests, this filter only rechecks open streams.
 */
export const authorization =
  (authorizer: Authorizer): RequestFilter =>
  (exchange) => {
    const { user, isProxied, route } = exchange;
    const { access } = route;
    if (isProxied) return guardStream(exchange, authorizer);
    if (access.kind === 'optional') return user && assertPathAllowed(exchange, user, authorizer);
    if (access.kind !== 'authorized') return undefined;
    if (user === undefined) throw unauthorized();
    return access.rights === 'path'
      ? assertPathAllowed(exchange, user, authorizer)
      : assertAllowed(authorizer, user, attributesOf(exchange));
  };

/**
 * Requires the right to the path. Callers who are allowed to `get` the path pass with every method, so that they learn
 * which methods exist. No route that requires only the right to the path writes data. The message of a 403 names the
 * method, as in kube-apiserver.
 */
async function assertPathAllowed({ req, path }: Exchange, user: UserInfo, authorizer: Authorizer): Promise<void> {
  const verb = req.method.toLowerCase();
  if (verb !== 'head' && (await authorizer.authorize(user, { verb: 'get', path })).allowed) return;
  await assertAllowed(authorizer, user, { verb, path });
}

function attributesOf({ info, req, path }: Exchange): Attributes {
  const { isResourceRequest, verb, group, resource, subresource, namespace, name } = info;
  if (!isResourceRequest) return { verb: req.method.toLowerCase(), path };
  return { verb, group, resource, subresource, namespace, name };
}

/**
 * Ends a proxied stream when the caller loses the right to the stream. kube-apiserver authorizes a watch, exec or
 * port-forward only at its start.
 */
function guardStream(exchange: Exchange, authorizer: Authorizer): void {
  if (!exchange.info.isLongRunning) return;
  const recheck = rechecking(authorizer);
  const attributes = attributesOf(exchange);
  const create = { ...attributes, verb: 'create' };
  const mayNeedCreate = isConnection(exchange.info);
  let needsCreate = false;
  // kube-apiserver 1.35 and later also require `create` for a WebSocket into a pod (feature gate
  // AuthorizePodWebsocketUpgradeCreatePermission); earlier versions do not. The rechecks therefore require `create`
  // only after a review has allowed `create`. A denied review has no effect, because kube-apiserver may start the
  // stream by a right that is granted after the review.
  const reviewCreate = async (by: Authorizer, user: UserInfo | undefined, maxAge?: number): Promise<void> => {
    if (!mayNeedCreate || needsCreate || user === undefined) return;
    const { allowed } = await by.authorize(user, create, maxAge);
    needsCreate ||= allowed;
  };
  // If this review fails, the rechecks repeat it.
  reviewCreate(authorizer, callerOf(exchange), 0).catch(() => undefined);
  const check = async (): Promise<void> => {
    const user = callerOf(exchange);
    if (user === undefined) throw unauthorized();
    await assertAllowed(recheck, user, attributes);
    if (needsCreate) await assertAllowed(recheck, user, create);
    else await reviewCreate(recheck, user);
  };
  exchange.onRecheck(check, () => exchange.abort());
}

const connections = new Set(['attach', 'exec', 'portforward']);

/** Returns true for WebSockets into a pod, which start with a GET. The verb of a SPDY request is `create` already. */
const isConnection = ({ group, resource, subresource, verb }: RequestInfo): boolean =>
  group === '' && resource === 'pods' && connections.has(subresource) && verb !== 'create';

const callerOf = ({ user, impersonated }: Exchange): UserInfo | undefined => impersonated ?? user;
