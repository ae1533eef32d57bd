/** Programs that make this machine a node of the cluster: kube-scheduler, kubelet and kube-proxy. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Block } from '../../../hack/cluster/network.ts';
import { start, type Running } from '../../../hack/cluster/processes.ts';
import { programs } from '../../../hack/cluster/programs.ts';
import { inMemory } from '../machine/mounts.ts';
import { nodeAddress } from '../machine/network.ts';
import { socket } from './containerd.ts';
import { clusterDNS } from './coredns.ts';
import { kubeletFiles, nodeName, writeKubeconfigs } from './identities.ts';

export interface NodeOptions {
  readonly folder: string;
  readonly server: string;
  readonly block: Block;
  readonly controlGroup: string;
}

export async function startNode({ folder, server, block, controlGroup }: NodeOptions): Promise<Running[]> {
  const paths = await programs(['kube-scheduler', 'kubelet', 'kube-proxy']);
  const kubeconfigs = await writeKubeconfigs(folder, server);
  const write = (name: string, content: object | string): string => {
    const file = join(folder, name);
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
    return file;
  };
  const scheduler = await start(folder, 'kube-scheduler', [
    paths['kube-scheduler'],
    `--kubeconfig=${kubeconfigs.scheduler}`,
    `--authentication-kubeconfig=${kubeconfigs.scheduler}`,
    `--authorization-kubeconfig=${kubeconfigs.scheduler}`,
    '--bind-address=127.0.0.1',
    '--leader-elect=false',
  ]);
  const kubelet = await start(folder, 'kubelet', [
    paths.kubelet,
    `--config=${write('kubelet.json', {
      ...kubeletConfiguration(folder, block, controlGroup),
      resolvConf: write('resolv.conf', ''),
    })}`,
    `--kubeconfig=${kubeconfigs.kubelet}`,
    `--root-dir=${inMemory(folder, 'kubelet')}`,
    `--hostname-override=${nodeName}`,
    `--node-ip=${nodeAddress(block)}`,
  ]);
  const proxy = await start(folder, 'kube-proxy', [
    paths['kube-proxy'],
    `--config=${write('kube-proxy.json', proxyConfiguration(block, kubeconfigs.proxy))}`,
    `--hostname-override=${nodeName}`,
  ]);
  return [scheduler, kubelet, proxy];
}

function kubeletConfiguration(folder: string, block: Block, controlGroup: string): object {
  const { authority, certificate, key } = kubeletFiles(folder);
  const never = Object.fromEntries(
    ['memory', 'nodefs', 'imagefs', 'pid'].map((resource) => [`${resource}.available`, '0%']),
  );
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: nodeAddress(block),
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: authority } },
    authorization: { mode: 'Webhook' },
    tlsCertFile: certificate,
    tlsPrivateKeyFile: key,
    containerRuntimeEndpoint: `unix://${socket}`,
    clusterDNS: [clusterDNS(block)],
    clusterDomain: 'cluster.local',
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${controlGroup}`,
    enforceNodeAllocatable: [],
    failCgroupV1: false,
    failSwapOn: false,
    // Do not evict pods to save the machine's memory and disk.
    evictionHard: { ...never, 'nodefs.inodesFree': '0%', 'imagefs.inodesFree': '0%' },
    imageGCHighThresholdPercent: 100,
    volumePluginDir: inMemory(folder, 'volume-plugins'),
  };
}

const proxyConfiguration = (block: Block, kubeconfig: string): object => ({
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  mode: 'iptables',
  clusterCIDR: block.pods,
  clientConnection: { kubeconfig },
  bindAddress: nodeAddress(block),
  // Keeps the machine's settings of connection tracking, which all namespaces share.
  conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
});
