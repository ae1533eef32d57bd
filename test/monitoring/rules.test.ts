/** Rules of the chart, checked by promtool. */
import { beforeAll, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { execute, output } from '../../hack/cluster/exec.ts';
import { programs } from '../../hack/cluster/programs.ts';
import { buildTimeout, promtool } from '../../hack/monitoring/prometheus.ts';
import { lab } from '../labs/integration/lab.ts';
import { root, rulesFile, rulesTestFile } from '../labs/monitoring/sources.ts';

let program: string;

beforeAll(async () => {
  program = await promtool();
}, buildTimeout);

/** Returns the output of promtool if it fails, so that the failure of the test shows it. */
async function complaint(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await execute(program, args);
  return code === 0 ? '' : `${stdout}${stderr}`;
}

test('promtool accepts the rules and finds no duplicates', async () => {
  expect(await complaint('check', 'rules', '--lint=all', '--lint-fatal', rulesFile)).toBe('');
});

test('the alerts fire exactly in the cases in which rules.test.yaml expects them to fire', async () => {
  expect(await complaint('test', 'rules', rulesTestFile)).toBe('');
});

test('the PrometheusRule of the chart contains the rules, with the namespace of the release and the URL of the runbooks', async () => {
  const { helm } = await programs(['helm']);
  const chart = join(root, 'charts/platform-apiserver');
  const set = 'prometheusRule.enabled=true,prometheusRule.runbookBaseURL=https://git.example.com/';
  const flags = ['--show-only', 'templates/prometheusrule.yaml', '--set', set, '--namespace', 'staging'];
  const rendered = await output(helm, ['template', 'platform-apiserver', chart, ...flags]);
  const [rule] = parseAllDocuments(rendered).map((document) => document.toJS() as { spec: object });
  const file = join(lab().dir, 'prometheusrule.yaml');
  writeFileSync(file, stringify(rule?.spec));
  expect(await complaint('check', 'rules', '--lint=all', '--lint-fatal', file)).toBe('');
  const text = JSON.stringify(rule?.spec);
  expect(text).toContain('"runbook_url":"https://git.example.com/docs/guides/monitoring.md#platformapiserverdown"');
  expect(text).toContain('absent(up{namespace=\\"staging\\", job=\\"platform-apiserver\\"} == 1)');
  expect(text).not.toContain('platform-system');
});
