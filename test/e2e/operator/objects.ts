/** Traefik and Prometheus in the cluster, as docs/guides/operators-day.md requires. */
import { parse } from 'yaml';
import { blocksIn } from '../../labs/integration/documents.ts';
import { names, tag } from '../images/all.ts';
import type { OperatorPrograms } from './programs.ts';

interface Workload {
  readonly name: string;
  readonly namespace: string;
  /** Container without its image. */
  readonly container: { readonly volumeMounts?: readonly object[]; readonly [field: string]: unknown };
  /** Programs by the name with which the container runs them, and their paths on the node. */
  readonly programs: Readonly<Record<string, string>>;
  readonly volumes?: readonly object[];
}

/** Returns a Deployment with its namespace and its ServiceAccount, which has the rights of a ClusterRole. */
function workload({ name, namespace, container, programs, volumes = [] }: Workload, clusterRole: string): object[] {
  const labels = { 'app.kubernetes.io/name': name };
  const metadata = { name, namespace };
  const rbac = 'rbac.authorization.k8s.io';
  // The node's own files save the memory that images of this size would take.
  const own = Object.entries(programs).map(([program, path]) => ({
    volume: { name: program, hostPath: { path, type: 'File' } },
    mount: { name: program, mountPath: `/usr/local/bin/${program}`, readOnly: true },
  }));
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: clusterRole },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        strategy: { type: 'Recreate' },
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: name,
            terminationGracePeriodSeconds: 1,
            containers: [
              {
                ...container,
                name,
                image: `${names.client}:${tag}`,
                volumeMounts: [...own.map(({ mount }) => mount), ...(container.volumeMounts ?? [])],
              },
            ],
            volumes: [...own.map(({ volume }) => volume), ...volumes],
          },
        },
      },
    },
  ];
}

export function traefikObjects({ traefik }: OperatorPrograms): object[] {
  const name = 'traefik';
  return [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name },
      rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list', 'watch'] }],
    },
    ...workload(
      {
        name,
        namespace: name,
        programs: { traefik },
        container: {
          command: [
            'traefik',
            '--entryPoints.websecure.address=:8443',
            '--entryPoints.websecure.http.tls=true',
            '--entryPoints.traefik.address=:8080',
            '--ping=true',
            '--providers.kubernetesCRD=true',
            '--providers.kubernetesIngress=true',
          ],
          ports: [{ containerPort: 8443, hostPort: 443 }],
          readinessProbe: { httpGet: { path: '/ping', port: 8080 }, periodSeconds: 1 },
        },
      },
      name,
    ),
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'IngressClass',
      metadata: { name },
      spec: { controller: 'traefik.io/ingress-controller' },
    },
  ];
}

const serviceAccount = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Returns Prometheus with the documented job for the server. It scrapes and evaluates each second. */
export function prometheusObjects({ prometheus, promtool }: OperatorPrograms): object[] {
  const [name, namespace] = ['prometheus', 'monitoring'];
  const documented =
    blocksIn('guides/monitoring.md', 'text').find((block) => block.startsWith('scrape_configs:')) ?? '';
  const configuration = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: ['/etc/platform-apiserver/rules.yaml'],
    scrape_configs: [
      ...(parse(documented) as { readonly scrape_configs: readonly object[] }).scrape_configs,
      {
        job_name: 'apiserver',
        scheme: 'https',
        authorization: { credentials_file: `${serviceAccount}/token` },
        tls_config: { ca_file: `${serviceAccount}/ca.crt` },
        static_configs: [{ targets: ['kubernetes.default.svc:443'] }],
      },
    ],
  };
  return [
    ...workload(
      {
        name,
        namespace,
        programs: { prometheus, promtool },
        container: {
          command: ['prometheus', '--config.file=/etc/prometheus/prometheus.yml', '--storage.tsdb.path=/tmp/data'],
          readinessProbe: { httpGet: { path: '/-/ready', port: 9090 }, periodSeconds: 1 },
          volumeMounts: [
            { name: 'configuration', mountPath: '/etc/prometheus' },
            { name: 'platform-apiserver', mountPath: '/etc/platform-apiserver' },
          ],
        },
        volumes: [
          { name: 'configuration', configMap: { name } },
          { name: 'platform-apiserver', configMap: { name: 'platform-apiserver', optional: true } },
        ],
      },
      'view',
    ),
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace },
      data: { 'prometheus.yml': JSON.stringify(configuration) },
    },
  ];
}
