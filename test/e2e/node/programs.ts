import type { Program } from '../../../hack/cluster/programs.ts';

/** Programs that run in the namespaces. They are built outside, because the namespaces have no network. */
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
