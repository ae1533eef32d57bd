/**
 * Requests to kube-apiserver as the caller (k8s.io/apiserver pkg/endpoints/filters/impersonation). The right to
 * impersonate is root-equivalent, so it must be impossible to send a request that impersonates nobody.
 */
import { badRequest, forbidden } from '../../runtime/errors.ts';
import type { KubeClient, KubeRequest, KubeResponse } from './client.ts';

/** User that a request to kube-apiserver impersonates. */
export interface UpstreamIdentity {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  /** False for a token of this server, for which `system:` names are refused. */
  readonly proved: boolean;
}

const system = 'system:';
/** Group of every authenticated identity. */
const authenticated = 'system:authenticated';
const unauthenticated = 'system:unauthenticated';
const anonymous = 'system:anonymous';

const serviceAccount = /^system:serviceaccount:([a-z0-9-]+):[a-z0-9.-]+$/;

/**
 * Returns the groups to send. Omits the groups that kube-apiserver adds by itself (impersonation.go), because
 * kube-apiserver authorizes each group that is sent. If other groups are sent and the user is not anonymous,
 * kube-apiserver appends `system:authenticated`. If no group is sent, kube-apiserver appends the groups of a
 * ServiceAccount. The order of the groups stays the same.
 */
function groupsToSend({ username, groups }: UpstreamIdentity): readonly string[] {
  const others = groups.at(-1) === authenticated ? groups.slice(0, -1) : groups;
  const isAdded =
    others.length > 0 && !others.includes(authenticated) && !others.includes(unauthenticated) && username !== anonymous;
  if (!isAdded) return groups;
  const namespace = serviceAccount.exec(username)?.[1];
  const [first, second, ...more] = others;
  const areAddedByKubeApiserver =
    namespace !== undefined &&
    first === 'system:serviceaccounts' &&
    second === `system:serviceaccounts:${namespace}` &&
    more.length === 0;
  return areAddedByKubeApiserver ? [] : others;
}

/**
 * Returns whether a header can carry the value. Headers lose leading and trailing white space, so such a name would
 * become the name of another user.
 */
const isTransmittable = (value: string): boolean => !/[\p{Cc}]|^ | $/u.test(value);

/** Encodes the value as UTF-8, with one character per byte. */
function headerValue(what: string, value: string): string {
  if (!isTransmittable(value) || !value.isWellFormed())
    throw badRequest(`the ${what} has a character that is not allowed in a header`);
  return Buffer.from(value, 'utf8').toString('latin1');
}

/**
 * Encodes the key of an extra field like headerKeyEscape of k8s.io/client-go transport. Also encodes capitals, because
 * kube-apiserver converts unencoded capitals to lower case.
 */
const extraKey = (key: string): string =>
  [...Buffer.from(key, 'utf8')]
    .map((byte) => {
      const char = String.fromCharCode(byte);
      return /[!#$&'*+.^_`|~0-9a-z-]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    })
    .join('');

/**
 * Returns the headers that impersonate the user. Throws StatusError for a name that cannot or must not be impersonated.
 */
export function impersonationHeaders(user: UpstreamIdentity): Readonly<Record<string, string | readonly string[]>> {
  const { username, uid, groups, extra = {}, proved } = user;
  if (username === '') throw badRequest('the identity has no username');
  const reserved = [username, ...groups.filter((name) => name !== authenticated)].find((name) =>
    name.startsWith(system),
  );
  if (reserved !== undefined && !proved)
    throw forbidden({ group: '', resource: 'users' }, username, `the name "${reserved}" is reserved for Kubernetes`);
  const sentGroups = groupsToSend(user);
  return {
    'impersonate-user': headerValue('username', username),
    ...(uid === undefined || uid === '' ? {} : { 'impersonate-uid': headerValue('uid of the user', uid) }),
    ...(sentGroups.length === 0
      ? {}
      : { 'impersonate-group': sentGroups.map((name) => headerValue('name of a group', name)) }),
    ...Object.fromEntries(
      Object.entries(extra).map(([key, values]) => [
        `impersonate-extra-${extraKey(key)}`,
        values.map((value) => headerValue('extra of the user', value)),
      ]),
    ),
  };
}

/**
 * Returns a client that impersonates the user in every request. Its `stream` throws if the request already impersonates
 * a user.
 */
export function asUser(client: Pick<KubeClient, 'stream'>, user: UpstreamIdentity): Pick<KubeClient, 'stream'> {
  const identity = impersonationHeaders(user);
  return {
    stream(path: string, { headers = {}, ...options }: KubeRequest = {}): Promise<KubeResponse> {
      const forbiddenName = Object.keys(headers).find((name) => /^(?:impersonate-|authorization$)/i.test(name));
      if (forbiddenName !== undefined) throw new Error(`a request as a user must not have the header ${forbiddenName}`);
      const own = { lane: 'callers', source: user.username } as const;
      return client.stream(path, { ...own, ...options, headers: { ...headers, ...identity } });
    },
  };
}
