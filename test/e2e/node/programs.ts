import type { Program } from '../../../hack/cluster/programs.ts';

/** Programs that run in the namespaces, built outside, since there is no network inside. */
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
