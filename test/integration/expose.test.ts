/** Documented manifests and chart values, validated by kube-apiserver with schemas and without unknown fields. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import type { Executed } from '../../hack/cluster/exec.ts';
import { moduleFolder } from '../../hack/cluster/go-modules.ts';
import { traefikModules } from '../../hack/ingress/traefik.ts';
import { release } from '../../hack/run/chart.ts';
import { chartObjects } from '../labs/integration/chart.ts';
import { platformApiserver } from '../labs/integration/cli.ts';
import { blocksIn } from '../labs/integration/documents.ts';
import type { KubeObject } from '../labs/integration/kube.ts';
import { kubectl, strictApply, succeed } from '../labs/integration/kubectl.ts';
import { lab } from '../labs/integration/lab.ts';

/** The first Gateway API version with TLSRoute v1 in its standard channel, as documented. */
const gatewayAPI = 'sigs.k8s.io/gateway-api@v1.5.1';
/** Definitions of the kinds of other projects in the documents. traefikModules pins the version of Traefik. */
const foreign: readonly (readonly [module: string, folder: string, files: readonly string[]])[] = [
  [
    gatewayAPI,
    'config/crd/standard',
    ['tlsroutes', 'httproutes', 'backendtlspolicies'].map((kinds) => `gateway.networking.k8s.io_${kinds}.yaml`),
  ],
  [
    'github.com/envoyproxy/gateway@v1.9.1',
    'charts/gateway-helm/charts/crds/crds/generated',
    ['gateway.envoyproxy.io_backendtrafficpolicies.yaml'],
  ],
  [
    'github.com/traefik/traefik/v3',
    'docs/content/reference/dynamic-configuration',
    ['traefik.io_serverstransports.yaml'],
  ],
];

const isManifest = (block: string): boolean => block.startsWith('apiVersion:');
const blocks = ['guides/expose.md', 'guides/install.md'].flatMap((page) =>
  blocksIn(page, 'text')
    .filter((block) => /^\w+:/.test(block))
    .map((block, index): [string, string] => [`${page} ${index + 1}`, block]),
);
const manifests = blocks.filter(([, block]) => isManifest(block));
const values = blocks.filter(([, block]) => !isManifest(block));

/** Maximum duration of the download of all modules on a slow network, in milliseconds. */
const downloadTimeout = 600_000;

let definitions: readonly string[] = [];
beforeAll(async () => {
  for (const [module, folder, files] of foreign) {
    const path = join(await moduleFolder(module, traefikModules), folder);
    definitions = [...definitions, ...files.flatMap((name) => ['-f', join(path, name)])];
  }
  await succeed(kubectl, 'apply', '--server-side', ...definitions);
  await succeed(kubectl, 'wait', '--for=condition=established', '--timeout=30s', ...definitions);
}, downloadTimeout);
afterAll(() => succeed(kubectl, 'delete', ...definitions));

/** Sends objects to kube-apiserver as a dry run. */
const send = (objects: string, ...where: readonly string[]): Promise<Executed> =>
  kubectl(...strictApply(objects, '--dry-run=server', ...where));

interface Service extends KubeObject {
  readonly spec: { readonly ports: readonly { readonly name: string; readonly port: number }[] };
}

interface ConfigMap extends KubeObject {
  readonly data: Readonly<Record<string, string>>;
}

describe('the documented manifests', () => {
  test('the documented manifests include the manifests of docs/guides/expose.md', () => {
    expect(manifests.map(([, block]) => (parse(block) as KubeObject).kind)).toEqual([
      'TLSRoute',
      'ServersTransport',
      'BackendTrafficPolicy',
    ]);
  });

  test.each(manifests)('kube-apiserver accepts the documented manifest %s', async (_, block) => {
    expect(await send(block)).toMatchObject({ code: 0, stderr: '' });
  });

  test.each(manifests)(
    'kube-apiserver rejects the documented manifest %s if an unknown field is added',
    async (_, block) => {
      const { spec, ...object } = parse(block) as KubeObject;
      const unknown = stringify({ ...object, spec: { ...spec, unknown: true } });
      expect(await send(unknown)).toMatchObject({ code: 1, stderr: expect.stringContaining('spec.unknown') });
    },
  );

  test('the documented manifests refer to the Service of the chart and to one of its ports', async () => {
    const service = (await chartObjects('{}')).find(({ kind }) => kind === 'Service') as Service;
    const https = service.spec.ports.find(({ name }) => name === 'https');
    const route = manifests.map(([, block]) => parse(block) as KubeObject).find(({ kind }) => kind === 'TLSRoute');
    expect(route).toMatchObject({
      metadata: { namespace: release.namespace },
      spec: { rules: [{ backendRefs: [{ name: service.metadata.name, port: https?.port }] }] },
    });
  });
});

describe('the documented chart values', () => {
  test('the documented chart values include the values in docs/guides/expose.md', () => {
    expect(values.length).toBeGreaterThan(3);
  });

  test.each(values)(
    'kube-apiserver accepts the manifests of the chart with the documented values %s',
    async (_, block) => {
      const objects = await chartObjects(block);
      const byNamespace = Map.groupBy(objects, ({ metadata }) => metadata.namespace ?? release.namespace);
      for (const [namespace, members] of byNamespace) {
        // As JSON, because kubectl reads an unquoted `on` of YAML 1.2 as a boolean.
        const rendered = members.map((one) => JSON.stringify(one)).join('\n---\n');
        expect(await send(rendered, '--namespace', namespace)).toMatchObject({ code: 0, stderr: '' });
      }
    },
  );

  test.each(values)('the configuration of the chart with the documented values %s is valid', async (_, block) => {
    const objects = await chartObjects(block);
    const configMap = objects.find(({ metadata: { name } }) => name === 'platform-config') as ConfigMap;
    const file = join(lab().dir, 'documented-configuration.yaml');
    writeFileSync(file, configMap.data['platform.yaml'] ?? '');
    expect(await platformApiserver(['check-config', file])).toMatchObject({ code: 0, stderr: '' });
  });
});
