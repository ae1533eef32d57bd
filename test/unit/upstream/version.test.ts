import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { kubernetesVersion } from '../../../hack/cluster/go-modules.ts';

test('the Kubernetes end-to-end tests have the same version as the control plane that they test', async () => {
  const modules = readFileSync('test/upstream/e2e.mod', 'utf8');
  expect(/k8s\.io\/kubernetes (v\S+)/.exec(modules)?.[1]).toBe(await kubernetesVersion());
});
