/**
 * Where kube-apiserver is and who we are there: from a kubeconfig, or from the pod's ServiceAccount. Made of the parts of client-node
 * that read and authenticate, because the whole of it, with a model of every kind, costs half a second and 85 MB at each start.
 */
import type { Authenticator } from '@kubernetes/client-node/dist/auth.js';
import {
  newClusters,
  newContexts,
  newUsers,
  type Cluster,
  type User,
} from '@kubernetes/client-node/dist/config_types.js';
import { ExecAuth } from '@kubernetes/client-node/dist/exec_auth.js';
import { FileAuth } from '@kubernetes/client-node/dist/file_auth.js';
import { readFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { hasUserInfo } from '../../config/https-url.ts';
import { readYAML } from '../../config/yaml.ts';

export interface TLSOptions {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized: boolean;
}

/** One way to one cluster. What is in files is read when it is asked for. */
export interface ClusterAccess {
  /** Without a slash at the end. */
  readonly server: string;
  tls(): Promise<TLSOptions>;
  /** What says who we are; a token that is renewed in its file is read again each minute. */
  headers(): Promise<Record<string, string>>;
}

/** Where Kubernetes puts a pod's ServiceAccount (client-go rest.InClusterConfig). */
const serviceAccount = '/var/run/secrets/kubernetes.io/serviceaccount';

export function inClusterAccess(environment: NodeJS.ProcessEnv, directory = serviceAccount): ClusterAccess {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '' } = environment;
  if (host === '' || port === '')
    throw new Error('this is no pod of a cluster, where KUBERNETES_SERVICE_HOST is set: name a file by --kubeconfig');
  return access(
    {
      name: 'cluster',
      server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
      caFile: join(directory, 'ca.crt'),
      skipTLSVerify: false,
    },
    withTokenFile({ name: 'pod' }, join(directory, 'token')),
  );
}

/** Throws if the file cannot be read, or has no current context with a cluster and a user. */
export function fileAccess(file: string): ClusterAccess {
  const folder = dirname(file);
  const kubeconfig = read(file);
  const current = kubeconfig?.['current-context'];
  const context = newContexts(kubeconfig?.contexts).find(({ name }) => name === current);
  const cluster = newClusters(kubeconfig?.clusters).find(({ name }) => name === context?.cluster);
  if (cluster === undefined) throw new Error(`the kubeconfig ${file} has no current cluster`);
  if (URL.canParse(cluster.server) && hasUserInfo(new URL(cluster.server)))
    throw new Error(
      `the kubeconfig ${file} has a username or password in the server of the cluster "${cluster.name}": put the credentials into "users"`,
    );
  const user = newUsers(kubeconfig?.users).find(({ name }) => name === context?.user);
  if (user === undefined) throw new Error(`the kubeconfig ${file} has no current user`);
  const written = kubeconfig?.users?.find(({ name }) => name === user.name)?.user ?? {};
  const impersonation = impersonationKeys.find((key) => key in written);
  if (impersonation !== undefined)
    throw new Error(
      `the kubeconfig ${file} sets "${impersonation}" for the user "${user.name}": this server impersonates its callers, so its own user cannot impersonate; remove "${impersonation}" and use the credentials of a user with the rights of the chart's ClusterRole`,
    );
  // kubectl's, which client-node does not know: without it we would call as nobody.
  const { tokenFile } = written;
  const absolute = (path: string | undefined): string | undefined => path && resolve(folder, path);
  return access(
    given({ ...cluster, caFile: absolute(cluster.caFile) }),
    withTokenFile(
      given({ ...user, certFile: absolute(user.certFile), keyFile: absolute(user.keyFile) }),
      absolute(tokenFile),
    ),
  );
}

/** Throws without quoting the file, which holds credentials. */
function read(file: string): Kubeconfig | null {
  const yaml = readYAML(readFileSync(file, 'utf8'));
  if (yaml.ok) return yaml.content as Kubeconfig | null;
  const problems = yaml.problems.map(({ place, message }) => `${place}: ${message}`);
  throw new Error(`the kubeconfig ${file} is not valid YAML: ${problems.join('; ')}`);
}

/** client-go tools/clientcmd/api/v1 AuthInfo. */
const impersonationKeys = ['as', 'as-uid', 'as-groups', 'as-user-extra'];

interface Kubeconfig {
  readonly 'current-context'?: string;
  readonly clusters?: unknown[];
  readonly contexts?: unknown[];
  readonly users?: { readonly name?: string; readonly user?: { readonly tokenFile?: string } }[];
}

const withTokenFile = (user: User, tokenFile: string | undefined): User =>
  tokenFile ? { ...user, authProvider: { name: 'tokenFile', config: { tokenFile } } } : user;

/** client-node's types know undefined only as absence. */
const given = <T extends object>(value: { readonly [K in keyof T]: T[K] | undefined }): T =>
  Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined && item !== null)) as T;

/** What client-node has for this kind of user; undefined for one who needs no more than what the kubeconfig holds. */
async function authenticatorOf(user: User): Promise<Authenticator | undefined> {
  const found = [new ExecAuth(), new FileAuth()].find((one) => one.isAuthProvider(user));
  if (found !== undefined || !user.authProvider) return found;
  const { name } = user.authProvider as { readonly name?: string };
  // Its libraries are large, and a server rarely logs in so.
  if (name === 'oidc') return new (await import('@kubernetes/client-node/dist/oidc_auth.js')).OpenIDConnectAuth();
  throw new Error(
    `user ${user.name} of the kubeconfig has the auth-provider ${name}, which Kubernetes has given up: use exec, a token or a certificate`,
  );
}

function access(cluster: Cluster, user: User): ClusterAccess {
  let authenticator: Promise<Authenticator | undefined> | undefined;
  /** An exec plugin may give a certificate in the place of a token. */
  const credential = async (): Promise<{ headers: Record<string, string>; cert?: string; key?: string }> => {
    const found = { headers: {} as Record<string, string> };
    authenticator ??= authenticatorOf(user);
    await (await authenticator)?.applyAuthentication(user, found).catch((error: Error) => {
      // client-node's message quotes what an exec plugin printed, which holds a credential.
      throw error.name === 'SyntaxError'
        ? new Error(`the plugin of the user "${user.name}" did not print JSON`)
        : error;
    });
    if (user.token !== undefined) found.headers['Authorization'] = `Bearer ${user.token}`;
    return found;
  };
  return {
    server: cluster.server.replace(/\/+$/, ''),
    tls: async () => {
      const ca = bytesOf(cluster.caFile, cluster.caData);
      const { cert = bytesOf(user.certFile, user.certData), key = bytesOf(user.keyFile, user.keyData) } =
        await credential();
      return {
        ...(ca === undefined ? {} : { ca }),
        ...(cert === undefined ? {} : { cert }),
        ...(key === undefined ? {} : { key }),
        ...(cluster.tlsServerName === undefined ? {} : { servername: cluster.tlsServerName }),
        rejectUnauthorized: !cluster.skipTLSVerify,
      };
    },
    headers: async () => (await credential()).headers,
  };
}

const bytesOf = (file: string | undefined, data: string | undefined): Buffer | undefined =>
  file !== undefined ? readFileSync(file) : data === undefined ? undefined : Buffer.from(data, 'base64');
