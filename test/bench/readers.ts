/**
 * Creates a hundred callers per server, so that the results do not depend on the cached decisions for one caller. Each
 * listener of our server has different callers, so that no listener benefits from caches that another listener filled.
 */
import { randomBytes } from 'node:crypto';
import type { KubeClient } from '../../src/cluster/client/client.ts';
import { Passwords } from '../../src/accounts/passwords/passwords.ts';
import { Connection, type Target } from './connection.ts';
import { readersNamespace } from './paths.ts';
import { problemOf, request } from './requests.ts';

export const callers = 100;
const faces = 3;
const group = 'bench-readers';
const metricsRole = 'bench-metrics';
const atOnce = 16;

export interface User {
  readonly username: string;
  readonly password: string;
}

export interface Users {
  readonly readers: readonly User[];
  /** Users with the correct password who are not allowed to log in. */
  readonly disabled: readonly User[];
  /** Chart values that create the users. */
  readonly values: object;
}

/** Returns the name of the ServiceAccount of a caller of kube-apiserver. */
export const readerAccount = (caller: number): string => `reader-${1 + (caller % callers)}`;

const names = (of: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${of}-${index + 1}`);

export async function makeUsers(): Promise<Users> {
  const passwords = new Passwords();
  const make = async (name: string, state: string): Promise<{ user: User; configured: object }> => {
    const user = { username: name, password: randomBytes(12).toString('base64url') };
    const passwordHash = await passwords.hash(user.password);
    return { user, configured: { username: name, passwordHash, state, groups: [group] } };
  };
  const readers = await inParallel(names('reader', faces * callers), (name) => make(name, 'Active'));
  const disabled = await inParallel(names('disabled', callers), (name) => make(name, 'Disabled'));
  return {
    readers: readers.map(({ user }) => user),
    disabled: disabled.map(({ user }) => user),
    values: {
      config: {
        authentication: {
          users: [...readers, ...disabled].map(({ configured }) => configured),
          // The benchmark causes more failed logins than a person would.
          loginLimit: { maxTries: 1000, within: '1s', perAddress: 1_000_000, perClient: 1_000_000 },
        },
      },
    },
  };
}

/** Allows the readers of both servers to read nodes, pods and the metrics of our server. */
export async function allowReaders(kube: KubeClient): Promise<void> {
  await kube.json('/api/v1/namespaces', { method: 'POST', body: { metadata: { name: readersNamespace } } });
  const apiGroup = 'rbac.authorization.k8s.io';
  await kube.json(`/apis/${apiGroup}/v1/clusterroles`, {
    method: 'POST',
    body: { metadata: { name: metricsRole }, rules: [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }] },
  });
  for (const role of ['platform-node-reader', 'view', metricsRole])
    await kube.json(`/apis/${apiGroup}/v1/clusterrolebindings`, {
      method: 'POST',
      body: {
        metadata: { name: `${group}-${role}` },
        roleRef: { apiGroup, kind: 'ClusterRole', name: role },
        subjects: [group, `system:serviceaccounts:${readersNamespace}`].map((name) => ({
          apiGroup,
          kind: 'Group',
          name,
        })),
      },
    });
}

/** Creates a ServiceAccount for each caller, and returns the tokens of these ServiceAccounts. */
export async function serviceAccountTokens(kube: KubeClient): Promise<string[]> {
  const path = `/api/v1/namespaces/${readersNamespace}/serviceaccounts`;
  return inParallel(names('reader', callers), async (name) => {
    await kube.json(path, { method: 'POST', body: { metadata: { name } } });
    const body = { spec: { expirationSeconds: 6 * 3600 } };
    const review = await kube.json<{ status: { token: string } }>(`${path}/${name}/token`, { method: 'POST', body });
    return review.status.token;
  });
}

export const loginForm = ({ username, password }: User): Record<string, string> => ({
  grant_type: 'password',
  username,
  password,
  client_id: 'platform',
  client_secret: 'platform',
});

/** Returns access tokens of our server. */
export async function platformTokens(target: Target, readers: readonly User[]): Promise<string[]> {
  return inParallel(readers, async (user) => {
    const connection = new Connection(target);
    const { text, expected } = request('/oauth/token', { text: 'access_token' }, { form: loginForm(user) });
    const response = await connection.send(Buffer.from(text), true);
    connection.close();
    const problem = problemOf(response, expected);
    if (problem !== undefined) throw new Error(`${user.username} cannot log in: ${problem}`);
    return (JSON.parse(String(response.body)) as { access_token: string }).access_token;
  });
}

async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const queue = [...items.entries()];
  const worker = async (): Promise<void> => {
    for (let entry = queue.shift(); entry !== undefined; entry = queue.shift())
      results[entry[0]] = await work(entry[1]);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}
