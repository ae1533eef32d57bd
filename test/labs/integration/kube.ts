/**
 * Client of kube-apiserver with administrator rights. The library client-node is not used, because its import costs
 * every test file half a second.
 */
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { parse } from 'yaml';
import type { KubeClient, KubeRequest, KubeResponse } from '../../../src/cluster/client/client.ts';
import { KubeError } from '../../../src/cluster/client/kube-error.ts';
import { release } from '../../../hack/run/chart.ts';
import { openURL } from '../../client/http1.ts';
import { whole, type Message } from '../../client/message.ts';
import { lab } from './lab.ts';

interface Kubeconfig {
  readonly clusters: readonly { readonly cluster: Readonly<Record<string, string>> }[];
  readonly users: readonly { readonly user: Readonly<Record<string, string>> }[];
}

const decode = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'base64');

class Administrator implements KubeClient {
  readonly #server: string;
  readonly #identity: ConnectionOptions;

  constructor(kubeconfig: string) {
    const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig;
    this.#server = clusters[0]?.cluster['server'] ?? '';
    this.#identity = {
      ca: decode(clusters[0]?.cluster['certificate-authority-data']),
      cert: decode(users[0]?.user['client-certificate-data']),
      key: decode(users[0]?.user['client-key-data']),
    };
  }

  async stream(path: string, options?: KubeRequest): Promise<KubeResponse> {
    const message = await this.#open(path, options);
    return { status: message.status, headers: message.headers, body: message };
  }

  #open(path: string, options: KubeRequest = {}): Promise<Message> {
    const url = new URL(`${this.#server}${path}`);
    for (const [name, value] of Object.entries(options.query ?? {}))
      if (value !== undefined) url.searchParams.set(name, String(value));
    const headers = {
      accept: 'application/json',
      ...(options.body === undefined ? {} : { 'content-type': options.contentType ?? 'application/json' }),
      ...options.headers,
    };
    const body = options.body === undefined ? undefined : JSON.stringify(options.body);
    return openURL(url.href, this.#identity, { method: options.method ?? 'GET', headers, body });
  }

  async json<T>(path: string, options?: KubeRequest): Promise<T> {
    const { status, content } = await whole(await this.#open(path, options));
    const text = content.toString('utf8');
    if (status < 200 || status > 299) throw KubeError.from(status, text);
    return JSON.parse(text) as T;
  }

  async audiences(): Promise<readonly string[]> {
    return [];
  }

  async issuer(): Promise<undefined> {
    return undefined;
  }

  async close(): Promise<void> {
    // The client keeps no connection open.
  }
}

let administrator: Administrator | undefined;

export function kube(): KubeClient {
  administrator ??= new Administrator(lab().kubeconfig);
  return administrator;
}

export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly creationTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly selfLink?: string;
    readonly managedFields?: readonly unknown[];
  };
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

export interface KubeList {
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: {
    readonly resourceVersion: string;
    readonly continue?: string;
    readonly remainingItemCount?: number;
  };
  readonly items: readonly KubeObject[];
}

const core = '/api/v1';
/** Objects in the release's namespace. */
export const releasePath = `${core}/namespaces/${release.namespace}`;
export const merge = 'application/merge-patch+json';

export const get = <T = KubeObject>(path: string): Promise<T> => kube().json<T>(path);
export const create = (path: string, body: object): Promise<KubeObject> => kube().json(path, { method: 'POST', body });
export const patch = (path: string, body: object): Promise<KubeObject> =>
  kube().json(path, { method: 'PATCH', body, contentType: merge });

/** Deletes an object. A missing object counts as deleted. */
export async function remove(path: string): Promise<void> {
  try {
    await kube().json(path, { method: 'DELETE' });
  } catch (error) {
    if (!(error instanceof KubeError) || error.code !== 404) throw error;
  }
}

export const nodes = (): Promise<KubeList> => get<KubeList>(`${core}/nodes`);
export const nodePath = (name: string): string => `${core}/nodes/${name}`;

/** Creates a node that neither a kubelet nor kwok updates. */
export const createNode = (name: string, more: { metadata?: object; spec?: object } = {}): Promise<KubeObject> =>
  create(`${core}/nodes`, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, ...more.metadata },
    spec: more.spec ?? {},
  });

const serviceAccounts = `${core}/namespaces/default/serviceaccounts`;

/** Creates a ServiceAccount in the namespace `default`. */
export const createServiceAccount = (name: string): Promise<KubeObject> =>
  create(serviceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } });

export const removeServiceAccount = (name: string): Promise<void> => remove(`${serviceAccounts}/${name}`);

export async function serviceAccountToken(name: string, audiences?: readonly string[]): Promise<string> {
  const { status } = await kube().json<{ status: { token: string } }>(`${serviceAccounts}/${name}/token`, {
    method: 'POST',
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: 3600, ...(audiences === undefined ? {} : { audiences }) },
    },
  });
  return status.token;
}

const rbac = '/apis/rbac.authorization.k8s.io/v1';

export const createClusterRole = (name: string, rules: readonly object[]): Promise<KubeObject> =>
  create(`${rbac}/clusterroles`, { metadata: { name }, rules });
export const removeClusterRole = (name: string): Promise<void> => remove(`${rbac}/clusterroles/${name}`);

export interface Subject {
  readonly kind: 'User' | 'Group' | 'ServiceAccount';
  readonly name: string;
  readonly namespace?: string;
}

/** Grants a ClusterRole to the subjects in the whole cluster. */
export const bind = (name: string, role: string, ...subjects: readonly Subject[]): Promise<KubeObject> =>
  create(`${rbac}/clusterrolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: subjects.map((subject) =>
      subject.kind === 'ServiceAccount' ? subject : { ...subject, apiGroup: 'rbac.authorization.k8s.io' },
    ),
  });
export const unbind = (name: string): Promise<void> => remove(`${rbac}/clusterrolebindings/${name}`);
