import { describe, expect, test } from '@jest/globals';
import { KubeError } from '../../../src/cluster/client/kube-error.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { publishAuthority, publishCABundle } from '../../../src/tls/publish.ts';
import { MemoryCluster } from '../../fakes/cluster.ts';

const namespace = 'platform-system';
const configMaps = `/api/v1/namespaces/${namespace}/configmaps`;
const apiServices = '/apis/apiregistration.k8s.io/v1/apiservices';
const ours = ['v1alpha3.resources.platform.io', 'v1alpha2.logging.platform.io'];
const log = createLogger({ silent: true });
const base64 = (text: string): string => Buffer.from(text).toString('base64');

describe('the CA for clients', () => {
  test('the CA for clients is published in a new or existing ConfigMap, and other keys of the ConfigMap are kept', async () => {
    const cluster = new MemoryCluster();
    const client = cluster.client();
    await publishAuthority(client, namespace, 'one');
    expect(cluster.get(configMaps, 'platform-apiserver-ca')).toMatchObject({ data: { 'ca.crt': 'one' } });
    cluster.put(configMaps, {
      metadata: { name: 'platform-apiserver-ca', labels: { a: 'b' } },
      data: { 'ca.crt': 'one', other: 'x' },
    });
    await publishAuthority(client, namespace, 'two');
    expect(cluster.get(configMaps, 'platform-apiserver-ca')).toMatchObject({
      metadata: { labels: { a: 'b' } },
      data: { 'ca.crt': 'two', other: 'x' },
    });
  });

  test('the CA for clients is not written again when it is unchanged', async () => {
    const client = new MemoryCluster().client();
    for (let time = 0; time < 3; time += 1) await publishAuthority(client, namespace, 'one');
    expect(client.requests.filter(({ method }) => method !== 'GET')).toHaveLength(1);
  });

  test('the CA for clients can be published by several replicas concurrently', async () => {
    const cluster = new MemoryCluster();
    await Promise.all(Array.from({ length: 4 }, () => publishAuthority(cluster.client(), namespace, 'one')));
    expect(cluster.list(configMaps)).toHaveLength(1);
  });
});

describe('the CA for the aggregator', () => {
  test.each(ours)(
    'the CA for the aggregator is written to the APIService %s, which no longer skips TLS verification',
    async (apiService) => {
      const cluster = new MemoryCluster();
      const client = cluster.client();
      const spec = { insecureSkipTLSVerify: true, group: 'resources.platform.io' };
      cluster.put(apiServices, { metadata: { name: apiService }, spec });
      for (let time = 0; time < 2; time += 1) await publishCABundle(client, 'one', log);
      expect(cluster.get(apiServices, apiService)?.['spec']).toEqual({
        group: 'resources.platform.io',
        caBundle: base64('one'),
      });
      expect(client.requestsTo('PATCH', apiService)).toHaveLength(1);
    },
  );

  test('the CA for the aggregator is not required if there is no APIService', async () => {
    const cluster = new MemoryCluster();
    await publishCABundle(cluster.client(), 'one', log);
    expect(cluster.list(apiServices)).toEqual([]);
  });

  test('publishing the CA for the aggregator fails if this server is not allowed to write the APIService', async () => {
    const client = new MemoryCluster().client();
    client.before = () => {
      throw new KubeError(403, { message: 'forbidden' });
    };
    await expect(publishCABundle(client, 'one', log)).rejects.toMatchObject({ code: 403 });
  });
});
