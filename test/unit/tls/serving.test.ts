import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KubeError } from '../../../src/cluster/client/kube-error.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { newMaterial, type ServingMaterial } from '../../../src/tls/authority.ts';
import { servingFromFiles, servingFromSecret, type ServingSource } from '../../../src/tls/serving.ts';
import { MemoryCluster, type MemoryClient } from '../../fakes/cluster.ts';

const namespace = 'platform-system';
const path = `/api/v1/namespaces/${namespace}/secrets`;
const name = 'platform-serving-cert';
const log = createLogger({ silent: true });

interface Replica {
  readonly client: MemoryClient;
  readonly serving: ServingSource;
}

const replica = (
  cluster: MemoryCluster,
  hosts: () => readonly string[] = () => ['localhost'],
  now: () => number = Date.now,
): Replica => {
  const client = cluster.client();
  return { client, serving: servingFromSecret({ client, namespace, hosts, log, clock: { now } }) };
};

/** Stores TLS material in the Secret as if a server had created this material `age` milliseconds ago. */
async function putMaterial(cluster: MemoryCluster, age: number): Promise<void> {
  const material = await newMaterial(['localhost'], Date.now() - age);
  const data = Object.entries(material).map(([key, pem]) => [key, Buffer.from(String(pem)).toString('base64')]);
  cluster.put(path, { metadata: { name }, type: 'kubernetes.io/tls', data: Object.fromEntries(data) as object });
}

const old = 300 * 86_400_000;

describe('concurrent replicas', () => {
  test('replicas that start concurrently use one CA and one serving certificate', async () => {
    const cluster = new MemoryCluster();
    const all = await Promise.all(Array.from({ length: 4 }, () => replica(cluster).serving()));
    expect(new Set(all.map((one) => JSON.stringify(one))).size).toBe(1);
    expect(cluster.list(path)).toMatchObject([{ metadata: { name }, type: 'kubernetes.io/tls' }]);
    expect(all[0]).toMatchObject({ own: true });
  });

  test('replicas that renew the serving certificate concurrently use the certificate that is stored first', async () => {
    const cluster = new MemoryCluster();
    await putMaterial(cluster, old);
    const before = cluster.get(path, name)?.['data'] as Record<string, string>;
    const all = await Promise.all(Array.from({ length: 4 }, () => replica(cluster).serving()));
    expect(new Set(all.map(({ cert }) => cert)).size).toBe(1);
    expect(all[0]?.ca).toBe(Buffer.from(before['ca.crt'] ?? '', 'base64').toString());
    expect(new X509Certificate(all[0]?.cert ?? '').validToDate.getTime()).toBeGreaterThan(Date.now());
  });
});

test('all replicas switch to the next CA at the same time, and the Secret keeps the previous CA until clients no longer need it', async () => {
  const day = 86_400_000;
  const cluster = new MemoryCluster();
  let now = Date.now();
  const two = [replica(cluster, undefined, () => now), replica(cluster, undefined, () => now)];
  const currentCA = async (): Promise<string> => {
    const [one, other] = await Promise.all(two.map(({ serving }) => serving()));
    expect(one).toEqual(other);
    return one?.ca ?? '';
  };
  const keys = (): string[] => Object.keys(cluster.get(path, name)?.['data'] ?? {}).toSorted();
  const own = ['ca.crt', 'ca.key', 'tls.crt', 'tls.key'];
  const first = await currentCA();
  expect(keys()).toEqual(own);
  now += 2_930 * day;
  const both = await currentCA();
  expect(both.startsWith(first)).toBe(true);
  expect(keys()).toEqual([...own, 'next-ca.crt', 'next-ca.key'].toSorted());
  now += 370 * day;
  expect(await currentCA()).toBe(both);
  expect(keys()).toEqual([...own, 'previous-ca.crt'].toSorted());
  now += 370 * day;
  expect(await currentCA()).toBe(both.slice(first.length).trim());
  expect(keys()).toEqual(own);
});

