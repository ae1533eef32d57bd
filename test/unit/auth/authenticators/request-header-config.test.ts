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

describe('the request-header configuration is rejected', () => {
  test.each<[string, () => Record<string, string>, RegExp | undefined]>([
    ['never with a dedicated CA', () => data({ 'requestheader-allowed-names': '[]' }), undefined],
    ['never with a shared CA and names', () => data({ 'client-ca-file': proxyCA }), undefined],
    [
      'with a shared CA without names',
      () => data({ 'client-ca-file': `${clientCA}${proxyCA}`, 'requestheader-allowed-names': '[]' }),
      /requestheader-allowed-names is empty/,
    ],
    [
      'with two CAs, one of them shared, and no names',
      () => data({ 'requestheader-client-ca-file': `${proxyCA}${clientCA}`, 'requestheader-allowed-names': '[]' }),
      /requestheader-allowed-names is empty/,
    ],
    [
      'with a shared CA and no key for names',
      () => ({ 'client-ca-file': proxyCA, 'requestheader-client-ca-file': proxyCA }),
      /requestheader-allowed-names is empty/,
    ],
    ['without a request-header CA', () => ({ 'client-ca-file': clientCA }), /has no requestheader-client-ca-file/],
  ])('the request-header configuration is rejected %s', (_, given, reason) => {
    expect(readRequestHeaderConfig(given()).refused ?? '').toMatch(reason ?? /^$/);
  });
});

test.each(['hunter2', '["a", hunter2]', '{"a": "hunter2"}', '["a", 2]', '"hunter2"'])(
  'an unreadable list of names is not quoted: %s',
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

describe('the ConfigMap of the request-header configuration', () => {
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

  test('the ConfigMap of the request-header configuration is watched, and no header is trusted before it is read', async () => {
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
    ['names that are not JSON', { 'requestheader-allowed-names': 'front-proxy-client' }],
    ['names that are not a list', { 'requestheader-allowed-names': '"front-proxy-client"' }],
    [
      'a CA that is not a certificate',
      {
        'requestheader-client-ca-file': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
      },
    ],
  ])(
    'the ConfigMap of the request-header configuration with %s leaves the last valid one in force and reports why',
    async (_, bad) => {
      const cluster = new MemoryCluster();
      await put(cluster, data());
      const headers = await source(cluster);
      await put(cluster, data(bad));
      expect(headers.value?.allowedNames).toEqual(['front-proxy-client']);
      expect(headers.problem()).toContain('ConfigMap kube-system/extension-apiserver-authentication');
    },
  );

  test('the ConfigMap of the request-header configuration that would trust any client is not applied, and no header is trusted any more', async () => {
    const cluster = new MemoryCluster();
    await put(cluster, data());
    const headers = await source(cluster);
    await put(cluster, data({ 'client-ca-file': proxyCA, 'requestheader-allowed-names': '[]' }));
    expect(headers.value).toBeUndefined();
    expect(headers.problem()).toContain('any client could claim any identity');
  });

  test('the ConfigMap of the request-header configuration is no longer watched after a stop', async () => {
    const cluster = new MemoryCluster();
    await put(cluster, data());
    const headers = await source(cluster);
    headers.stop();
    await put(cluster, data({ 'requestheader-allowed-names': '["another"]' }));
    expect(headers.value?.allowedNames).toEqual(['front-proxy-client']);
  });

  test('the ConfigMap of the request-header configuration that is deleted leaves the last one in force', async () => {
    const cluster = new MemoryCluster();
    await put(cluster, data());
    const headers = await source(cluster);
    cluster.delete(path, 'extension-apiserver-authentication');
    await settle();
    expect(headers.value).toBeDefined();
  });
});
