import type { KubeObject } from '../../cluster/client/kube-object.ts';
import type { Kind } from '../../cluster/catalogue/resource.ts';

type Replicas = 'stopped' | 'running' | 'updating';

/** Number of pods. */
export interface PodCount {
  readonly desired: number;
  readonly ready: number;
}

/** Creates a kind whose status depends on its desired and ready pods. */
export const replicasKind = (resource: string, count: (object: KubeObject) => PodCount): Kind<Replicas> => ({
  group: 'apps',
  resource,
  fields(object) {
    const { desired, ready } = count(object);
    if (desired === 0 && ready === 0) return 'stopped';
    return ready === desired ? 'running' : 'updating';
  },
  statuses: ['stopped', 'running', 'updating'],
  statusOf: ({ fields }) => fields,
  filters: {},
});

/** Fields of apps/v1 Deployment and StatefulSet that are used here. */
interface Scaled extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly replicas?: number; readonly readyReplicas?: number };
}

/**
 * Counts the pods of a workload. Pods that have yet to be deleted count as desired, so a workload is stopped only after
 * its last pod is deleted.
 */
export function scaled(object: KubeObject): PodCount {
  const { spec = {}, status = {} } = object as Scaled;
  const { replicas: present = 0, readyReplicas: ready = 0 } = status;
  return { desired: Math.max(spec.replicas ?? 1, present), ready };
}
