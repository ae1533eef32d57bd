/** In which namespaces a caller may see logs, and from which second on. */
import { demand, type Authorizer } from '../../auth/authorizers/authorizer.ts';
import { badRequest, expired, forbidden, serviceUnavailable } from '../../runtime/errors.ts';
import type { UserInfo } from '../../auth/user.ts';
import type { RequestContext } from '../../http/route.ts';
import type { LogQuery } from './query.ts';
import type { Catalogue } from '../../cluster/catalogue/catalogue.ts';
import { fromCopy } from '../../cluster/catalogue/use.ts';
import type { GrantedNamespaces } from '../../cluster/catalogue/granted-namespaces.ts';
import { allowedIn } from '../../apimachinery/visible-namespaces.ts';

export interface LogAccess {
  readonly authorizer: Authorizer;
  readonly granted: Pick<GrantedNamespaces, 'of' | 'hasSynced'>;
  readonly catalogue: Pick<Catalogue, 'find' | 'use'>;
}

/** By name, the first second that may be shown; undefined: everything may be. */
export type VisibleLogs = ReadonlyMap<string, number> | undefined;

type Wanted = Pick<LogQuery, 'namespaces' | 'namespace_query'>;

interface Context extends Pick<RequestContext, 'signal'> {
  readonly user: UserInfo;
}

const getLogs = { verb: 'get', group: '', resource: 'pods', subresource: 'log', name: '' };
const mostCandidates = 10_000;
/** Named ones in which no RoleBinding names the caller: each is a question to kube-apiserver, and anybody can think of names. */
const mostUnbound = 200;

/**
 * Who may get pods/log in all namespaces sees all, also of namespaces that are gone; others what was written in the namespaces that they may,
 * since each was made. Candidates are those that are named, or in which a RoleBinding names the caller.
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
    throw serviceUnavailable('the role bindings are not read yet; namespaces that are named need none', 1);
  const words = keywords.map((word) => word.toLowerCase());
  const candidates = (namespaces.length === 0 ? granted.of(user) : namespaces).filter(
    (name) => words.length === 0 || words.some((word) => name.includes(word)),
  );
  if (candidates.length > mostCandidates)
    throw forbidden(
      { group: '', resource: 'pods' },
      '',
      `User "${user.username}" has role bindings in ${candidates.length} namespaces, more than ${mostCandidates}: name some`,
    );
  const bound = new Set(granted.hasSynced() ? granted.of(user) : []);
  const unbound = candidates.filter((name) => !bound.has(name)).length;
  if (unbound > mostUnbound)
    throw badRequest(
      `namespaces: ${unbound} of these have no role binding that names you, more than ${mostUnbound}: name fewer at once`,
    );
  const allowed = await allowedIn(authorizer, user, candidates, () => getLogs);
  if (allowed.size === 0) return new Map();
  const entry = await catalogue.find('namespaces', signal);
  return fromCopy(catalogue, entry, context, (store) => {
    const visible = new Map<string, number>();
    for (const name of allowed) {
      const namespace = store.get('', name);
      if (namespace !== undefined) visible.set(name, Math.floor(namespace.createdAt / 1_000));
    }
    return visible;
  });
}

/** Throws 410 if the caller sees more than before, 403 as `demandStill` does. */
export async function demandSame(...request: Parameters<typeof demandStill>): Promise<void> {
  const now = await demandStill(...request);
  const [, , , before] = request;
  if (!includes(before, now)) throw expired('you may see the logs of more namespaces now: repeat the request');
}

/** Returns what the caller sees now. Throws 403 unless that includes what it saw before, of which a stream must not go on. */
export async function demandStill(
  access: LogAccess,
  context: Context,
  wanted: Wanted,
  before: VisibleLogs,
): Promise<VisibleLogs> {
  const now = await visibleLogs(access, context, wanted);
  if (includes(now, before)) return now;
  if (before === undefined) await demand(access.authorizer, context.user, { ...getLogs, namespace: '' });
  throw forbidden(
    { group: '', resource: 'pods' },
    '',
    'the namespaces whose logs you may see have changed: repeat the request',
  );
}

function includes(all: VisibleLogs, some: VisibleLogs): boolean {
  if (all === undefined || some === undefined) return all === undefined;
  return [...some].every(([name, since]) => (all.get(name) ?? Infinity) <= since);
}
