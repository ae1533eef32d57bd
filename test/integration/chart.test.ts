/** Objects and notes of the chart with values that depend on each other. */
import { expect, test } from '@jest/globals';
import { newAuthority } from '../../src/tls/issuing.ts';
import { chartNotes, chartObjects } from '../labs/integration/chart.ts';
import type { KubeObject } from '../labs/integration/kube.ts';
import { kubectl, strictApply } from '../labs/integration/kubectl.ts';

interface Container {
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
}

interface Source {
  readonly secret?: { readonly name: string; readonly items: readonly { readonly path: string }[] };
  readonly configMap?: { readonly name: string };
}

interface Deployment extends KubeObject {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly Container[];
        readonly volumes?: readonly { readonly name: string; readonly projected?: { readonly sources: Source[] } }[];
      };
    };
  };
}

/** Returns the only object of a kind with this name. */
function find(objects: readonly KubeObject[], kind: string, name: string): KubeObject {
  const found = objects.filter((one) => one.kind === kind && one.metadata.name === name);
  expect(found).toHaveLength(1);
  return found[0] as KubeObject;
}

test('the chart mounts tls.caBundle beside the certificate, where the server finds the CA that it publishes', async () => {
  const { cert: caBundle } = await newAuthority(Date.now());
  const objects = await chartObjects(
    JSON.stringify({
      tls: { mode: 'secret', secretName: 'platform-tls', caBundle },
      serviceMonitor: { enabled: true },
    }),
  );
  const { containers, volumes = [] } = (find(objects, 'Deployment', 'platform-apiserver') as Deployment).spec.template
    .spec;
  const mount = containers[0]?.volumeMounts?.find(({ mountPath }) => mountPath === '/etc/platform-apiserver/tls');
  const sources = volumes.find(({ name }) => name === mount?.name)?.projected?.sources ?? [];
  expect(sources[0]?.secret?.name).toBe('platform-tls');
  expect(sources[0]?.secret?.items.map(({ path }) => path)).toEqual(['tls.crt', 'tls.key']);
  const bundle = find(objects, 'ConfigMap', sources[1]?.configMap?.name ?? '');
  expect(bundle).toMatchObject({ data: { 'ca.crt': `${caBundle.trim()}\n` } });
});

test.each([
  ['Recreate', '{ strategy: { type: Recreate } }'],
  ['RollingUpdate', '{}'],
])('kube-apiserver accepts the Deployment of the chart with the strategy %s', async (type, values) => {
  const deployment = find(await chartObjects(values), 'Deployment', 'platform-apiserver');
  expect(deployment).toMatchObject({ spec: { strategy: { type } } });
  // Another name, because the release has a Deployment with a rolling update, which the dry run would be merged with.
  const other = { ...deployment, metadata: { ...deployment.metadata, name: 'other' } };
  expect(await kubectl(...strictApply(JSON.stringify(other), '--dry-run=server'))).toMatchObject({
    code: 0,
    stderr: '',
  });
});

test('the labels of an object replace common labels with the same key', async () => {
  const objects = await chartObjects(`
    commonLabels: { release: common, team: platform }
    serviceMonitor: { enabled: true, labels: { release: prometheus } }
    prometheusRule: { enabled: true, labels: { release: prometheus } }
    dashboards: { enabled: true, labels: { release: grafana } }
  `);
  const labelled = (kind: string, name: string): unknown => find(objects, kind, name).metadata.labels;
  const prometheus = { release: 'prometheus', team: 'platform' };
  expect(labelled('ServiceMonitor', 'platform-apiserver')).toMatchObject(prometheus);
  expect(labelled('PrometheusRule', 'platform-apiserver')).toMatchObject(prometheus);
  expect(labelled('ConfigMap', 'platform-apiserver-dashboard-overview')).toMatchObject({ release: 'grafana' });
  expect(labelled('Service', 'platform-apiserver')).toMatchObject({ release: 'common', team: 'platform' });
});

const url = 'https://platform.example.com';
const reached = `gateway: { externalURL: "${url}" }, authentication: { issuer: "${url}" }`;
const warnings = {
  url: 'WARNING: config.gateway.externalURL or config.authentication.issuer is empty',
  proxies: 'WARNING: config.requests.trustedProxies is empty',
  readers: 'WARNING: metrics.readers is empty',
};

test.each<[name: string, values: string, expected: readonly string[]]>([
  ['the defaults', '{}', []],
  ['an Ingress without a URL', '{ ingress: { enabled: true, host: platform.example.com } }', ['url', 'proxies']],
  ['an Ingress without trusted proxies', `{ ingress: { enabled: true }, config: { ${reached} } }`, ['proxies']],
  [
    'a complete HTTPRoute',
    `{ httpRoute: { enabled: true, parentRefs: [{ name: a }] }, config: { ${reached}, requests: { trustedProxies: [192.0.2.1/32] } } }`,
    [],
  ],
  ['a load balancer without a URL', '{ service: { type: LoadBalancer } }', ['url']],
  ['an Ingress and an own ConfigMap', '{ existingConfigMap: a, ingress: { enabled: true, host: a.example } }', []],
  ['a ServiceMonitor without readers', '{ serviceMonitor: { enabled: true } }', ['readers']],
])('the notes of the chart with %s contain exactly the warnings that apply', async (_, values, expected) => {
  const notes = await chartNotes(values);
  const found = Object.entries(warnings).flatMap(([name, text]) => (notes.includes(text) ? [name] : []));
  expect(found).toEqual(expected);
});

test.each([
  ['an Ingress', `{ ingress: { enabled: true }, config: { ${reached} } }`],
  ['an Ingress with a host', '{ ingress: { enabled: true, host: platform.example.com } }'],
  [
    'an HTTPRoute with a host',
    '{ existingConfigMap: a, httpRoute: { enabled: true, parentRefs: [{ name: a }], hostnames: [platform.example.com] } }',
  ],
])('the notes of the chart with %s contain its URL instead of a port-forward', async (_, values) => {
  const notes = await chartNotes(values);
  expect(notes).toContain(`open ${url}\n`);
  expect(notes).not.toContain('port-forward');
});
