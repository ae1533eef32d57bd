import type { KubeObject } from '../../cluster/client/kube-object.ts';
import type { Kind } from '../../cluster/catalogue/resource.ts';
import { selectorOf } from './services.ts';

interface ContainerStatus {
  readonly state?: {
    readonly waiting?: { readonly reason?: string };
    readonly terminated?: { readonly exitCode?: number };
  };
}

/** Fields of core/v1 Pod that are used here. */
interface Pod extends KubeObject {
  readonly spec?: {
    readonly nodeName?: string;
    readonly volumes?: readonly { readonly persistentVolumeClaim?: { readonly claimName?: string } }[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

interface PodFields {
  readonly status: 'Waiting' | 'Running' | 'Error' | 'Completed';
  readonly phase: string;
  readonly nodeName: string;
  readonly claims: readonly string[];
}

/** Waiting reasons of the containers of a healthy pod. */
const normalReasons = new Set(['', 'ContainerCreating', 'PodInitializing']);

const isUnhealthy = ({ state: { waiting, terminated } = {} }: ContainerStatus): boolean =>
  !normalReasons.has(waiting?.reason ?? '') || (terminated?.exitCode ?? 0) !== 0;

function statusOf({ phase, initContainerStatuses = [], containerStatuses = [] }: NonNullable<Pod['status']>) {
  if (phase === 'Succeeded') return 'Completed';
  if (phase === 'Failed' || phase === 'Unknown') return 'Error';
  if ([...initContainerStatuses, ...containerStatuses].some(isUnhealthy)) return 'Error';
  return phase === 'Running' ? 'Running' : 'Waiting';
}

export const pods: Kind<PodFields> = {
  group: '',
  resource: 'pods',
  fields(object) {
    const { spec = {}, status = {} } = object as Pod;
    return {
      status: statusOf(status),
      phase: status.phase ?? '',
      nodeName: spec.nodeName ?? '',
      claims: (spec.volumes ?? []).flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []),
    };
  },
  statuses: ['Waiting', 'Running', 'Error', 'Completed'],
  statusOf: ({ fields: { status } }) => status,
  filters: {
    nodeName: {
      description: 'node to which the pod is bound',
      matches: ({ fields: { nodeName } }, text) => nodeName === text,
    },
    pvcName: {
      description: 'PersistentVolumeClaim that the pod mounts',
      matches: ({ fields: { claims } }, text) => claims.includes(text),
    },
    phase: { description: 'status.phase', matches: ({ fields: { phase } }, text) => phase === text },
  },
  selectedBy: {
    serviceName: {
      description: 'Service of its namespace that selects the pod; requires the right to list it',
      resource: 'services',
      labels: selectorOf,
    },
  },
};
