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

describe('the request-header configuration', () => {
  test.each<[string, () => Record<string, string>, RegExp | undefined]>([
    ['a dedicated CA is accepted', () => data({ 'requestheader-allowed-names': '[]' }), undefined],
    ['a shared CA with names is accepted', () => data({ 'client-ca-file': proxyCA }), undefined],
    [
      'a shared CA without names is rejected',
      () => data({ 'client-ca-file': `${clientCA}${proxyCA}`, 'requestheader-allowed-names': '[]' }),
      /requestheader-allowed-names is empty/,
    ],
    [
      'a CA file with one dedicated and one shared CA without names is rejected',
      () => data({ 'requestheader-client-ca-file': `${proxyCA}${clientCA}`, 'requestheader-allowed-names': '[]' }),
      /requestheader-allowed-names is empty/,
    ],
    [
      'a shared CA without the key for names is rejected',
      () => ({ 'client-ca-file': proxyCA, 'requestheader-client-ca-file': proxyCA }),
      /requestheader-allowed-names is empty/,
    ],
    [
      'a missing request-header CA is rejected',
      () => ({ 'client-ca-file': clientCA }),
      /has no requestheader-client-ca-file/,
    ],
  ])('in the request-header configuration, %s', (_, given, reason) => {
    expect(readRequestHeaderConfig(given()).refused ?? '').toMatch(reason ?? /^$/);
  });
});

test.each(['hunter2', '["a", hunter2]', '{"a": "hunter2"}', '["a", 2]', '"hunter2"'])(
  'the error for an unreadable list of allowed names does not quote the list: %s',
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
    'a ConfigMap of the request-header configuration with %s leaves the last valid configuration in effect and reports the reason',
    async (_, bad) => {
      const cluster = new MemoryCluster();
      await put(cluster, data());
      const headers = await source(cluster);
      await put(cluster, data(bad));
      expect(headers.value?.allowedNames).toEqual(['front-proxy-client']);
      expect(headers.problem()).toContain('ConfigMap kube-system/extension-apiserver-authentication');
    },
  );

  test('a ConfigMap of the request-header configuration that would trust any client is not applied, and no header is trusted', async () => {
    const cluster = new MemoryCluster();
    await put(cluster, data());
    const headers = await source(cluster);
    await put(cluster, data({ 'client-ca-file': proxyCA, 'requestheader-allowed-names': '[]' }));
    expect(headers.value).toBeUndefined();
    expect(headers.problem()).toContain('any client could claim any identity');
  });

  test('the ConfigMap of the request-header configuration is no longer watched after the server has stopped', async () => {
    const cluster = new MemoryCluster();
    await put(cluster, data());
    const headers = await source(cluster);
    headers.stop();
    await put(cluster, data({ 'requestheader-allowed-names': '["another"]' }));
    expect(headers.value?.allowedNames).toEqual(['front-proxy-client']);
  });

  test('the last request-header configuration stays in effect when its ConfigMap is deleted', async () => {
    const cluster = new MemoryCluster();
    await put(cluster, data());
    const headers = await source(cluster);
    cluster.delete(path, 'extension-apiserver-authentication');
    await settle();
    expect(headers.value).toBeDefined();
  });
});
