/** Release artifacts except the image: the chart with the descriptions, within the size limit of Helm. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { output } from '../../hack/cluster/exec.ts';
import { programs } from '../../hack/cluster/programs.ts';
import { release } from '../../hack/run/chart.ts';
import { readVersion } from '../../src/runtime/package.ts';
import { get, releasePath } from '../labs/integration/kube.ts';
import { lab } from '../labs/integration/lab.ts';

const root = join(import.meta.dirname, '../..');
const version = readVersion();
const chart = `platform-apiserver-${version}.tgz`;
const descriptions = `platform-apiserver-api-${version}.tar.gz`;

let folder: string;
let helm: (...args: readonly string[]) => Promise<string>;
beforeAll(async () => {
  folder = mkdtempSync(join(lab().dir, 'package-'));
  await output(process.execPath, [join(root, 'hack/package/main.ts'), folder]);
  const { helm: program } = await programs(['helm']);
  helm = (...args) => output(program, [...args, '--namespace', release.namespace, '--kubeconfig', lab().kubeconfig]);
});

const texts = (of: string): Map<string, string> =>
  new Map(
    readdirSync(of)
      .filter((file) => file !== 'examples')
      .map((file) => [file, readFileSync(join(of, file), 'utf8')]),
  );

test('the chart and the archive of OpenAPI descriptions contain the published OpenAPI descriptions', async () => {
  expect(readdirSync(folder).toSorted()).toEqual(['SHA256SUMS', chart, descriptions].toSorted());
  for (const [archive, inside] of [
    [chart, 'platform-apiserver/api'],
    [descriptions, 'api'],
  ] as const) {
    const opened = mkdtempSync(join(folder, 'opened-'));
    await output('tar', ['-xzf', join(folder, archive), '-C', opened]);
    expect(texts(join(opened, inside))).toEqual(texts(join(root, 'api')));
  }
  const sum = createHash('sha256')
    .update(readFileSync(join(folder, chart)))
    .digest('hex');
  expect(readFileSync(join(folder, 'SHA256SUMS'), 'utf8')).toContain(`${sum}  ${chart}\n`);
});

/** Helm stores each revision of a release in a Secret, which holds at most a mebibyte. */
const max = (1024 * 1024) / 3;

afterAll(() => helm('rollback', release.name, '--wait'));
test('a Helm release of the chart takes at most a third of the maximum size of a Secret', async () => {
  const values = await helm('get', 'values', release.name, '--output', 'yaml');
  const before = await helm('get', 'manifest', release.name);
  await helm('upgrade', release.name, join(folder, chart), '--reuse-values', '--force-conflicts');
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