test('a valid serving certificate is read without any write', async () => {
  const cluster = new MemoryCluster();
  const { client, serving } = replica(cluster);
  const first = await serving();
  const writes = client.requests.filter(({ method }) => method !== 'GET').length;
  expect(await serving()).toEqual(first);
  expect(client.requests.filter(({ method }) => method !== 'GET')).toHaveLength(writes);
});

test('a new host name causes a new serving certificate from the same CA', async () => {
  const hosts = ['localhost'];
  const { serving } = replica(new MemoryCluster(), () => hosts);
  const first = await serving();
  hosts.push('new.example');
  const second = await serving();
  expect(second.ca).toBe(first.ca);
  expect(new X509Certificate(second.cert).checkHost('new.example')).toBe('new.example');
  expect(await serving()).toEqual(second);
});

test('the error for an incomplete Secret of the serving certificate names the missing key and a solution', async () => {
  const cluster = new MemoryCluster();
  cluster.put(path, { metadata: { name }, data: {} });
  await expect(replica(cluster).serving()).rejects.toThrow(
    `Secret ${name}: "ca.crt" is missing; delete the Secret to create a new one`,
  );
});

test.each([403, 500])(
  "a %d response for the serving certificate's Secret is not treated as a missing Secret",
  async (code) => {
    const cluster = new MemoryCluster();
    const { client, serving } = replica(cluster);
    client.before = () => {
      throw new KubeError(code, { message: 'no' });
    };
    await expect(serving()).rejects.toMatchObject({ code });
    expect(cluster.list(path)).toEqual([]);
  },
);

describe('configured certificate files', () => {
  let folder: string;
  let cert: string;
  let key: string;
  let one: ServingMaterial;
  let two: ServingMaterial;
  beforeAll(async () => {
    [one, two] = await Promise.all([newMaterial(['localhost'], Date.now()), newMaterial(['localhost'], Date.now())]);
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'platform-apiserver-tls-'));
    [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
    await put(one['tls.crt'], one['tls.key']);
  });
  afterEach(() => rm(folder, { recursive: true }));

  const put = async (certificate: string, privateKey: string): Promise<void> => {
    await Promise.all([writeFile(cert, certificate), writeFile(key, privateKey)]);
  };

  test('changed certificate files, and a CA file that is added, take effect at the next read', async () => {
    const serving = servingFromFiles(cert, key);
    expect(await serving()).toEqual({ cert: one['tls.crt'], key: one['tls.key'], ca: undefined, own: false });
    await Promise.all([put(two['tls.crt'], two['tls.key']), writeFile(join(folder, 'ca.crt'), 'a CA')]);
    expect(await serving()).toEqual({ cert: two['tls.crt'], key: two['tls.key'], ca: 'a CA', own: false });
  });

  test('configured certificate files that do not exist cause an error', async () => {
    await expect(servingFromFiles('/nowhere/tls.crt', '/nowhere/tls.key')()).rejects.toThrow(
      '--tls-cert-file: cannot read /nowhere/tls.crt: no such file or directory',
    );
  });

  test('configured files without a certificate or its private key cause an error that names the flag and the file', async () => {
    const error = async (certificate: string, privateKey: string): Promise<string> => {
      await put(certificate, privateKey);
      return await servingFromFiles(cert, key)().then(
        () => 'none',
        (reason: Error) => reason.message,
      );
    };
    expect(await error('nonsense', one['tls.key'])).toBe(`--tls-cert-file: ${cert} contains no certificate in PEM`);
    expect(await error(one['tls.crt'], one['tls.crt'])).toBe(
      `--tls-private-key-file: ${key} contains no unencrypted private key in PEM`,
    );
    expect(await error(one['tls.crt'], two['tls.key'])).toBe(
      `--tls-private-key-file: the key in ${key} does not belong to the certificate in ${cert}`,
    );
  });
});
