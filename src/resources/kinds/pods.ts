import type { KubeObject } from '../../cluster/client/kube-object.ts';
import type { Kind } from '../../cluster/catalogue/resource.ts';
import { selectorOf } from './services.ts';

interface ContainerStatus {
  readonly state?: {
    readonly waiting?: { readonly reason?: string };
    readonly terminated?: { readonly exitCode?: number };
  };
}

/** core/v1 Pod, as far as it is filtered by. */
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

/** What a container waits for when all is well. */
const patient = new Set(['', 'ContainerCreating', 'PodInitializing']);

const isUnwell = ({ state: { waiting, terminated } = {} }: ContainerStatus): boolean =>
  !patient.has(waiting?.reason ?? '') || (terminated?.exitCode ?? 0) !== 0;

function statusOf({ phase, initContainerStatuses = [], containerStatuses = [] }: NonNullable<Pod['status']>) {
  if (phase === 'Succeeded') return 'Completed';
  if (phase === 'Failed' || phase === 'Unknown') return 'Error';
  if ([...initContainerStatuses, ...containerStatuses].some(isUnwell)) return 'Error';
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
      description: 'the node that it is bound to',
      matches: ({ fields: { nodeName } }, text) => nodeName === text,
    },
    pvcName: {
      description: 'a PersistentVolumeClaim that it mounts',
      matches: ({ fields: { claims } }, text) => claims.includes(text),
    },
    phase: { description: 'status.phase', matches: ({ fields: { phase } }, text) => phase === text },
  },
  selectedBy: {
    serviceName: {
      description: 'a Service of its namespace that selects it, which the caller has to be allowed to list',
      resource: 'services',
      labels: selectorOf,
    },
  },
};
