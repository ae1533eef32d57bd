import { resourcesGroup, resourcesVersion } from '../../config/names.ts';
import type { KubeObject } from '../../cluster/client/kube-object.ts';
import type { Column, ResourceDefinition } from '../../cluster/catalogue/resource.ts';
import { nodeSchema } from './node-schema.ts';

/** Formats milliseconds like the ages of kubectl (k8s.io/apimachinery pkg/util/duration HumanDuration). */
export function humanDuration(milliseconds: number): string {
  const seconds = Math.trunc(milliseconds / 1000);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return two(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (days < 8) return two(days, 'd', hours % 24, 'h');
  if (days < 365 * 2) return `${days}d`;
  const years = Math.floor(days / 365);
  return days < 365 * 8 ? two(years, 'y', days % 365, 'd') : `${years}y`;
}

const two = (large: number, largeUnit: string, small: number, smallUnit: string): string =>
  `${large}${largeUnit}${small === 0 ? '' : `${small}${smallUnit}`}`;

/** Fields of core/v1 Node that are used here. */
interface Node extends KubeObject {
  readonly spec?: { readonly unschedulable?: boolean };
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly addresses?: readonly { readonly type: string; readonly address: string }[];
    readonly nodeInfo?: {
      readonly kubeletVersion?: string;
      readonly osImage?: string;
      readonly kernelVersion?: string;
      readonly architecture?: string;
      readonly containerRuntimeVersion?: string;
    };
  };
}

export interface NodeFields {
  readonly unschedulable: boolean;
  /** True if a condition of the node is unhealthy. A node can be both unhealthy and unschedulable. */
  readonly isUnhealthy: boolean;
  readonly ready: string;
  readonly roles: string;
  readonly version: string;
  /** Cells of the columns Internal-IP to Container-Runtime. */
  readonly wide: readonly string[];
}

const both = ['warning', 'unschedulable'];

const rolePrefix = 'node-role.kubernetes.io/';

/** Implements findNodeRoles in pkg/printers/internalversion/printers.go. */
function rolesOf(labels: Readonly<Record<string, string>> = {}): string {
  const roles = new Set<string>();
  for (const [key, value] of Object.entries(labels))
    if (key.startsWith(rolePrefix)) roles.add(key.slice(rolePrefix.length));
    else if (key === 'kubernetes.io/role') roles.add(value);
  roles.delete('');
  return [...roles].toSorted((a, b) => (a < b ? -1 : 1)).join(',') || '<none>';
}

/** Types of conditions whose status is False on a healthy node, followed by the types whose status is True. */
const falseIfHealthy = new Set(['MemoryPressure', 'DiskPressure', 'PIDPressure', 'NetworkUnavailable']);
const trueIfHealthy = new Set(['Ready', 'ConfigOK', 'KubeletReady']);

function fields(object: KubeObject): NodeFields {
  const { metadata, spec, status } = object as Node;
  const conditions = status?.conditions ?? [];
  const info = status?.nodeInfo ?? {};
  const unschedulable = spec?.unschedulable === true;
  const isUnhealthy = conditions.some(
    (condition) =>
      (falseIfHealthy.has(condition.type) && condition.status !== 'False') ||
      (trueIfHealthy.has(condition.type) && condition.status !== 'True'),
  );
  const ready = conditions.findLast(({ type }) => type === 'Ready');
  const readiness = ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady';
  const address = (type: string): string =>
    status?.addresses?.find((candidate) => candidate.type === type)?.address ?? '<none>';
  return {
    unschedulable,
    isUnhealthy,
    ready: unschedulable ? `${readiness},SchedulingDisabled` : readiness,
    roles: rolesOf(metadata.labels),
    version: info.kubeletVersion ?? '',
    wide: [
      address('InternalIP'),
      address('ExternalIP'),
      info.osImage || '<unknown>',
      `${info.kernelVersion || '<unknown>'}${info.architecture ? ` (${info.architecture})` : ''}`,
      info.containerRuntimeVersion || '<unknown>',
    ],
  };
}

const column = (name: string, priority: number, description: string, format = ''): Column => ({
  name,
  type: 'string',
  format,
  description,
  priority,
});

/** Descriptions of the fields in core/v1. */
const name =
  'Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names';
const creationTimestamp =
  'CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata';
const addresses =
  "List of addresses reachable to the node. Queried from cloud provider, if available. More info: https://kubernetes.io/docs/reference/node/node-status/#addresses Note: This field is declared as mergeable, but the merge key is not sufficiently unique, which can cause data corruption when it is merged. Callers should instead use a full-replacement patch. See https://pr.k8s.io/79391 for an example. Consumers should assume that addresses can change during the lifetime of a Node. However, there are some exceptions where this may not be possible, such as Pods that inherit a Node's address in its own status or consumers of the downward API (status.hostIP).";

/** Columns of AddHandlers and printNode in pkg/printers/internalversion/printers.go. */
const columns: readonly Column[] = [
  column('Name', 0, name, 'name'),
  column('Status', 0, 'The status of the node'),
  column('Roles', 0, 'The roles of the node'),
  column('Age', 0, creationTimestamp),
  column('Version', 0, 'Kubelet Version reported by the node.'),
  column('Internal-IP', 1, addresses),
  column('External-IP', 1, addresses),
  column('OS-Image', 1, 'OS Image reported by the node from /etc/os-release (e.g. Debian GNU/Linux 7 (wheezy)).'),
  column('Kernel-Version', 1, "Kernel Version reported by the node from 'uname -r' (e.g. 3.16.0-0.bpo.4-amd64)."),
  column(
    'Container-Runtime',
    1,
    'ContainerRuntime Version reported by the node through runtime remote API (e.g. containerd://1.4.2).',
  ),
];

export const nodes: ResourceDefinition<NodeFields> = {
  kind: 'Node',
  singular: 'node',
  // The short name "no" belongs to core nodes.
  shortNames: [],
  categories: ['platform'],
  namespaced: false,
  underlying: { group: '', version: 'v1', resource: 'nodes' },
  served: { group: resourcesGroup, version: resourcesVersion, resource: 'nodes' },
  schema: nodeSchema,
  fields,
  unreadStatus: 'images',
  columns,
  cells: ({ name: nodeName, createdAt, fields: { ready, roles, version, wide } }, now) => [
    nodeName,
    ready,
    roles,
    createdAt === 0 ? '<unknown>' : humanDuration(now - createdAt),
    version,
    ...wide,
  ],
  fieldLabels: ['metadata.name', 'spec.unschedulable'],
  fieldLabel: (node, label) => (label === 'metadata.name' ? node.name : String(node.fields.unschedulable)),
  statuses: ['running', 'warning', 'unschedulable'],
  statusOf: ({ fields: { unschedulable, isUnhealthy } }) =>
    unschedulable ? (isUnhealthy ? both : 'unschedulable') : isUnhealthy ? 'warning' : 'running',
  filters: {},
};
