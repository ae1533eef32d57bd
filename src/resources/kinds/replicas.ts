import type { KubeObject } from '../../cluster/client/kube-object.ts';
import type { Kind } from '../../cluster/catalogue/resource.ts';

type Replicas = 'stopped' | 'running' | 'updating';

/** Of pods. */
export interface Count {
  readonly wanted: number;
  readonly ready: number;
}

/** The status of a kind that runs pods: of the number that there are, and are to be, so many are ready. */
export const replicasKind = (resource: string, count: (object: KubeObject) => Count): Kind<Replicas> => ({
  group: 'apps',
  resource,
  fields(object) {
    const { wanted, ready } = count(object);
    if (wanted === 0 && ready === 0) return 'stopped';
    return ready === wanted ? 'running' : 'updating';
  },
  statuses: ['stopped', 'running', 'updating'],
  statusOf: ({ fields }) => fields,
  filters: {},
});

/** apps/v1 Deployment and StatefulSet, as far as they are filtered by. */
interface Scaled extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly replicas?: number; readonly readyReplicas?: number };
}

/** What is scaled down still runs until its last pod is gone. */
export function scaled(object: KubeObject): Count {
  const { spec = {}, status = {} } = object as Scaled;
  const { replicas: present = 0, readyReplicas: ready = 0 } = status;
  return { wanted: Math.max(spec.replicas ?? 1, present), ready };
}
