/** Determines the namespaces whose objects a caller is allowed to see. */
import { assertAllowed, type Authorizer, type ResourceAttributes } from '../auth/authorizers/authorizer.ts';
import type { UserInfo } from '../auth/user.ts';
import { forbidden, serviceUnavailable, unauthorized } from '../runtime/errors.ts';
import { mapConcurrent } from '../runtime/promises.ts';
import type { RequestContext } from '../http/route.ts';
import type { Catalogue } from '../cluster/catalogue/catalogue.ts';
import type { GrantedNamespaces } from '../cluster/catalogue/granted-namespaces.ts';
import type { ResourceDefinition } from '../cluster/catalogue/resource.ts';

export interface ReadAccess {
  readonly authorizer: Authorizer;
  readonly granted: Pick<GrantedNamespaces, 'of' | 'hasSynced'>;
  /** Finds the other resources that a request reads. */
  readonly catalogue: Pick<Catalogue, 'find' | 'acquire'>;
}

/** Names of the visible namespaces; undefined if everything in the scope of the request is visible. */
export type Visible = ReadonlySet<string> | undefined;

/** Maximum concurrent reviews per request. */
const concurrency = 32;
/** Maximum number of reviews per request. */
const maxCandidates = 1_000;

/**
 * Authorizes the request on the underlying resource and in its scope. Callers who are not allowed to list or watch in
 * all namespaces see the namespaces in which a RoleBinding gives them the right. In a list of Namespaces, such callers
 * see the namespaces that a RoleBinding allows them to get. Throws 403 with kube-apiserver's message if no namespace is
 * visible.
 */
export async function visibleNamespaces(
  { authorizer, granted }: Pick<ReadAccess, 'authorizer' | 'granted'>,
  { user, info, query }: Pick<RequestContext, 'user' | 'info' | 'query'>,
  { underlying: { group, resource }, namespaced }: Pick<ResourceDefinition<unknown>, 'underlying' | 'namespaced'>,
): Promise<Visible> {
  if (user === undefined) throw unauthorized();
  const { verb, namespace, name } = info;
  const attributes = { verb, group, resource, namespace, name };
  // A list of namespaces contains each namespace in which a role allows the caller to get that namespace.
  const areNamespaces = group === '' && resource === 'namespaces';
  if (!(namespaced || areNamespaces) || namespace !== '' || verb === 'get') {
    await assertAllowed(authorizer, user, attributes);
    return undefined;
  }
  if ((await authorizer.authorize(user, attributes)).allowed) return undefined;
  const named = areNamespaces ? name : (query.get('namespace') ?? '');
  if (named === '' && !granted.hasSynced())
    throw serviceUnavailable('role bindings are not synced yet; try again, or specify a namespace', 1);
  const candidates = named === '' ? granted.of(user) : [named];
  if (candidates.length > maxCandidates)
    throw forbidden(
      { group, resource },
      name,
      `User "${user.username}" cannot ${verb} resource "${resource}" in API group "${group}" at the cluster scope, and has role bindings in more than ${maxCandidates} namespaces (${candidates.length}): specify a namespace`,
    );
  const visible = await allowedIn(authorizer, user, candidates, (candidate) => ({
    ...attributes,
    ...(areNamespaces ? { verb: verb === 'list' ? 'get' : verb, name: candidate } : {}),
  }));
  if (visible.size === 0) await assertAllowed(authorizer, user, attributes);
  return visible;
}

/**
 * Returns the namespaces in which the caller is allowed to make the request that `attributes` describes. Reviews the
 * access to each namespace.
 */
export async function allowedIn(
  authorizer: Authorizer,
  user: UserInfo,
  candidates: readonly string[],
  attributes: (namespace: string) => ResourceAttributes,
): Promise<ReadonlySet<string>> {
  const reviews = await mapConcurrent(candidates, concurrency, (namespace) =>
    authorizer.authorize(user, { ...attributes(namespace), namespace }),
  );
  return new Set(candidates.filter((_, index) => reviews[index]?.allowed));
}

export const sameNamespaces = (a: Visible, b: Visible): boolean =>
  a === b || (a !== undefined && b !== undefined && a.size === b.size && [...a].every((one) => b.has(one)));
