import type { KubeObject } from '../../cluster/client/kube-object.ts';
import type { Kind } from '../../cluster/catalogue/resource.ts';

/** Fields of batch/v1 Job that are used here. */
interface Job extends KubeObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

export const jobs: Kind<'running' | 'completed' | 'failed'> = {
  group: 'batch',
  resource: 'jobs',
  fields(object) {
    const conditions = (object as Job).status?.conditions ?? [];
    const has = (type: string): boolean =>
      conditions.some((condition) => condition.type === type && condition.status === 'True');
    return has('Failed') ? 'failed' : has('Complete') ? 'completed' : 'running';
  },
  statuses: ['running', 'completed', 'failed'],
  statusOf: ({ fields }) => fields,
  filters: {},
};
