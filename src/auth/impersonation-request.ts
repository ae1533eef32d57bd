/** Who asks to be somebody else, by kube-apiserver's own headers (k8s.io/apiserver pkg/endpoints/filters/impersonation). */
import type { IncomingMessage } from 'node:http';
import { badRequest, forbidden } from '../runtime/errors.ts';
import { demand, type Authorizer, type ResourceAttributes } from './authorizers/authorizer.ts';
import { headerValues, identityText } from './identity-headers.ts';
import { withAuthenticated, type UserInfo } from './user.ts';

/** A right is asked about for each. */
const mostNames = 100;

const prefix = 'impersonate-';
const extraPrefix = `${prefix}extra-`;

export const asksToImpersonate = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean => {
  for (const name in headers) if (name.startsWith(prefix)) return true;
  return false;
};

function decoded(key: string): string {
  let text: string;
  try {
    text = decodeURIComponent(key);
  } catch {
    throw badRequest(`the header ${extraPrefix}${key} has a bad percent-encoding`);
  }
  if (/\p{Cc}/u.test(text)) throw badRequest(`the header ${extraPrefix}${key} has a control character in its key`);
  return text;
}

/** Whom the headers name. Throws 400 where they do not name one user. */
function named(req: Pick<IncomingMessage, 'rawHeaders'>): UserInfo {
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
  const [odd] = Object.keys(unknown);
  if (odd !== undefined) throw badRequest(`there is no header ${prefix}${odd}`);
  const [username = '', ...more] = user;
  if (username === '' || more.length > 0 || uid.length > 1)
    throw badRequest('who impersonates names one user, by one header Impersonate-User');
  return {
    username,
    ...(uid[0] === undefined ? {} : { uid: uid[0] }),
    groups,
    ...(extra.size === 0 ? {} : { extra: Object.fromEntries(extra) }),
    // Its names are as those of any user of ours: none is Kubernetes' own.
    via: 'token',
  };
}

/** A right for each name, as kube-apiserver demands it. */
function rightsFor({
  username,
  uid,
  groups,
  extra = {},
}: UserInfo): (ResourceAttributes & { readonly name: string })[] {
  const verb = 'impersonate';
  const group = 'authentication.k8s.io';
  return [
    { verb, group: '', resource: 'users', name: username },
    ...groups.map((name) => ({ verb, group: '', resource: 'groups', name })),
    ...(uid === undefined ? [] : [{ verb, group, resource: 'uids', name: uid }]),
    ...Object.entries(extra).flatMap(([subresource, values]) =>
      values.map((name) => ({ verb, group, resource: 'userextras', subresource, name })),
    ),
  ];
}

/**
 * Whom the caller asks to be, if they may. Kubernetes' own names are nobody's: they are root's, or a way to be a component.
 * Throws StatusError 400 for headers that make no sense, 403 for a name that the caller may not impersonate.
 */
export async function impersonatedUser(
  req: Pick<IncomingMessage, 'rawHeaders'>,
  user: UserInfo,
  authorizer: Authorizer,
): Promise<UserInfo> {
  const wanted = named(req);
  const rights = rightsFor(wanted);
  if (rights.length > mostNames)
    throw badRequest(
      `nobody impersonates more than ${mostNames} names at once: the user, uid, groups and extra are ${rights.length}`,
    );
  for (const { resource, group, name } of rights) {
    if (name === '') throw badRequest(`an empty name among the ${resource} to impersonate`);
    if (name.startsWith('system:'))
      throw forbidden({ group, resource }, name, "nobody impersonates what is Kubernetes' own through the gateway");
  }
  for (const right of rights) await demand(authorizer, user, right);
  return withAuthenticated(wanted);
}
