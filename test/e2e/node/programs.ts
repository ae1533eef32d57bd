import type { Program } from '../../../hack/cluster/programs.ts';

/** All that runs in the namespaces; none of it is built in there, where no network is. */
export const needed = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kwok',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'coredns',
  'kubectl',
  'helm',
] as const satisfies readonly Program[];
