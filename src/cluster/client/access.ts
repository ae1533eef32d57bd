/**
 * Address and credentials for kube-apiserver, from a kubeconfig or from the ServiceAccount of the pod. Imports only
 * some modules of client-node: the whole package, with a model of every kind, would add 0.5 s and 85 MB to each start.
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
import { delimiter, dirname, join, resolve } from 'node:path';
import { hasUserInfo } from '../../config/https-url.ts';
import { readYAML } from '../../config/yaml.ts';

export interface TLSOptions {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized: boolean;
}

/**
 * Address and credentials for one cluster. `tls` reads the CA, certificate and key files on every call, so that rotated
 * files take effect.
 */
export interface ClusterAccess {
  /** URL without a trailing slash. */
  readonly server: string;
  tls(): Promise<TLSOptions>;
  /** Returns the headers that authenticate this server. A token file is read again every minute. */
  headers(): Promise<Record<string, string>>;
}

/** Directory of the ServiceAccount in a pod (client-go rest.InClusterConfig). */
const serviceAccount = '/var/run/secrets/kubernetes.io/serviceaccount';

export function inClusterAccess(environment: NodeJS.ProcessEnv, directory = serviceAccount): ClusterAccess {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '' } = environment;
  if (host === '' || port === '')
    throw new Error(
      'not running in a pod: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set; use --kubeconfig FILE',
    );
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

/**
 * Reads a kubeconfig. If there are several files, the first entry of each name applies, and the first
 * current context (client-go clientcmd). Throws if a file cannot be read, or if the context has no cluster or user.
 */
export function fileAccess(files: string | readonly string[], context?: string): ClusterAccess {
  const all = [files].flat();
  const file = all.join(delimiter);
  const parts = all.map(read);
  const current = context ?? parts.map((part) => part?.['current-context']).find((name) => name);
  const { cluster: clusterName, user: userName } =
    parts.flatMap((part) => newContexts(part?.contexts)).find(({ name }) => name === current) ?? {};
  const cluster = parts.flatMap((part) => newClusters(part?.clusters)).find(({ name }) => name === clusterName);
  if (cluster === undefined)
    throw new Error(
      context === undefined
        ? `the kubeconfig ${file} has no current cluster`
        : `the kubeconfig ${file} has no context "${context}" with a cluster`,
    );
  if (URL.canParse(cluster.server) && hasUserInfo(new URL(cluster.server)))
    throw new Error(
      `the kubeconfig ${file} has a username or password in the server URL of the cluster "${cluster.name}"; move the credentials to "users"`,
    );
  const user = parts.flatMap((part) => newUsers(part?.users)).find(({ name }) => name === userName);
  if (user === undefined) throw new Error(`the kubeconfig ${file} has no current user`);
  const authInfo = parts.flatMap((part) => part?.users ?? []).find(({ name }) => name === user.name)?.user ?? {};
  const impersonation = impersonationKeys.find((key) => key in authInfo);
  if (impersonation !== undefined)
    throw new Error(
      `the kubeconfig ${file} sets "${impersonation}" for the user "${user.name}", but this server impersonates its callers and cannot itself be impersonated; remove "${impersonation}" and use the credentials of a user with the rights of the chart's ClusterRole`,
    );
  return access(
    withoutUndefined({ ...cluster }),
    // client-node ignores tokenFile, which kubectl supports. Without the token, requests would be anonymous.
    withTokenFile(withoutUndefined({ ...user }), authInfo['tokenFile']),
  );
}

/**
 * Parses a file. Relative paths in the file start at its folder. Errors do not quote the file, because it contains
 * credentials.
 */
function read(file: string): Kubeconfig | null {
  const yaml = readYAML(readFileSync(file, 'utf8'));
  if (!yaml.ok) {
    const problems = yaml.problems.map(({ position, message }) => `${position}: ${message}`);
    throw new Error(`the kubeconfig ${file} is not valid YAML: ${problems.join('; ')}`);
  }
  const kubeconfig = yaml.content as Kubeconfig | null;
  for (const entry of [...(kubeconfig?.clusters ?? []), ...(kubeconfig?.users ?? [])])
    for (const fields of [entry.cluster, entry.user])
      for (const key of pathKeys) if (fields?.[key]) fields[key] = resolve(dirname(file), fields[key]);
  return kubeconfig;
}

/** Keys of AuthInfo in client-go tools/clientcmd/api/v1. */
const impersonationKeys = ['as', 'as-uid', 'as-groups', 'as-user-extra'];

const pathKeys = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile'];

interface Entry {
  readonly name?: string;
  readonly cluster?: Record<string, string>;
  readonly user?: Record<string, string>;
}

interface Kubeconfig {
  readonly 'current-context'?: string;
  readonly clusters?: Entry[];
  readonly contexts?: unknown[];
  readonly users?: Entry[];
}

const withTokenFile = (user: User, tokenFile: string | undefined): User =>
  tokenFile ? { ...user, authProvider: { name: 'tokenFile', config: { tokenFile } } } : user;

/** Removes null and undefined values: the types of client-node allow only absent properties. */
const withoutUndefined = <T extends object>(value: { readonly [K in keyof T]: T[K] | undefined }): T =>
  Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined && item !== null)) as T;

/**
 * Returns the authenticator of client-node for this user; undefined if the credentials are in the kubeconfig itself.
 */
async function authenticatorOf(user: User): Promise<Authenticator | undefined> {
  const authenticator = [new ExecAuth(), new FileAuth()].find((candidate) => candidate.isAuthProvider(user));
  if (authenticator !== undefined || !user.authProvider) return authenticator;
  const { name } = user.authProvider as { readonly name?: string };
  // The module is loaded on demand, because its libraries are large and servers rarely use OpenID Connect.
  if (name === 'oidc') return new (await import('@kubernetes/client-node/dist/oidc_auth.js')).OpenIDConnectAuth();
  throw new Error(
    `the user "${user.name}" of the kubeconfig has the auth-provider "${name}", which Kubernetes no longer supports; use exec, a token or a certificate`,
  );
}

function access(cluster: Cluster, user: User): ClusterAccess {
  let authenticator: Promise<Authenticator | undefined> | undefined;
  /**
   * Returns the header and TLS options of the credential. An exec plugin may return a certificate instead of a token.
   */
  const credential = async (): Promise<{ headers: Record<string, string>; cert?: string; key?: string }> => {
    const result = { headers: {} as Record<string, string> };
    authenticator ??= authenticatorOf(user);
    await (await authenticator)?.applyAuthentication(user, result).catch((error: Error) => {
      // The message of client-node quotes the output of the exec plugin, which contains a credential.
      throw error.name === 'SyntaxError'
        ? new Error(`the exec plugin of the user "${user.name}" did not print JSON`)
        : error;
    });
    if (user.token !== undefined) result.headers['Authorization'] = `Bearer ${user.token}`;
    return result;
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
