import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { LiveConfiguration } from '../../../src/config/live.ts';
import { ServingCertificate } from '../../../src/tls/serving-certificate.ts';
import type { Serving } from '../../../src/tls/serving.ts';
import { MemoryCluster } from '../../fakes/cluster.ts';
import { configuration } from '../../fakes/configuration.ts';
import { logOfLines } from '../../fakes/log.ts';
import { FakeClock, settle } from '../../labs/cluster-fakes.ts';

const namespace = 'platform-system';
const serving = (name: string): Serving => ({ key: `key ${name}`, cert: `cert ${name}`, ca: `ca ${name}`, own: false });

let cluster: MemoryCluster;
let live: LiveConfiguration;
let clock: FakeClock;
let current: Serving | Error;
let certificate: ServingCertificate;
let replaced: string[];
let lines: () => string[];
beforeEach(() => {
  cluster = new MemoryCluster();
  live = new LiveConfiguration();
  clock = new FakeClock();
  current = serving('1');
  replaced = [];
  const logged = logOfLines();
  ({ lines } = logged);
  certificate = new ServingCertificate({
    client: cluster.client(),
    namespace,
    live,
    source: async () => {
      if (current instanceof Error) throw current;
      return current;
    },
    clock,
    log: logged.log,
  });
  certificate.replaced.subscribe(({ cert }) => replaced.push(cert));
});
afterEach(() => certificate.stop());

const published = (): unknown =>
  cluster.get(`/api/v1/namespaces/${namespace}/configmaps`, 'platform-apiserver-ca')?.['data'];

/** Changes the configuration, so that the server reads the certificate again. */
async function readAgain(): Promise<void> {
  live.accept(configuration({}));
  await settle();
}

test('the serving certificate is read at the start, and its CA is published', async () => {
  expect(() => certificate.value).toThrow('has not been read yet');
  await certificate.start();
  expect(certificate.value).toEqual(current);
  expect(published()).toEqual({ 'ca.crt': 'ca 1' });
  expect(replaced).toEqual([]);
});

test('a changed serving certificate is applied, and its CA is published', async () => {
  await certificate.start();
  await readAgain();
  expect(replaced).toEqual([]);
  current = serving('2');
  await readAgain();
  expect(replaced).toEqual(['cert 2']);
  expect(certificate.value).toEqual(current);
  expect(published()).toEqual({ 'ca.crt': 'ca 2' });
});

test('the serving certificate is read again every 30 seconds until the server stops', async () => {
  await certificate.start();
  current = serving('2');
  await clock.advance(30_000);
  expect(certificate.value).toEqual(current);
  certificate.stop();
  current = serving('3');
  await clock.advance(60_000);
  expect(certificate.value).toEqual(serving('2'));
});

test('the last serving certificate stays in use, and a warning is logged, when the certificate cannot be read', async () => {
  await certificate.start();
  current = new Error('no such file');
  await readAgain();
  expect([certificate.value, replaced]).toEqual([serving('1'), []]);
  expect(lines().at(-1)).toContain('no such file');
});

test('a serving certificate that a listener rejects is tried again at the next read', async () => {
  let failures = 1;
  certificate.replaced.subscribe(() => {
    if (failures-- > 0) throw new Error('key values mismatch');
  });
  await certificate.start();
  current = serving('2');
  await readAgain();
  expect([certificate.value, published()]).toEqual([serving('1'), { 'ca.crt': 'ca 1' }]);
  expect(lines().at(-1)).toContain('key values mismatch');
  await readAgain();
  expect([certificate.value, published()]).toEqual([serving('2'), { 'ca.crt': 'ca 2' }]);
  expect(replaced).toEqual(['cert 2', 'cert 2']);
});

test('a server without a serving certificate does not start', async () => {
  current = new Error('no such file');
  await expect(certificate.start()).rejects.toThrow('no such file');
});

test('an interrupted read of the serving certificate is not reported when the server stops', async () => {
  await certificate.start();
  current = new Error('the server is shutting down');
  live.accept(configuration({}));
  certificate.stop();
  await settle();
  expect(lines()).toEqual([]);
});
