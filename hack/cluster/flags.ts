/** Flags of each program of a control plane, except for flags whose values only control-plane.ts knows. */
import { join } from 'node:path';
import type { Block } from './network.ts';

export const etcdFlags = (dir: string, port: number, peerPort: number): string[] => [
  '--name=platform',
  `--data-dir=${join(dir, 'etcd')}`,
  `--listen-client-urls=http://127.0.0.1:${port}`,
  `--advertise-client-urls=http://127.0.0.1:${port}`,
  `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
  `--initial-advertise-peer-urls=http://127.0.0.1:${peerPort}`,
  `--initial-cluster=platform=http://127.0.0.1:${peerPort}`,
  '--unsafe-no-fsync', // The data need not survive a crash of the machine.
  `--quota-backend-bytes=${8 * 2 ** 30}`,
  '--log-level=warn',
];

/** `minor` is the minor version of Kubernetes, such as 36. */
export const apiserverFlags = (pki: string, block: Block, minor: number): string[] => [
  '--bind-address=127.0.0.1',
  `--tls-cert-file=${pki}/apiserver.crt`,
  `--tls-private-key-file=${pki}/apiserver.key`,
  `--client-ca-file=${pki}/ca.crt`,
  '--authorization-mode=Node,RBAC',
  '--enable-admission-plugins=NodeRestriction',
  // The plugin taints every new node as not ready, and kube-controller-manager needs a third write per node to remove
  // the taint.
  '--disable-admission-plugins=TaintNodesByCondition',
  '--allow-privileged',
  '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
  `--service-account-key-file=${pki}/service-account.pub`,
  `--service-account-signing-key-file=${pki}/service-account.key`,
  `--service-cluster-ip-range=${block.services}`,
  `--requestheader-client-ca-file=${pki}/front-proxy-ca.crt`,
  '--requestheader-allowed-names=front-proxy-client',
  '--requestheader-username-headers=X-Remote-User',
  ...(minor >= 32 ? ['--requestheader-uid-headers=X-Remote-Uid'] : []),
  '--requestheader-group-headers=X-Remote-Group',
  '--requestheader-extra-headers-prefix=X-Remote-Extra-',
  `--proxy-client-cert-file=${pki}/front-proxy-client.crt`,
  `--proxy-client-key-file=${pki}/front-proxy-client.key`,
  '--enable-aggregator-routing', // Sends requests to the endpoints, because ClusterIPs are not routed on this machine.
];

export const controllerManagerFlags = (pki: string, kubeconfig: string): string[] => [
  `--kubeconfig=${kubeconfig}`,
  `--authentication-kubeconfig=${kubeconfig}`,
  `--authorization-kubeconfig=${kubeconfig}`,
  '--bind-address=127.0.0.1',
  '--leader-elect=false',
  '--use-service-account-credentials',
  `--service-account-private-key-file=${pki}/service-account.key`,
  `--root-ca-file=${pki}/ca.crt`,
  `--client-ca-file=${pki}/ca.crt`,
  `--requestheader-client-ca-file=${pki}/front-proxy-ca.crt`,
  `--cluster-signing-cert-file=${pki}/ca.crt`,
  `--cluster-signing-key-file=${pki}/ca.key`,
  // ttl-controller rewrites every node when the cluster outgrows a size. The nodes of this cluster have the
  // controller's annotation from the start.
  '--controllers=*,-ttl-controller',
  // No kubelet renews leases here, so a missing heartbeat does not mean a dead node.
  '--node-monitor-grace-period=8760h',
  '--node-startup-grace-period=8760h',
  '--kube-api-qps=1000',
  '--kube-api-burst=2000',
];

export const kwokFlags = (stages: string, block: Block): string[] => [
  `--config=${stages}`,
  '--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake',
  // Without leases, a restarted kwok manages the nodes at once. With leases, kwok would wait until the previous leases
  // expire.
  '--node-lease-duration-seconds=0',
  `--cidr=${block.pods}`,
  `--node-ip=${block.address}`,
  '--v=WARN',
];
