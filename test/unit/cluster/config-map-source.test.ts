import { afterEach, expect, test } from '@jest/globals';
import { LiveConfiguration } from '../../../src/config/live.ts';
import { PlatformConfigSource } from '../../../src/cluster/config-map-source.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { MemoryCluster } from '../../fakes/cluster.ts';
import { settle } from '../../labs/cluster-fakes.ts';

const namespace = 'platform-system';
const configMaps = `/api/v1/namespaces/${namespace}/configmaps`;
const valid = JSON.stringify({
  apiVersion: 'config.platform.io/v1alpha1',
  kind: 'PlatformConfiguration',
  authentication: { issuer: 'https://platform.example' },
});

let source: PlatformConfigSource | undefined;
afterEach(() => source?.stop());

test('a rejected configuration and a warning create Events on the ConfigMap, and a valid configuration creates none', async () => {
  const cluster = new MemoryCluster();
  const client = cluster.client();
  const live = new LiveConfiguration();
  const put = (text: string): void =>
    cluster.put(configMaps, { metadata: { name: 'platform-config' }, data: { 'platform.yaml': text } });
  put(valid);
  source = new PlatformConfigSource({
    client,
    namespace,
    name: 'platform-config',
    live,
    clock: cluster.clock,
    log: createLogger({ silent: true }),
  });
  await source.start(AbortSignal.timeout(10_000));
  live.warn('references', [{ path: 'a.b', message: 'there is no Secret "c"' }]);
  live.warn('references', []);
  put('{}');
  await settle();
  const { uid } = cluster.get(configMaps, 'platform-config')?.metadata ?? {};
  expect(client.requestsTo('POST', '/events').map(({ body }) => body)).toMatchObject([
    {
      reason: 'ConfigurationIncomplete',
      type: 'Warning',
      message: 'a.b: there is no Secret "c"',
      involvedObject: { kind: 'ConfigMap', name: 'platform-config', uid },
    },
    { reason: 'ConfigurationRefused', message: 'apiVersion: is missing; kind: is missing; authentication: is missing' },
  ]);
});
