import type { KubeObject } from '../../cluster/client/kube-object.ts';
import { replicasKind, type Count } from './replicas.ts';

/** apps/v1 DaemonSet, as far as it is filtered by. */
interface DaemonSet extends KubeObject {
  readonly status?: { readonly desiredNumberScheduled?: number; readonly numberReady?: number };
}

export function daemonCount(object: KubeObject): Count {
  const { desiredNumberScheduled: wanted = 0, numberReady: ready = 0 } = (object as DaemonSet).status ?? {};
  return { wanted, ready };
}

export const daemonsets = replicasKind('daemonsets', daemonCount);
