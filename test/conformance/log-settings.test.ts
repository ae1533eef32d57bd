/** Changes of the configuration section `log` while the server runs. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { allRecorded } from '../../src/http/records.ts';
import { logOfLines } from '../fakes/log.ts';
import { login, startLab, type Lab } from '../labs/conformance/lab.ts';

const configMaps = '/api/v1/namespaces/platform-system/configmaps';
const { log, lines } = logOfLines();

let lab: Lab;
let authorization: string;
beforeAll(async () => {
  lab = await startLab({ log });
  authorization = `Bearer ${String((await lab.token(login)).json()['access_token'])}`;
});
afterAll(() => lab.stop());

/** Applies the section, and resolves when the server has accepted the change. */
async function configure(section: object): Promise<void> {
  const current = lab.cluster.get(configMaps, 'platform-config')?.['data'] as { 'platform.yaml': string };
  const changed = JSON.stringify({ ...(JSON.parse(current['platform.yaml']) as object), log: section });
  lab.cluster.put(configMaps, { metadata: { name: 'platform-config' }, data: { 'platform.yaml': changed } });
  const accepted = (): string => JSON.stringify(lab.cluster.get(configMaps, 'platform-config-accepted') ?? '');
  while (!accepted().includes(JSON.stringify(changed))) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Returns the levels of the lines that requests for these paths have. */
async function levelsOf(...paths: readonly string[]): Promise<unknown[]> {
  const before = lines().length;
  for (const path of paths) await lab.gateway(path, { headers: { authorization } });
  await allRecorded();
  const entries = lines()
    .slice(before)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  return entries.filter(({ message }) => message === 'request').map(({ level }) => level);
}

const found = '/docs';
/** The fake cluster has no kube-apiserver that responds. */
const failed = '/api/v1/namespaces';

test('with requestSampling: 0, the server logs only failed requests until the setting is changed back', async () => {
  await configure({ requestSampling: 0 });
  expect(await levelsOf(found, failed, found)).toEqual(['warn']);
  await configure({});
  expect(await levelsOf(found, failed)).toEqual(['info', 'warn']);
});

test('with requestSampling: 0.5, the server logs some of the successful requests', async () => {
  await configure({ requestSampling: 0.5 });
  // The probability of fewer than 10 or more than 90 of 100 lines is below 1e-16.
  const kept = (await levelsOf(...Array.from({ length: 100 }, () => found))).length;
  expect(kept).toBeGreaterThan(9);
  expect(kept).toBeLessThan(91);
});

test('with level: error, the server logs only errors until the setting is changed back', async () => {
  await configure({ level: 'error' });
  expect(await levelsOf(found, failed)).toEqual([]);
  await configure({ level: 'warn' });
  expect(await levelsOf(found, failed)).toEqual(['warn']);
  await configure({});
  expect(await levelsOf(found)).toEqual(['info']);
});
