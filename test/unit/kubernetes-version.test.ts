/** Tests the selection of the version of Kubernetes (hack/cluster/kubernetes-version.ts). */
import { afterEach, expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { kubernetesVersion, modules } from '../../hack/cluster/go-modules.ts';
import { kubernetesMinor, kubernetesModules } from '../../hack/cluster/kubernetes-version.ts';

const before = process.env['KUBERNETES'];
const others = readdirSync('hack/cluster/kubernetes');

afterEach(() => {
  if (before === undefined) delete process.env['KUBERNETES'];
  else process.env['KUBERNETES'] = before;
});

test.each(others)('KUBERNETES=%s selects a version with this minor version', async (selected) => {
  process.env['KUBERNETES'] = selected;
  expect(await kubernetesVersion(kubernetesModules())).toMatch(`v${selected}.`);
  expect(`1.${await kubernetesMinor()}`).toBe(selected);
});

test('without KUBERNETES, programs/go.mod selects the version', () => {
  process.env['KUBERNETES'] = '';
  expect(kubernetesModules()).toBe(modules);
});

test('KUBERNETES rejects a version without a folder', () => {
  process.env['KUBERNETES'] = '1.30';
  expect(kubernetesModules).toThrow(`KUBERNETES: expected ${others.join(', ')} or no value, got "1.30"`);
});

test('make test-kubernetes tests the oldest version that the chart supports', () => {
  const { kubeVersion } = parse(readFileSync('charts/platform-apiserver/Chart.yaml', 'utf8')) as {
    kubeVersion: string;
  };
  expect(kubeVersion).toBe(`>=${others[0]}.0-0`);
});
