/** Determines the namespaces whose objects a caller is allowed to see. */
import { assertAllowed, type Authorizer, type ResourceAttributes } from '../auth/authorizers/authorizer.ts';
import type { UserInfo } from '../auth/user.ts';
import { forbidden, serviceUnavailable, unauthorized } from '../runtime/errors.ts';
import { mapConcurrent } from '../runtime/promises.ts';
import type { RequestContext } from '../http/route.ts';
import type { Catalogue } from '../cluster/catalogue/catalogue.ts';
import type { Granted, GrantedNamespaces } from '../cluster/catalogue/granted-namespaces.ts';
import type { ResourceDefinition } from '../cluster/catalogue/resource.ts';
import type { NamespaceAccessCache } from './namespace-access-cache.ts';
import type { ListRight } from './namespace-access.ts';

/** Names of namespaces; undefined if everything in the scope of the request is visible. */
export type Visible = ReadonlySet<string> | undefined;

export const sameNamespaces = (a: Visible, b: Visible): boolean =>
  a === b || (a !== undefined && b !== undefined && a.size === b.size && [...a].every((one) => b.has(one)));

/** Namespaces that a read may show. */
export interface ReadScope {
  readonly visible: Visible;
  /**
   * Present if some decisions may be older than 10 s. Reviews the namespaces whose objects a response contains. Returns
   * false if one of them is no longer in `visible`, and throws like `NamespaceAccess.confirm`.
   */
  confirm?(shown: ReadonlySet<string>): Promise<boolean>;
}

export interface ReadAccess {
  readonly authorizer: Authorizer;
  readonly namespaceAccess: Pick<NamespaceAccessCache, 'of'>;
  readonly granted: Pick<GrantedNamespaces, 'of' | 'hasSynced'>;
  /** Finds the other resources that a request reads. */
  readonly catalogue: Pick<Catalogue, 'find' | 'acquire'>;
}

type Access = Pick<ReadAccess, 'authorizer' | 'granted'>;
type Definition = Pick<ResourceDefinition<unknown>, 'underlying' | 'namespaced'>;

/** State of a namespace that the request names. */
const unbound = { count: 0, lastChange: 0, changedAt: 0 };
/** Maximum concurrent reviews per request. */
const concurrency = 32;
/** Maximum namespaces that are reviewed for a request whose decisions are at most 10 s old. */
const maxReviewed = 1_000;
/** Maximum namespaces of a list. */
const maxListed = 10_000;

/** Request of a caller who is not allowed to see the objects of all namespaces. */
interface Restricted extends ListRight {
  /** Namespaces that may be visible. */
  readonly candidates: Granted;
  /** True if the request names the namespace or the object. */
  readonly isNamed: boolean;
}

/**
 * Authorizes the request on the underlying resource and in its scope. Callers who are not allowed to list or watch in
 * all namespaces see the namespaces in which a RoleBinding gives them the right. In a list of Namespaces, such callers
 * see the namespaces that a RoleBinding allows them to get. Throws 403 with kube-apiserver's message if no namespace is
 * visible.
 */
export async function visibleNamespaces(
  access: Access,
  request: Pick<RequestContext, 'user' | 'info' | 'query'>,
  definition: Definition,
): Promise<Visible> {
  const restricted = await authorize(access, request, definition);
  return restricted && (await reviewEach(access, restricted));
}

/** Authorizes a list like `visibleNamespaces`, with older decisions about namespaces that the response does not show. */
export async function listScope(
  access: Access & Pick<ReadAccess, 'namespaceAccess'>,
  request: Pick<RequestContext, 'user' | 'info' | 'query'>,
  definition: Definition,
): Promise<ReadScope> {
  const restricted = await authorize(access, request, definition);
  if (restricted === undefined) return { visible: undefined };
  if (restricted.isNamed) return { visible: await reviewEach(access, restricted) };
  assertFew(restricted, maxListed);
  return await access.namespaceAccess.of(restricted, restricted.candidates);
}

/**
 * Returns true if a cached decision allows the request in its whole scope. `visibleNamespaces` and the `visible` of
 * `listScope` are then undefined.
 */
export const isKnownUnrestricted = (
  { authorizer }: Pick<Access, 'authorizer'>,
  { user, info }: Pick<RequestContext, 'user' | 'info'>,
  definition: Definition,
): boolean => user !== undefined && authorizer.allowsFromCache?.(user, attributesOf(info, definition)) === true;

function attributesOf(
  { verb, namespace, name }: RequestContext['info'],
  { underlying: { group, resource } }: Definition,
): Required<Omit<ResourceAttributes, 'subresource'>> {
  return { verb, group, resource, namespace, name };
}

/** Returns undefined if everything in the scope of the request is visible. */
async function authorize(
  { authorizer, granted }: Access,
  { user, info, query }: Pick<RequestContext, 'user' | 'info' | 'query'>,
  definition: Definition,
): Promise<Restricted | undefined> {
  if (user === undefined) throw unauthorized();
  const attributes = attributesOf(info, definition);
  const { verb, group, resource, namespace, name } = attributes;
  const { namespaced } = definition;
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
  return {
    user,
    attributes,
    within: (candidate) => ({
      ...attributes,
      ...(areNamespaces ? { verb: verb === 'list' ? 'get' : verb, name: candidate } : {}),
    }),
    candidates: named === '' ? granted.of(user) : new Map([[named, unbound]]),
    isNamed: named !== '' || name !== '',
  };
}

async function reviewEach({ authorizer }: Access, restricted: Restricted): Promise<ReadonlySet<string>> {
  assertFew(restricted, maxReviewed);
  const { user, attributes, within, candidates } = restricted;
  const visible = await allowedIn(authorizer, user, [...candidates.keys()], within);
  if (visible.size === 0) await assertAllowed(authorizer, user, attributes);
  return visible;
}

function assertFew({ user, attributes, candidates: { size } }: Restricted, max: number): void {
  const { verb, group, resource, name = '' } = attributes;
  if (size > max)
    throw forbidden(
      { group, resource },
      name,
      `User "${user.username}" cannot ${verb} resource "${resource}" in API group "${group}" at the cluster scope, and has role bindings in more than ${max} namespaces (${size}): specify a namespace`,
    );
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
