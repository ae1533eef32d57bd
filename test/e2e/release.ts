/** The release under test from its users' point of view. */
import { join } from 'node:path';
import { stringify } from 'yaml';
import { nativeHashFunctions } from '../../src/accounts/passwords/passwords.ts';
import type { KubeClient } from '../../src/cluster/client/client.ts';
import { isKubeError } from '../../src/cluster/client/kube-error.ts';
import type { Cluster } from './cluster.ts';
import type { Client, Request } from './curl.ts';

export const release = 'platform-apiserver';
export const namespace = 'platform-system';
export const podsPath = `/api/v1/namespaces/${namespace}/pods`;
export const chart = join(import.meta.dirname, '../../charts/platform-apiserver');
export const host = `${release}.${namespace}.svc`;
export const nodesPath = '/kapis/resources.platform.io/v1alpha3/nodes';
export const apiService = '/apis/apiregistration.k8s.io/v1/apiservices/v1alpha3.resources.platform.io';

/** Runs helm install or upgrade; `--set` overrides the chart's values. */
export async function helmInstall(cluster: Cluster, ...settings: readonly string[]): Promise<void> {
  const { repository, tag } = cluster.image;
  const values = [`image.repository=${repository}`, `image.tag=${tag}`, ...settings];
  const flags = `--install --namespace ${namespace} --create-namespace --wait --timeout 120s`;
  await cluster.helm(`upgrade ${release} ${chart} ${flags} --set ${values.join(',')}`);
}

interface ContainerStatus {
  readonly restartCount: number;
  readonly state?: { readonly terminated?: { readonly exitCode: number } };
}

export interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
  readonly status: {
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

/** Returns the server's pods that are not terminating. */
export async function pods({ kube }: Cluster): Promise<Pod[]> {
  const query = { labelSelector: `app.kubernetes.io/name=${release}` };
  const { items } = await kube.json<{ items: Pod[] }>(podsPath, { query });
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

export const isReady = ({ status }: Pod): boolean =>
  status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false;

/** Waits until all replicas are ready and no pod is terminating, since terminating pods still serve requests. */
export async function settled({ kube, until }: Cluster, replicas: number): Promise<void> {
  const query = { labelSelector: `app.kubernetes.io/name=${release}` };
  await until(`${replicas} replicas are ready`, async () => {
    const { items } = await kube.json<{ items: Pod[] }>(podsPath, { query });
    return items.length === replicas && items.every(isReady);
  });
}

/** Returns the object at a path, or undefined if it does not exist. */
export async function found<T>({ kube }: Cluster, path: string): Promise<T | undefined> {
  try {
    return await kube.json<T>(path);
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}

export interface NewUser {
  readonly username: string;
  readonly password: string;
  readonly groups?: readonly string[];
}

/** Creates a User with a password. */
export async function createUser(kube: KubeClient, { username, password, groups = [] }: NewUser): Promise<void> {
  const user = { apiVersion: 'iam.platform.io/v1alpha2', kind: 'User' };
  const { metadata } = await kube.json<{ metadata: { uid: string } }>('/apis/iam.platform.io/v1alpha2/users', {
    method: 'POST',
    body: { ...user, metadata: { name: username }, spec: { groups } },
  });
  await kube.json(`/api/v1/namespaces/${namespace}/secrets`, {
    method: 'POST',
    body: {
      metadata: {
        name: passwordSecret(metadata.uid),
        ownerReferences: [{ ...user, name: username, uid: metadata.uid }],
      },
      type: 'iam.platform.io/password',
      stringData: { passwordHash: await nativeHashFunctions.hash(password, 'bcrypt:4') },
    },
  });
}

/** Returns the name of the Secret with the password of the User with this uid. */
export const passwordSecret = (uid: string): string => `platform-user-${uid}`;

export async function adminPassword({ kube }: Cluster): Promise<string> {
  const { data } = await kube.json<{ data: Record<string, string> }>(
    `/api/v1/namespaces/${namespace}/secrets/platform-admin`,
  );
  return Buffer.from(data['password'] ?? '', 'base64').toString('utf8');
}

/** Returns the CA in PEM that the release publishes for its clients. */
export async function authority({ kube }: Cluster): Promise<string> {
  const { data } = await kube.json<{ data: Record<string, string> }>(
    `/api/v1/namespaces/${namespace}/configmaps/platform-apiserver-ca`,
  );
  return data['ca.crt'] ?? '';
}

/** Returns a kubeconfig that accesses the cluster through the release, at the ClusterIP of its Service. */
export async function kubeconfig(cluster: Cluster, token: string, defaultNamespace = 'default'): Promise<string> {
  const { spec } = await cluster.kube.json<{ spec: { clusterIP: string } }>(
    `/api/v1/namespaces/${namespace}/services/${release}`,
  );
  const ca = Buffer.from(await authority(cluster)).toString('base64');
  const server = { server: `https://${spec.clusterIP}`, 'tls-server-name': host, 'certificate-authority-data': ca };
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: server }],
    users: [{ name: 'u', user: { token } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u', namespace: defaultNamespace } }],
    'current-context': 'c',
  });
}

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly expires_in: number;
}

type Connection = Pick<Request, 'authority' | 'connectTo'>;

export async function logIn(
  client: Client,
  base: string,
  password: string,
  connection: Connection = {},
  username = 'admin',
): Promise<Tokens> {
  return tokens(client, base, { grant_type: 'password', username, password }, connection);
}

export async function refresh(client: Client, base: string, token: string): Promise<Tokens> {
  return tokens(client, base, { grant_type: 'refresh_token', refresh_token: token }, {});
}

async function tokens(
  client: Client,
  base: string,
  grant: Readonly<Record<string, string>>,
  connection: Connection,
): Promise<Tokens> {
  const form = { ...grant, client_id: 'platform', client_secret: 'platform' };
  const { status, body } = await client.request(`${base}/oauth/token`, { form, ...connection });
  if (status !== 200) throw new Error(`${base}/oauth/token returned ${status}: ${body}`);
  return JSON.parse(body) as Tokens;
}

/** Returns the names of the nodes as the server lists them. */
export async function listNodes(
  client: Client,
  base: string,
  token: string,
  connection: Connection = {},
): Promise<string[]> {
  const { status, body } = await client.request(`${base}${nodesPath}`, { token, ...connection });
  if (status !== 200) throw new Error(`${base}${nodesPath} returned ${status}: ${body}`);
  const { items } = JSON.parse(body) as { items: { metadata: { name: string } }[] };
  return items.map(({ metadata }) => metadata.name);
}
