/**
 * Fills a cluster with pods that write logs, and serves callers with different rights. alice is allowed to do
 * everything. bob is allowed to get pods/log in `shop` and `bank`, where RoleBindings name him. A RoleBinding in `shut`
 * gives bob a different right. carol has no rights.
 */
import type { MemoryCluster } from '../../fakes/cluster.ts';
import type { LogLine } from '../../fakes/pod-logs.ts';
import type { AppRequest } from '../../fakes/request.ts';

/** Time of the start of all logs, in seconds since the epoch. */
export const begin = Math.floor(Date.now() / 1_000) - 600;

export const at = (seconds: number, fraction = '000000000'): string =>
  `${new Date((begin + seconds) * 1_000).toISOString().slice(0, 19)}.${fraction}Z`;

export const line = (seconds: number, log: string | Buffer, fraction?: string): LogLine => ({
  time: at(seconds, fraction),
  log,
});

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const tokenOf = (name: string): string =>
  `${encoded({ alg: 'none' })}.${encoded({ iss: 'https://kubernetes', sub: name })}.none`;
const nameIn = (token: string): unknown =>
  (JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { sub?: unknown }).sub;

/** Returns request options with a token that kube-apiserver accepts. */
export const as = (name: string, headers: AppRequest['headers'] = {}): AppRequest => ({
  headers: { authorization: `Bearer ${tokenOf(name)}`, ...headers },
});

interface PodSpec {
  readonly namespace: string;
  readonly name: string;
  readonly containers?: readonly string[];
  readonly owner?: { readonly kind: string; readonly name: string };
  readonly labels?: Readonly<Record<string, string>>;
  readonly restarted?: boolean;
}

export function putPod(
  cluster: MemoryCluster,
  { namespace, name, containers = ['main'], owner, labels, restarted }: PodSpec,
): void {
  cluster.put('/api/v1/pods', {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: {
      name,
      namespace,
      creationTimestamp: new Date(begin * 1_000).toISOString(),
      ...(labels === undefined ? {} : { labels }),
      ...(owner === undefined ? {} : { ownerReferences: [{ apiVersion: 'v1', uid: 'u', controller: true, ...owner }] }),
    },
    spec: { containers: containers.map((container) => ({ name: container })) },
    status: {
      phase: 'Running',
      containerStatuses: containers.map((container) => ({
        name: container,
        restartCount: restarted === true ? 1 : 0,
        ...(restarted === true ? { lastState: { terminated: {} } } : {}),
      })),
    },
  });
}

export function putNamespace(cluster: MemoryCluster, name: string, createdAt = begin - 60): void {
  cluster.put('/api/v1/namespaces', {
    kind: 'Namespace',
    apiVersion: 'v1',
    metadata: { name, creationTimestamp: new Date(createdAt * 1_000).toISOString() },
    status: { phase: 'Active' },
  });
}

export function bind(cluster: MemoryCluster, namespace: string, user: string): void {
  cluster.put('/apis/rbac.authorization.k8s.io/v1/rolebindings', {
    metadata: { name: `${user}-in-${namespace}`, namespace },
    subjects: [{ kind: 'User', name: user }],
  });
}

interface Review {
  readonly user: string;
  readonly resourceAttributes?: {
    readonly verb: string;
    readonly resource: string;
    readonly subresource?: string;
    readonly namespace?: string;
  };
}

/** Namespaces in which each user is allowed to get pods/log. */
export type Rights = Map<string, Set<string>>;

const reads = ['get', 'list', 'watch'];
const writes = ['create', 'update', 'patch', 'delete', 'deletecollection'];

export const resource = (name: string, kind: string, scope: string, verbs = [...reads, ...writes]): object => ({
  resource: name,
  responseKind: { kind },
  scope,
  singularResource: kind.toLowerCase(),
  verbs,
});

interface OtherResources {
  /** Resources of the core API. */
  readonly core?: readonly object[];
  readonly apps?: readonly object[];
}

const group = (name: string, resources: readonly object[]): object => ({
  metadata: { name },
  versions: [{ version: 'v1', freshness: 'Current', resources }],
});

/** Serves the discovery documents of pods and namespaces, which the server caches, and of other resources. */
export function serveResources(cluster: MemoryCluster, { core = [], apps = [] }: OtherResources = {}): void {
  const always = [resource('pods', 'Pod', 'Namespaced'), resource('namespaces', 'Namespace', 'Cluster')];
  const root = (name: string, items: readonly object[]): void =>
    cluster.put('', { metadata: { name }, kind: 'APIGroupDiscoveryList', items });
  root('api', [group('', [...always, ...core])]);
  root('apis', apps.length === 0 ? [] : [group('apps', apps)]);
  cluster.respond('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', () => ({ status: { allowed: true } }));
}

/** Fills the cluster before the server starts. */
export function prepareLogs(cluster: MemoryCluster, rights: Rights): void {
  serveResources(cluster);
  for (const name of ['shop', 'bank', 'shut', 'other']) putNamespace(cluster, name);
  for (const namespace of ['shop', 'bank', 'shut']) bind(cluster, namespace, 'bob');
  cluster.respond('/apis/authentication.k8s.io/v1/tokenreviews', ({ spec }) => {
    const username = nameIn((spec as { token: string }).token);
    return { status: { authenticated: true, user: { username, groups: ['people'] } } };
  });
  cluster.respond('/apis/authorization.k8s.io/v1/subjectaccessreviews', ({ spec }) => {
    const { user, resourceAttributes: attributes } = spec as Review;
    const isLog = attributes?.verb === 'get' && attributes.resource === 'pods' && attributes.subresource === 'log';
    const own = attributes?.resource === 'logs' && user !== 'carol';
    return {
      status: {
        allowed: user === 'alice' || own || (isLog && rights.get(user)?.has(attributes.namespace ?? '') === true),
      },
    };
  });
}
