/** Impersonation by kube-apiserver's headers (k8s.io/apiserver pkg/endpoints/filters/impersonation). */
import type { IncomingMessage } from 'node:http';
import type { ServerIdentity } from '../cluster/client/client.ts';
import { badRequest, forbidden } from '../runtime/errors.ts';
import { assertAllowed, type Authorizer, type ResourceAttributes } from './authorizers/authorizer.ts';
import { headerValues, identityText } from './identity-headers.ts';
import { serviceAccountOf, withImpliedGroups, type UserInfo } from './user.ts';

/** Maximum number of impersonated names, because each requires a review. */
const maxNames = 100;

const prefix = 'impersonate-';
const extraPrefix = `${prefix}extra-`;

export const requestsImpersonation = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean => {
  for (const name in headers) if (name.startsWith(prefix)) return true;
  return false;
};

function decoded(key: string): string {
  let text: string;
  try {
    text = decodeURIComponent(key);
  } catch {
    throw badRequest(`the header ${extraPrefix}${key} has an invalid percent-encoding`);
  }
  if (/\p{Cc}/u.test(text)) throw badRequest(`the header ${extraPrefix}${key} has a control character in its key`);
  return text;
}

/** Parses the headers. Throws 400 unless the headers name exactly one user. */
function parseHeaders(req: Pick<IncomingMessage, 'rawHeaders'>): UserInfo {
  const extra = new Map<string, string[]>();
  const found = new Map<string, string[]>();
  for (const [header, raw] of headerValues(req)) {
    if (!header.startsWith(prefix)) continue;
    const values = raw.map((value) => identityText(header, value));
    if (header.startsWith(extraPrefix)) {
      const key = decoded(header.slice(extraPrefix.length));
      extra.set(key, [...(extra.get(key) ?? []), ...values]);
    } else found.set(header.slice(prefix.length), values);
  }
  const { user = [], uid = [], group: groups = [], ...unknown } = Object.fromEntries(found);
  const [unknownHeader] = Object.keys(unknown);
  if (unknownHeader !== undefined) throw badRequest(`unknown header ${prefix}${unknownHeader}`);
  const [username = '', ...more] = user;
  if (username === '' || more.length > 0 || uid.length > 1)
    throw badRequest('impersonation requires exactly one header Impersonate-User and at most one Impersonate-Uid');
  return {
    username,
    ...(uid[0] === undefined ? {} : { uid: uid[0] }),
    groups,
    ...(extra.size === 0 ? {} : { extra: Object.fromEntries(extra) }),
    via: 'impersonation',
  };
}

/**
 * Returns the right that kube-apiserver requires for each name, in the order of kube-apiserver, because a refusal names
 * the first missing right.
 */
function rightsFor({
  username,
  uid,
  groups,
  extra = {},
}: UserInfo): (ResourceAttributes & { readonly name: string })[] {
  const verb = 'impersonate';
  const group = 'authentication.k8s.io';
  const account = serviceAccountOf(username);
  return [
    account === undefined
      ? { verb, group: '', resource: 'users', name: username }
      : { verb, group: '', resource: 'serviceaccounts', ...account },
    ...(uid === undefined ? [] : [{ verb, group, resource: 'uids', name: uid }]),
    ...groups.map((name) => ({ verb, group: '', resource: 'groups', name })),
    ...Object.entries(extra).flatMap(([subresource, values]) =>
      values.map((name) => ({ verb, group, resource: 'userextras', subresource, name })),
    ),
  ];
}

/** Decides which impersonations are allowed. */
export interface ImpersonationRules {
  readonly authorizer: Authorizer;
  /** Returns the identity of this server, which is allowed to impersonate everyone. */
  readonly ownIdentity: () => Promise<ServerIdentity>;
}

/** Throws 403 if the user is this server, because impersonating it would grant all rights. */
async function assertNotOwn({ username, uid }: UserInfo, { ownIdentity }: ImpersonationRules): Promise<void> {
  const own = await ownIdentity();
  if (username === own.username)
    throw forbidden({ group: '', resource: 'users' }, username, 'it is the identity of the gateway itself');
  if (uid !== undefined && uid === own.uid)
    throw forbidden({ group: 'authentication.k8s.io', resource: 'uids' }, uid, 'it is the uid of the gateway itself');
}

/**
 * Returns the impersonated user if the caller is allowed to impersonate every name in the headers, by the rules of
 * kube-apiserver. Nobody is allowed to impersonate this server. Throws StatusError 400 for invalid headers and 403 for
 * a forbidden name.
 */
export async function impersonatedUser(
  req: Pick<IncomingMessage, 'rawHeaders'>,
  user: UserInfo,
  rules: ImpersonationRules,
): Promise<UserInfo> {
  const requested = parseHeaders(req);
  const rights = rightsFor(requested);
  if (rights.length > maxNames)
    throw badRequest(
      `a request can impersonate at most ${maxNames} names; this request has ${rights.length} in user, uid, groups and extra`,
    );
  for (const { resource, name } of rights)
    if (name === '') throw badRequest(`the impersonated ${resource} include an empty name`);
  for (const right of rights) await assertAllowed(rules.authorizer, user, right);
  await assertNotOwn(requested, rules);
  return withImpliedGroups(requested);
}
