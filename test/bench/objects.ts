/**
 * Creates the objects of a cluster of any size as kubelets and kube-apiserver write them. The same index always creates
 * the same object.
 */
import { createHash } from 'node:crypto';
import { nodeName, registration, statusReport } from '../../hack/cluster/node.ts';
import { managedFields } from './managed-fields.ts';

/** Number of values of the selector label, evenly distributed over the nodes. */
export const racks = (nodes: number): number => Math.min(100, Math.max(1, Math.floor(nodes / 10)));
export const rackLabel = 'example.com/rack';

/** Number of pods in each namespace. */
export const podsPerNamespace = 1000;
const images = 17;
const first = Date.parse('2026-01-01T00:00:00Z');

// Returns the creation time of an object. The order by creation time differs from the order by name.
export const createdAt = (index: number): number => first + ((index * 7919) % 100_003) * 60_000;

interface Unstored {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels: Record<string, string> };
  readonly status: object;
}

const text = (time: number): string => new Date(time).toISOString().replace(/\.\d+/, '');

function uid(of: string): string {
  const hex = createHash('sha256').update(of).digest('hex');
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-4$3-8$4-$5');
}

/** Returns the stored form. `managers` names the writer of the object and the writer of its status. */
function stored(object: Unstored, index: number, managers: readonly [string, string]): object {
  const { status, ...rest } = object;
  const { name, namespace = '' } = object.metadata;
  const creationTimestamp = text(createdAt(index));
  return {
    ...rest,
    metadata: {
      ...object.metadata,
      uid: uid(`${namespace}/${name}`),
      creationTimestamp,
      managedFields: [
        managedFields(rest, { manager: managers[0], time: creationTimestamp }),
        managedFields({ status }, { manager: managers[1], time: creationTimestamp, subresource: 'status' }),
      ],
    },
    status,
  };
}

export function node(index: number, nodes: number): object {
  const block = { node: (at: number) => `10.${64 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}` };
  const { metadata, status, ...rest } = registration(index, block) as Unstored;
  const reported = (statusReport(index) as { status: { images: unknown[]; nodeInfo: object } }).status;
  const { nodeInfo } = status as { nodeInfo: object };
  return stored(
    {
      ...rest,
      metadata: { ...metadata, labels: { ...metadata.labels, [rackLabel]: `rack-${index % racks(nodes)}` } },
      status: {
        ...status,
        nodeInfo: { ...nodeInfo, ...reported.nodeInfo },
        images: reported.images.slice(0, images),
      },
    },
    index,
    ['kubelet', 'kubelet'],
  );
}

export const podNamespace = (index: number): string => `team-${1 + Math.floor(index / podsPerNamespace)}`;

/** Key in etcd and object. */
export type StoredAt = readonly [key: string, object: object];

/** ServiceAccount that RoleBindings name in every fourth namespace. */
export const member = { kind: 'ServiceAccount', namespace: 'default', name: 'member' };
const teams = 20_000;
export const memberNamespaces = teams / 4;

/** Returns namespaces, and the RoleBindings of their members. */
export function* teamNamespaces(): Generator<StoredAt> {
  const apiGroup = 'rbac.authorization.k8s.io';
  for (let index = 0; index < teams; index++) {
    const name = `team-${index}`;
    const created = { uid: uid(name), creationTimestamp: text(createdAt(index)) };
    yield [
      `/registry/namespaces/${name}`,
      {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name, ...created, labels: { 'kubernetes.io/metadata.name': name } },
        spec: { finalizers: ['kubernetes'] },
        status: { phase: 'Active' },
      },
    ];
    const owner = { kind: 'User', apiGroup, name: `owner-${index % 500}` };
    yield [
      `/registry/rolebindings/${name}/members`,
      {
        apiVersion: `${apiGroup}/v1`,
        kind: 'RoleBinding',
        metadata: { name: 'members', namespace: name, ...created },
        roleRef: { apiGroup, kind: 'ClusterRole', name: 'view' },
        subjects: index % 4 === 0 ? [owner, member] : [owner],
      },
    ];
  }
}

const toleration = (key: string): object => ({
  key: `node.kubernetes.io/${key}`,
  effect: 'NoExecute',
  operator: 'Exists',
  tolerationSeconds: 300,
});

/** Returns a running pod of a Deployment. */
export function pod(index: number, nodes: number): object {
  const app = `app-${index % 50}`;
  const time = text(createdAt(index));
  const podIP = `10.${128 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
  const image = `registry.example.com/team/${app}:v1.${index % 9}.0`;
  const token = 'kube-api-access-gr4sv';
  const condition = (type: string): object => ({ type, status: 'True', lastProbeTime: null, lastTransitionTime: time });
  return stored(
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: `${app}-6d4b75cb6d-${index}`,
        namespace: podNamespace(index),
        generateName: `${app}-6d4b75cb6d-`,
        labels: { app, 'pod-template-hash': '6d4b75cb6d', tier: index % 3 === 0 ? 'frontend' : 'backend' },
        annotations: { 'prometheus.io/port': '9090', 'prometheus.io/scrape': 'true' },
      },
      spec: {
        nodeName: nodeName(index % nodes),
        containers: [
          {
            name: 'app',
            image,
            imagePullPolicy: 'IfNotPresent',
            ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
            env: [
              { name: 'POD_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } },
              { name: 'LOG_LEVEL', value: 'info' },
            ],
            resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '256Mi' } },
            readinessProbe: {
              httpGet: { path: '/readyz', port: 'http', scheme: 'HTTP' },
              failureThreshold: 3,
              periodSeconds: 10,
              successThreshold: 1,
              timeoutSeconds: 1,
            },
            terminationMessagePath: '/dev/termination-log',
            terminationMessagePolicy: 'File',
            volumeMounts: [{ name: token, readOnly: true, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' }],
          },
        ],
        dnsPolicy: 'ClusterFirst',
        enableServiceLinks: true,
        preemptionPolicy: 'PreemptLowerPriority',
        priority: 0,
        restartPolicy: 'Always',
        schedulerName: 'default-scheduler',
        securityContext: {},
        serviceAccount: 'default',
        serviceAccountName: 'default',
        terminationGracePeriodSeconds: 30,
        tolerations: ['not-ready', 'unreachable'].map((key) => toleration(key)),
        volumes: [
          {
            name: token,
            projected: {
              defaultMode: 420,
              sources: [
                { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
                { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
              ],
            },
          },
        ],
      },
      status: {
        phase: 'Running',
        conditions: ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map((type) => condition(type)),
        hostIP: '10.64.0.1',
        hostIPs: [{ ip: '10.64.0.1' }],
        podIP,
        podIPs: [{ ip: podIP }],
        startTime: time,
        containerStatuses: [
          {
            name: 'app',
            image,
            imageID: `registry.example.com/team/${app}@sha256:${createHash('sha256').update(image).digest('hex')}`,
            containerID: `containerd://${createHash('sha256').update(podIP).digest('hex')}`,
            ready: true,
            started: true,
            restartCount: 0,
            state: { running: { startedAt: time } },
            lastState: {},
          },
        ],
        qosClass: 'Burstable',
      },
    } as Unstored,
    index,
    ['kube-controller-manager', 'kubelet'],
  );
}
