/**
 * Asking kube-apiserver as the caller (k8s.io/apiserver pkg/endpoints/filters/impersonation): the right to do so is
 * root-equivalent, so a request that does not say for whom it is must be impossible.
 */
import { badRequest, forbidden } from '../../runtime/errors.ts';
import type { KubeClient, KubeRequest, KubeResponse } from './client.ts';

/** The user as whom a request is sent to kube-apiserver. */
export interface UpstreamIdentity {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  /** kube-apiserver itself has proved it, by TokenReview or as front proxy: only then its `system:` names are believed. */
  readonly proved: boolean;
}

const system = 'system:';
/** Which every identity has. */
const authenticated = 'system:authenticated';
const unauthenticated = 'system:unauthenticated';
const anonymous = 'system:anonymous';

const serviceAccount = /^system:serviceaccount:([a-z0-9-]+):[a-z0-9.-]+$/;

/**
 * kube-apiserver asks its authorizer about each group, and adds some by itself (impersonation.go there): `system:authenticated` to
 * whoever has others, unless they are anonymous, and those of a ServiceAccount where none is named.
 */
function groupsToName({ username, groups }: UpstreamIdentity): readonly string[] {
  const others = groups.filter((name) => name !== authenticated);
  const isAdded = others.length > 0 && !others.includes(unauthenticated) && username !== anonymous;
  if (!isAdded) return groups;
  const namespace = serviceAccount.exec(username)?.[1];
  const isItsOwn = (name: string): boolean =>
    name === 'system:serviceaccounts' || name === `system:serviceaccounts:${namespace}`;
  return namespace !== undefined && new Set(others).size === 2 && others.every(isItsOwn) ? [] : others;
}

/** A header would lose white space at the ends of a value, and then name somebody else. */
const isTransmittable = (value: string): boolean => !/[\p{Cc}]|^ | $/u.test(value);

/** Header values are bytes: a name beyond ASCII goes as its UTF-8. */
function headerValue(what: string, value: string): string {
  if (!isTransmittable(value) || !value.isWellFormed())
    throw badRequest(`the ${what} has a character that no header may have`);
  return Buffer.from(value, 'utf8').toString('latin1');
}

/** headerKeyEscape of k8s.io/client-go transport, and capitals too: kube-apiserver lowers what is not percent-encoded. */
const extraKey = (key: string): string =>
  [...Buffer.from(key, 'utf8')]
    .map((byte) => {
      const char = String.fromCharCode(byte);
      return /[!#$&'*+.^_`|~0-9a-z-]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    })
    .join('');

/** The headers that say for whom a request is. Throws StatusError for a name that cannot, or must not, be impersonated. */
export function impersonationHeaders(user: UpstreamIdentity): Readonly<Record<string, string | readonly string[]>> {
  const { username, uid, groups, extra = {}, proved } = user;
  if (username === '') throw badRequest('the identity has no name');
  const claimed = [username, ...groups].find((name) => name.startsWith(system) && name !== authenticated);
  if (claimed !== undefined && !proved)
    throw forbidden({ group: '', resource: 'users' }, username, `the name "${claimed}" is Kubernetes' own`);
  if (username === authenticated) throw forbidden({ group: '', resource: 'users' }, username, 'it is a group');
  const named = groupsToName(user);
  return {
    'impersonate-user': headerValue('name of the user', username),
    ...(uid === undefined || uid === '' ? {} : { 'impersonate-uid': headerValue('uid of the user', uid) }),
    ...(named.length === 0 ? {} : { 'impersonate-group': named.map((name) => headerValue('name of a group', name)) }),
    ...Object.fromEntries(
      Object.entries(extra).map(([key, values]) => [
        `impersonate-extra-${extraKey(key)}`,
        values.map((value) => headerValue('extra of the user', value)),
      ]),
    ),
  };
}

/** The same client, which impersonates the user in every request. Throws for a request that brings an identity. */
export function asUser(client: Pick<KubeClient, 'stream'>, user: UpstreamIdentity): Pick<KubeClient, 'stream'> {
  const identity = impersonationHeaders(user);
  return {
    stream(path: string, { headers = {}, ...options }: KubeRequest = {}): Promise<KubeResponse> {
      const brought = Object.keys(headers).find((name) => /^(?:impersonate-|authorization$)/i.test(name));
      if (brought !== undefined) throw new Error(`a request of a user must not bring its own header ${brought}`);
      const own = { lane: 'callers', source: user.username } as const;
      return client.stream(path, { ...own, ...options, headers: { ...headers, ...identity } });
    },
  };
}
