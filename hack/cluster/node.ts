/**
 * Nodes of a mixed fleet, as a kubelet registers them and reports their status. The index determines all properties of
 * a node.
 */
import { createHash } from 'node:crypto';
import type { Block } from './network.ts';

export const nodeName = (index: number): string => `node-${index + 1}`;

const versions = ['v1.36.3', 'v1.35.6', 'v1.36.2', 'v1.34.9'];
const zones = ['a', 'b', 'c'];
const machines = [
  { type: 'standard-8', cpu: 8, gigabytes: 32 },
  { type: 'compute-16', cpu: 16, gigabytes: 32 },
  { type: 'memory-16', cpu: 16, gigabytes: 128 },
];
const systems = [
  { osImage: 'Debian GNU/Linux 13 (trixie)', kernelVersion: '6.12.48+deb13-amd64' },
  { osImage: 'Ubuntu 24.04.3 LTS', kernelVersion: '6.8.0-87-generic' },
];
const images = [
  'registry.k8s.io/kube-proxy:v1.36.3',
  'registry.k8s.io/pause:3.10.1',
  'registry.k8s.io/coredns/coredns:v1.13.1',
  'registry.k8s.io/ingress-nginx/controller:v1.14.0',
  'docker.io/calico/node:v3.31.2',
  'docker.io/calico/cni:v3.31.2',
  'docker.io/library/redis:8.4.0',
  'docker.io/library/postgres:18.1',
  'docker.io/fluent/fluent-bit:4.2.0',
  'quay.io/prometheus/node-exporter:v1.10.2',
  'quay.io/prometheus/prometheus:v3.8.0',
  'quay.io/cilium/cilium:v1.18.4',
  'quay.io/prometheus/alertmanager:v0.29.0',
  'quay.io/jetstack/cert-manager-controller:v1.19.1',
  'registry.k8s.io/metrics-server/metrics-server:v0.8.0',
  'registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.17.0',
  'registry.k8s.io/sig-storage/csi-provisioner:v6.1.0',
  'registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.15.0',
  'docker.io/grafana/grafana:12.3.0',
  'docker.io/library/nginx:1.29.3',
];

const cycle = <T>(values: readonly T[], index: number): T => values[index % values.length] as T;
const hex = (text: string): string => createHash('sha256').update(text).digest('hex');
const uuid = (text: string): string => hex(text).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');

/** Returns the node that a kubelet creates at its start, without measured values. */
export function registration(index: number, block: Pick<Block, 'node'>): object {
  const name = nodeName(index);
  const isControlPlane = index === 0;
  const machine = cycle(machines, index);
  const arch = index % 5 === 4 ? 'arm64' : 'amd64';
  const region = `region-${1 + (Math.floor(index / zones.length) % 2)}`;
  const system = cycle(systems, Math.floor(index / 3));
  const capacity = {
    cpu: String(machine.cpu),
    'ephemeral-storage': '101430960Ki',
    'hugepages-1Gi': '0',
    'hugepages-2Mi': '0',
    memory: `${machine.gigabytes * 2 ** 20 - 165_432}Ki`,
    pods: '110',
  };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      annotations: {
        'csi.volume.kubernetes.io/nodeid': JSON.stringify({ 'disk.csi.example.com': `i-${hex(name).slice(0, 17)}` }),
        'kwok.x-k8s.io/node': 'fake',
        'node.alpha.kubernetes.io/ttl': '0',
        'volumes.kubernetes.io/controller-managed-attach-detach': 'true',
      },
      labels: {
        'beta.kubernetes.io/arch': arch,
        'beta.kubernetes.io/os': 'linux',
        'kubernetes.io/arch': arch,
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        'node.kubernetes.io/instance-type': machine.type,
        [`node-role.kubernetes.io/${isControlPlane ? 'control-plane' : 'worker'}`]: '',
        'topology.kubernetes.io/region': region,
        'topology.kubernetes.io/zone': `${region}${cycle(zones, index)}`,
      },
    },
    spec: {
      providerID: `example://${region}/i-${hex(name).slice(0, 17)}`,
      ...(isControlPlane ? { taints: [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }] } : {}),
      // The third node is cordoned.
      ...(index === 2 ? { unschedulable: true } : {}),
    },
    status: {
      addresses: [
        { type: 'InternalIP', address: block.node(index) },
        { type: 'Hostname', address: name },
      ],
      capacity,
      allocatable: { ...capacity, cpu: `${machine.cpu * 1000 - 100}m`, 'ephemeral-storage': '93478772582' },
      conditions: firstConditions(),
      daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
      nodeInfo: {
        architecture: arch,
        bootID: uuid(`boot ${name}`),
        containerRuntimeVersion: `containerd://2.${index % 2}.5`,
        kubeProxyVersion: '',
        kubeletVersion: cycle(versions, index),
        machineID: hex(`machine ${name}`).slice(0, 32),
        operatingSystem: 'linux',
        systemUUID: uuid(`system ${name}`),
        ...system,
      },
    },
  };
}

/** Returns the patch with which a kubelet reports the status of its registered node. */
export const statusReport = (index: number): object => ({
  status: {
    conditions: conditions.map(([type]) => ({ type, lastHeartbeatTime: seconds(Date.now()) })),
    images: images.map((image, place) => ({
      names: [`${image.slice(0, image.lastIndexOf(':'))}@sha256:${hex(image)}`, image],
      sizeBytes: 600_000_000 - place * 25_000_000 - (index % 7),
    })),
    nodeInfo: { kubeProxyVersion: cycle(versions, index) },
  },
});

/** Formats a time like metav1.Time, in whole seconds. */
const seconds = (time: number): string => new Date(time).toISOString().replace(/\.\d+/, '');

const conditions = [
  ['NetworkUnavailable', 'False', 'CalicoIsUp', 'Calico is running on this node'],
  ['MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'],
  ['DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'],
  ['PIDPressure', 'False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'],
  ['Ready', 'True', 'KubeletReady', 'kubelet is posting ready status'],
] as const;

function firstConditions(): object[] {
  const time = seconds(Date.now() - 1000);
  return conditions.map(([type, status, reason, message]) => ({
    type,
    status,
    reason,
    message,
    lastHeartbeatTime: time,
    lastTransitionTime: time,
  }));
}
