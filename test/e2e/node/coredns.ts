/** DNS in the cluster. */
import type { Block } from '../../../hack/cluster/network.ts';
import { names, tag } from '../images/all.ts';

export const clusterDNS = (block: Block): string => block.firstService.replace(/\.1$/, '.10');

const name = 'coredns';
const namespace = 'kube-system';
const labels = { 'k8s-app': 'kube-dns' };

const corefile = `.:53 {
  errors
  health
  ready
  kubernetes cluster.local in-addr.arpa
  cache 5
}
`;

export function corednsObjects(block: Block): object[] {
  const rbac = 'rbac.authorization.k8s.io';
  const read = ['list', 'watch'];
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRole',
      metadata: { name: `system:${name}` },
      rules: [
        { apiGroups: [''], resources: ['services', 'pods', 'namespaces'], verbs: read },
        { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: read },
      ],
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: `system:${name}` },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: `system:${name}` },
      subjects: [{ kind: 'ServiceAccount', name, namespace }],
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data: { Corefile: corefile } },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'kube-dns', namespace },
      spec: {
        selector: labels,
        clusterIP: clusterDNS(block),
        ports: [
          { name: 'dns', port: 53, protocol: 'UDP' },
          { name: 'dns-tcp', port: 53, protocol: 'TCP' },
        ],
      },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: name,
            dnsPolicy: 'Default',
            containers: [
              {
                name,
                image: `${names.coredns}:${tag}`,
                args: ['-conf', '/etc/coredns/Corefile'],
                readinessProbe: { httpGet: { path: '/ready', port: 8181 }, periodSeconds: 1 },
                volumeMounts: [{ name: 'configuration', mountPath: '/etc/coredns' }],
              },
            ],
            volumes: [{ name: 'configuration', configMap: { name } }],
          },
        },
      },
    },
  ];
}
