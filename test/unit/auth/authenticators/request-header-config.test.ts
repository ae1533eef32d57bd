import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createAuthority } from '../../../../hack/cluster/pki.ts';
import {
  readRequestHeaderConfig,
  RequestHeaderSource,
} from '../../../../src/auth/authenticators/request-header-config.ts';
import { createLogger } from '../../../../src/runtime/logger.ts';
import { MemoryCluster } from '../../../fakes/cluster.ts';
import { settle } from '../../../labs/cluster-fakes.ts';

const path = '/api/v1/namespaces/kube-system/configmaps';
const log = createLogger({ silent: true });
let proxyCA = '';
let clientCA = '';

beforeAll(async () => {
  const authorities = await Promise.all([createAuthority('front-proxy-ca'), createAuthority('kubernetes-ca')]);
  [proxyCA, clientCA] = authorities.map(({ certificate }) => certificate) as [string, string];
});

const data = (changes: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  'requestheader-client-ca-file': proxyCA,
  'requestheader-allowed-names': '["front-proxy-client"]',
  'client-ca-file': clientCA,
  ...changes,
});

describe('headers are refused from everybody', () => {
  test.each<[string, () => Record<string, string>, RegExp | undefined]>([
    ['never for CAs of their own', () => data({ 'requestheader-allowed-names': '[]' }), undefined],
    ['never for a shared CA with names', () => data({ 'client-ca-file': proxyCA }), undefined],
    [
      'for a shared CA without names',
      () => data({ 'client-ca-file': `${clientCA}${proxyCA}`, 'requestheader-allowed-names': '[]' }),
      /requestheader-allowed-names is empty/,
    ],
    [
      'for two CAs of which one is shared, without names',
      () => data({ 'requestheader-client-ca-file': `${proxyCA}${clientCA}`, 'requestheader-allowed-names': '[]' }),
      /requestheader-allowed-names is empty/,
    ],
    [
      'for a shared CA whose names are not said',
      () => ({ 'client-ca-file': proxyCA, 'requestheader-client-ca-file': proxyCA }),
      /requestheader-allowed-names is empty/,
    ],
    ['without a CA', () => ({ 'client-ca-file': clientCA }), /has no requestheader-client-ca-file/],
  ])('%s', (_, given, why) => {
    expect(readRequestHeaderConfig(given()).refused ?? '').toMatch(why ?? /^$/);
  });
});

test.each(['hunter2', '["a", hunter2]', '{"a": "hunter2"}', '["a", 2]', '"hunter2"'])(
  'a list of names that cannot be read is not quoted: %s',
  (text) => {
    expect(() => readRequestHeaderConfig(data({ 'requestheader-allowed-names': text }))).toThrow(
      /^requestheader-allowed-names is not a JSON list of names$/,
    );
  },
);

const put = async (cluster: MemoryCluster, given: Readonly<Record<string, string>>): Promise<void> => {
  cluster.put(path, { metadata: { name: 'extension-apiserver-authentication' }, data: given });
  await settle();
};

describe('the ConfigMap', () => {
  const running: RequestHeaderSource[] = [];
  afterEach(() => {
    for (const one of running.splice(0)) one.stop();
  });

  async function source(cluster: MemoryCluster): Promise<RequestHeaderSource> {
    const started = new RequestHeaderSource({ client: cluster.client(), clock: cluster.clock, log });
    running.push(started);
    started.start();
    await settle();
    return started;
  }

  test('is followed, and nothing is believed before it is there', async () => {
    const cluster = new MemoryCluster();
    const headers = await source(cluster);
    expect([headers.value, headers.problem()]).toEqual([undefined, 'not read yet']);
    await put(cluster, data());
    expect(headers.value?.allowedNames).toEqual(['front-proxy-client']);
    expect(headers.problem()).toBe('');
    await put(cluster, data({ 'requestheader-allowed-names': '["a","b"]' }));
    expect(headers.value?.allowedNames).toEqual(['a', 'b']);
  });

  test.each([
    ['names that are no JSON', { 'requestheader-allowed-names': 'front-proxy-client' }],
    ['names that are no list', { 'requestheader-allowed-names': '"front-proxy-client"' }],
    [
      'a CA that is no certificate',
      {
        'requestheader-client-ca-file': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
      },
    ],
  ])('with %s leaves the last good one in force and says why', async (_, bad) => {
    const cluster = new MemoryCluster();
    await put(cluster, data());
    const headers = await source(cluster);
    await put(cluster, data(bad));
    expect(headers.value?.allowedNames).toEqual(['front-proxy-client']);
    expect(headers.problem()).toContain('ConfigMap kube-system/extension-apiserver-authentication');
  });

  test('with a configuration that would believe any client is believed no more', async () => {
    const cluster = new MemoryCluster();
    await put(cluster, data());
    const headers = await source(cluster);
    await put(cluster, data({ 'client-ca-file': proxyCA, 'requestheader-allowed-names': '[]' }));
    expect(headers.value).toBeUndefined();
    expect(headers.problem()).toContain('any client could name itself');
  });

  test('is followed no more after the end', async () => {
    const cluster = new MemoryCluster();
    await put(cluster, data());
    const headers = await source(cluster);
    headers.stop();
    await put(cluster, data({ 'requestheader-allowed-names': '["another"]' }));
    expect(headers.value?.allowedNames).toEqual(['front-proxy-client']);
  });

  test('that was deleted leaves the last one in force', async () => {
    const cluster = new MemoryCluster();
    await put(cluster, data());
    const headers = await source(cluster);
    cluster.delete(path, 'extension-apiserver-authentication');
    await settle();
    expect(headers.value).toBeDefined();
  });
});
