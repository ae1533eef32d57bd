/** Which namespaces' objects a caller may be shown. */
import { demand, type Authorizer, type ResourceAttributes } from '../auth/authorizers/authorizer.ts';
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
  /** For resources that a request reads beside its own. */
  readonly catalogue: Pick<Catalogue, 'find' | 'use'>;
}

/** Undefined: all that the request is about. */
export type Visible = ReadonlySet<string> | undefined;

/** Reviews of one request at once. */
const atOnce = 32;
/** Reviews of one request in all. */
const mostCandidates = 1_000;

/**
 * The caller must be allowed what the request does, on the underlying resource and in its scope. Who may not list or watch in all
 * namespaces is shown those in which a RoleBinding gives the right; of the Namespaces themselves, those that one lets them get. Throws
 * 403 in kube-apiserver's words where there is none.
 */
export async function visibleNamespaces(
  { authorizer, granted }: Pick<ReadAccess, 'authorizer' | 'granted'>,
  { user, info, query }: Pick<RequestContext, 'user' | 'info' | 'query'>,
  { underlying: { group, resource }, namespaced }: Pick<ResourceDefinition<unknown>, 'underlying' | 'namespaced'>,
): Promise<Visible> {
  if (user === undefined) throw unauthorized();
  const { verb, namespace, name } = info;
  const attributes = { verb, group, resource, namespace, name };
  // Who may get a namespace by a role in it may be shown it among others.
  const areNamespaces = group === '' && resource === 'namespaces';
  if (!(namespaced || areNamespaces) || namespace !== '' || verb === 'get') {
    await demand(authorizer, user, attributes);
    return undefined;
  }
  if ((await authorizer.authorize(user, attributes)).allowed) return undefined;
  const named = areNamespaces ? name : (query.get('namespace') ?? '');
  if (named === '' && !granted.hasSynced())
    throw serviceUnavailable('the role bindings are not read yet; a namespace that is named needs none', 1);
  const candidates = named === '' ? granted.of(user) : [named];
  if (candidates.length > mostCandidates)
    throw forbidden(
      { group, resource },
      name,
      `User "${user.username}" cannot ${verb} resource "${resource}" in API group "${group}" at the cluster scope, and has role bindings in ${candidates.length} namespaces, more than ${mostCandidates}: name one`,
    );
  const visible = await allowedIn(authorizer, user, candidates, (candidate) => ({
    ...attributes,
    ...(areNamespaces ? { verb: verb === 'list' ? 'get' : verb, name: candidate } : {}),
  }));
  if (visible.size === 0) await demand(authorizer, user, attributes);
  return visible;
}

/** The namespaces in which the caller may do what `attributes` says, each reviewed. */
export async function allowedIn(
  authorizer: Authorizer,
  user: UserInfo,
  candidates: readonly string[],
  attributes: (namespace: string) => ResourceAttributes,
): Promise<ReadonlySet<string>> {
  const reviews = await mapConcurrent(candidates, atOnce, (namespace) =>
    authorizer.authorize(user, { ...attributes(namespace), namespace }),
  );
  return new Set(candidates.filter((_, index) => reviews[index]?.allowed));
}

export const sameNamespaces = (a: Visible, b: Visible): boolean =>
  a === b || (a !== undefined && b !== undefined && a.size === b.size && [...a].every((one) => b.has(one)));
