/**
 * Creates the objects that the property test of authorization reads. Each object has a marker that reveals it in any
 * text.
 */
import { randomBytes } from 'node:crypto';
import { release } from '../../../../hack/run/chart.ts';
import { create, createNode, nodePath, patch, remove } from '../kube.ts';
import type { LogNode } from '../log-node.ts';

export interface Type {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly namespaced: boolean;
  /** Other names of the resource at /kapis. */
  readonly aliases: readonly string[];
  /** True for a resource that /kapis reads as the caller, without a cache. */
  readonly isUncached?: boolean;
}

const type = (group: string, resource: string, namespaced: boolean, ...aliases: string[]): Type => ({
  group,
  version: 'v1',
  resource,
  namespaced,
  aliases,
});

const rbacGroup = 'rbac.authorization.k8s.io';
export const types = {
  configmaps: type('', 'configmaps', true),
  secrets: { ...type('', 'secrets', true), isUncached: true },
  services: type('', 'services', true),
  pods: type('', 'pods', true),
  deployments: type('apps', 'deployments', true, 'deployments.apps', 'deployments.v1.apps'),
  namespaces: type('', 'namespaces', false),
  nodes: type('', 'nodes', false),
  clusterroles: type(rbacGroup, 'clusterroles', false, `clusterroles.${rbacGroup}`),
} satisfies Record<string, Type>;

export interface TestObject {
  readonly type: Type;
  /** Namespace; '' at cluster scope. */
  readonly namespace: string;
  readonly name: string;
  readonly marker: string;
}

const suffix = randomBytes(4).toString('hex');
/** The two namespaces that the requests name. */
export const namespaces = [`rights-a-${suffix}`, `rights-b-${suffix}`] as const;
/** Namespaces of components: the namespace of the release, and kube-system. */
export const componentNamespaces = [release.namespace, 'kube-system'] as const;
export const testLabel = 'rights-test';

// Name of the only container of each pod. The kubelet of the tests supports one container per pod.
export const container = 'main';

/** Returns the path of a collection. */
export const collectionPath = ({ group, version, resource }: Type, namespace: string): string =>
  [
    group === '' ? '/api' : `/apis/${group}`,
    version,
    ...(namespace === '' ? [] : ['namespaces', namespace]),
    resource,
  ].join('/');

const marked = (of: Type, namespace: string, name: string): TestObject => ({
  type: of,
  namespace,
  name,
  marker: `mk${randomBytes(8).toString('hex')}`,
});

const metadata = ({ name, marker }: TestObject, labels: object = {}): object => ({
  name,
  labels: { [testLabel]: suffix, 'rights-marker': marker, ...labels },
  annotations: { 'platform.io/alias-name': `alias ${marker}` },
});

const podSpec = (nodeName?: string): object => ({
  ...(nodeName === undefined ? {} : { nodeName }),
  containers: [{ name: container, image: 'none' }],
});

const deployment = (replicas: number, app: string): object => ({
  spec: {
    replicas,
    selector: { matchLabels: { app } },
    template: { metadata: { labels: { app } }, spec: podSpec() },
  },
});

/** For each resource, returns the fields of an object other than its metadata. */
const bodies: Readonly<Record<string, (object: TestObject, node: string) => object>> = {
  configmaps: ({ marker }) => ({ data: { of: marker } }),
  secrets: ({ marker }) => ({ stringData: { of: marker } }),
  services: () => ({ spec: { selector: { [testLabel]: suffix }, ports: [{ port: 80 }] } }),
  pods: (_, node) => ({ spec: podSpec(node) }),
  deployments: ({ name }) => deployment(0, name),
  clusterroles: () => ({ rules: [] }),
};

/** Creates the objects. The namespaces must exist. */
export async function createObjects(node: LogNode): Promise<readonly TestObject[]> {
  const { configmaps, secrets, services, pods, deployments, clusterroles, nodes } = types;
  const names = (prefix: string): string[] => ['one', 'two'].map((one) => `${prefix}-${one}-${suffix}`);
  const objects = [
    ...namespaces.flatMap((namespace) => [
      ...names('settings').map((name) => marked(configmaps, namespace, name)),
      ...names('hidden').map((name) => marked(secrets, namespace, name)),
      marked(services, namespace, `selecting-${suffix}`),
      ...names('web').map((name) => marked(pods, namespace, name)),
      marked(deployments, namespace, `web-${suffix}`),
    ]),
    ...names('role').map((name) => marked(clusterroles, '', name)),
  ];
  for (const object of objects)
    await create(collectionPath(object.type, object.namespace), {
      metadata: metadata(object),
      ...bodies[object.type.resource]?.(object, node.name),
    });
  const ofNodes = names('node').map((name) => marked(nodes, '', name));
  for (const object of ofNodes) await createNode(object.name, { metadata: metadata(object) });
  const component = marked(deployments, 'kube-system', `component-${suffix}`);
  await create(collectionPath(deployments, 'kube-system'), {
    metadata: metadata(component, { 'app.kubernetes.io/part-of': 'platform' }),
    ...deployment(1, component.name),
  });
  const ofNamespaces = namespaces.map((name) => marked(types.namespaces, '', name));
  for (const object of ofNamespaces)
    await patch(`${collectionPath(object.type, '')}/${object.name}`, { metadata: metadata(object) });
  return [...objects, ...ofNodes, ...ofNamespaces, component];
}

/** Deletes the objects; the namespaces are deleted with the log node. */
export async function removeObjects(objects: readonly TestObject[]): Promise<void> {
  for (const { type: of, namespace, name } of objects)
    if (of !== types.namespaces && (namespace === '' || namespace === 'kube-system'))
      await remove(of === types.nodes ? nodePath(name) : `${collectionPath(of, namespace)}/${name}`);
}

export const testSelector = `${testLabel}=${suffix}`;
