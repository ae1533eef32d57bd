/**
 * Determines the namespaces whose logs a caller is allowed to see, and the second from which the logs of each namespace
 * are visible.
 */
import { assertAllowed, type Authorizer } from '../../auth/authorizers/authorizer.ts';
import { badRequest, expired, forbidden, serviceUnavailable } from '../../runtime/errors.ts';
import type { UserInfo } from '../../auth/user.ts';
import type { RequestContext } from '../../http/route.ts';
import type { LogQuery } from './query.ts';
import type { Catalogue } from '../../cluster/catalogue/catalogue.ts';
import { readFromCache } from '../../cluster/catalogue/read-cache.ts';
import type { GrantedNamespaces } from '../../cluster/catalogue/granted-namespaces.ts';
import { allowedIn } from '../../apimachinery/visible-namespaces.ts';

export interface LogAccess {
  readonly authorizer: Authorizer;
  readonly granted: Pick<GrantedNamespaces, 'of' | 'hasSynced'>;
  readonly catalogue: Pick<Catalogue, 'find' | 'acquire'>;
}

/** Second from which logs are visible, by namespace; undefined if the caller is allowed to see all logs. */
export type VisibleLogs = ReadonlyMap<string, number> | undefined;

type Wanted = Pick<LogQuery, 'namespaces' | 'namespace_query'>;

interface Context extends Pick<RequestContext, 'signal'> {
  readonly user: UserInfo;
}

const getLogs = { verb: 'get', group: '', resource: 'pods', subresource: 'log', name: '' };
const maxCandidates = 10_000;
/**
 * Maximum number of requested namespaces in which no RoleBinding names the caller. Each such namespace requires an
 * access review by kube-apiserver, and callers can request any names.
 */
const maxUnbound = 200;

/**
 * Returns the logs that the caller is allowed to see. Callers who are allowed to get pods/log in all namespaces see all
 * logs, including those of deleted namespaces. Other callers see only the logs of namespaces in which they have this
 * right, and only logs written since the namespace was created. Candidates are the requested namespaces, or those in
 * which a RoleBinding names the caller.
 */
export async function visibleLogs(
  { authorizer, granted, catalogue }: LogAccess,
  context: Context,
  { namespaces, namespace_query: keywords }: Wanted,
): Promise<VisibleLogs> {
  const { user, signal } = context;
  if ((await authorizer.authorize(user, { ...getLogs, namespace: '' })).allowed)
    return namespaces.length === 0 ? undefined : new Map(namespaces.map((name) => [name, 0]));
  if (namespaces.length === 0 && !granted.hasSynced())
    throw serviceUnavailable('role bindings are not loaded yet; try again, or name the namespaces to query', 1);
  const words = keywords.map((word) => word.toLowerCase());
  const candidates = (namespaces.length === 0 ? [...granted.of(user).keys()] : namespaces).filter(
    (name) => words.length === 0 || words.some((word) => name.includes(word)),
  );
  if (candidates.length > maxCandidates)
    throw forbidden(
      { group: '', resource: 'pods' },
      '',
      `User "${user.username}" has role bindings in ${candidates.length} namespaces, more than ${maxCandidates}: select some of them with the parameter namespaces`,
    );
  const bound = granted.hasSynced() ? granted.of(user) : undefined;
  const unbound = candidates.filter((name) => bound?.has(name) !== true).length;
  if (unbound > maxUnbound)
    throw badRequest(
      `namespaces: ${unbound} of these namespaces have no role binding that names you; at most ${maxUnbound} are allowed per request`,
    );
  const allowed = await allowedIn(authorizer, user, candidates, () => getLogs);
  if (allowed.size === 0) return new Map();
  const entry = await catalogue.find('namespaces', signal);
  return readFromCache(catalogue, entry, context, (store) => {
    const visible = new Map<string, number>();
    for (const name of allowed) {
      const namespace = store.get('', name);
      if (namespace !== undefined) visible.set(name, Math.floor(namespace.createdAt / 1_000));
    }
    return visible;
  });
}

/** Throws 410 if the caller is allowed to see more than before, and 403 as `assertStillVisible` does. */
export async function assertSameVisible(...request: Parameters<typeof assertStillVisible>): Promise<void> {
  const now = await assertStillVisible(...request);
  const [, , , before] = request;
  if (!includes(before, now))
    throw expired('you are now allowed to see the logs of more namespaces: repeat the request');
}

/**
 * Returns the logs that the caller is allowed to see now. Throws 403, which ends the stream, if any previously visible
 * logs are no longer visible.
 */
export async function assertStillVisible(
  access: LogAccess,
  context: Context,
  wanted: Wanted,
  before: VisibleLogs,
): Promise<VisibleLogs> {
  const now = await visibleLogs(access, context, wanted);
  if (includes(now, before)) return now;
  if (before === undefined) await assertAllowed(access.authorizer, context.user, { ...getLogs, namespace: '' });
  throw forbidden(
    { group: '', resource: 'pods' },
    '',
    'the namespaces whose logs you are allowed to see have changed: repeat the request',
  );
}

function includes(all: VisibleLogs, some: VisibleLogs): boolean {
  if (all === undefined || some === undefined) return all === undefined;
  return [...some].every(([name, since]) => (all.get(name) ?? Infinity) <= since);
}
