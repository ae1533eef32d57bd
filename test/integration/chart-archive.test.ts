/** The chart of a release: Helm accepts it, and its Helm release fits into a Secret. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { output } from '../../hack/cluster/exec.ts';
import { programs } from '../../hack/cluster/programs.ts';
import { chart } from '../../hack/release/chart.ts';
import { release } from '../../hack/run/chart.ts';
import { readVersion } from '../../src/runtime/package.ts';
import { get, releasePath } from '../labs/integration/kube.ts';
import { lab } from '../labs/integration/lab.ts';

const root = join(import.meta.dirname, '../..');

let archive: string;
let helm: (...args: readonly string[]) => Promise<string>;
beforeAll(async () => {
  archive = join(lab().dir, 'chart.tgz');
  // The upgrade keeps the values of the installed release, including the image.
  const what = { root, version: readVersion(), image: 'platform-apiserver' };
  writeFileSync(
    archive,
    await chart({ ...what, builder: 'urn:test', commit: 'c0ffee', created: '2026-01-31T12:00:00Z' }),
  );
  const { helm: program } = await programs(['helm']);
  helm = (...args) => output(program, [...args, '--namespace', release.namespace, '--kubeconfig', lab().kubeconfig]);
});

test('Helm finds no problem in the chart of a release', async () => {
  expect(await helm('lint', '--strict', archive)).toContain('0 chart(s) failed');
  expect(await helm('show', 'chart', archive)).toContain(`version: ${readVersion()}\n`);
});

/** Helm stores each revision of a release in a Secret, which holds at most a mebibyte. */
const max = (1024 * 1024) / 3;

afterAll(() => helm('rollback', release.name, '--wait'));
test('a Helm release of the chart takes at most a third of the maximum size of a Secret', async () => {
  const values = await helm('get', 'values', release.name, '--output', 'yaml');
  const before = await helm('get', 'manifest', release.name);
  await helm('upgrade', release.name, archive, '--reuse-values', '--force-conflicts');
  expect(await helm('get', 'values', release.name, '--output', 'yaml')).toBe(values);
  expect(await helm('get', 'manifest', release.name)).toBe(before);
  const selector = encodeURIComponent(`owner=helm,name=${release.name},status=deployed`);
  const { items } = await get<{ items: readonly { data: { release: string } }[] }>(
    `${releasePath}/secrets?labelSelector=${selector}`,
  );
  const sizes = items.map(({ data }) => Buffer.from(data.release, 'base64').length);
  expect(sizes).toHaveLength(1);
  expect(sizes[0]).toBeGreaterThan(10_000);
  expect(sizes[0]).toBeLessThan(max);
});
