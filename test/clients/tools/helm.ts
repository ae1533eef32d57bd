/** Installs, upgrades, rolls back and removes the chart in test/clients/chart as the user admin. */
import { deepEqual } from 'node:assert/strict';
import { join } from 'node:path';
import { moduleVersion } from '../../../hack/cluster/go-modules.ts';
import { output } from '../../../hack/cluster/exec.ts';
import { programs } from '../../../hack/cluster/programs.ts';
import { get } from '../../labs/integration/kube.ts';
import { buildGoProgram } from '../go-program.ts';
import type { Flow, Tool } from '../tool.ts';

const chart = join(import.meta.dirname, '../chart');

const release: Flow = async ({ path }, site) => {
  const home = site.folder();
  const env = { KUBECONFIG: site.gateway, HOME: home, HELM_NAMESPACE: site.namespace };
  const helm = (...args: readonly string[]): Promise<string> => output(path, args, { env, timeout: 60_000 });
  const data = async (): Promise<unknown> =>
    (await get<{ data: object }>(`/api/v1/namespaces/${site.namespace}/configmaps/released`)).data;
  await helm('install', 'released', chart, '--wait');
  deepEqual(await data(), { value: 'one' });
  await helm('upgrade', 'released', chart, '--wait', '--set', 'value=two');
  deepEqual(await data(), { value: 'two' });
  await helm('rollback', 'released', '1', '--wait');
  deepEqual(await data(), { value: 'one' });
  const history = JSON.parse(await helm('history', 'released', '--output=json')) as { status: string }[];
  deepEqual(
    history.map(({ status }) => status),
    ['superseded', 'superseded', 'deployed'],
  );
  await helm('uninstall', 'released', '--wait');
  deepEqual(JSON.parse(await helm('list', '--output=json')), []);
};

const flows = { 'installs, upgrades, rolls back and removes a release': release };

export const helm3: Tool = { name: 'helm3', build: () => buildGoProgram('helm3'), flows };
export const helm4: Tool = {
  name: 'helm4',
  build: async () => ({ version: await moduleVersion('helm.sh/helm/v4'), path: (await programs(['helm'])).helm }),
  flows,
};
