import type { KubeObject } from '../../cluster/client/kube-object.ts';
import { replicasKind, type PodCount } from './replicas.ts';

/** Fields of apps/v1 DaemonSet that are used here. */
interface DaemonSet extends KubeObject {
  readonly status?: { readonly desiredNumberScheduled?: number; readonly numberReady?: number };
}

export function daemonCount(object: KubeObject): PodCount {
  const { desiredNumberScheduled: desired = 0, numberReady: ready = 0 } = (object as DaemonSet).status ?? {};
  return { desired, ready };
}

export const daemonsets = replicasKind('daemonsets', daemonCount);
