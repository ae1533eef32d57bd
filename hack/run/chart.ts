import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execute, output } from '../cluster/exec.ts';
import { programs } from '../cluster/programs.ts';

/** Name and namespace of the release. The server and its ServiceAccount have the name of the release. */
export const release = { name: 'platform-apiserver', namespace: 'platform-system' } as const;

type Values = Readonly<Record<string, unknown>>;

const chart = join(import.meta.dirname, '../../charts/platform-apiserver');

/**
 * Installs or upgrades the chart without replicas, for servers that run as processes: the local cluster cannot run
 * pods. `values` are Helm values that override the defaults. Does nothing if the same chart and values were installed
 * last, so that later edits stay. Otherwise `keep` may add values that preserve manual edits during the upgrade.
 */
export async function installChart(
  kubeconfig: string,
  values: Values = {},
  keep: (values: Values) => Promise<Values> = async (same) => same,
): Promise<void> {
  const { helm } = await programs(['helm']);
  const { name, namespace } = release;
  const where = ['--namespace', namespace, '--kubeconfig', kubeconfig];
  const wanted = { replicaCount: 0, ...values };
  const description = `chart and values ${fingerprint(JSON.stringify(wanted))}`;
  const status = await execute(helm, ['status', name, ...where]);
  if (status.code === 0 && /^STATUS: deployed$/m.test(status.stdout) && status.stdout.includes(description)) return;
  const what = ['--install', '--create-namespace', '--values', '-', '--description', description];
  const input = JSON.stringify(await keep(wanted));
  // Without --force-conflicts, every upgrade would fail on fields that were edited with kubectl.
  await output(helm, ['upgrade', name, chart, ...what, '--force-conflicts', ...where], { input });
}

function fingerprint(values: string): string {
  const hash = createHash('sha256').update(values);
  for (const file of globSync('**/*.*', { cwd: chart }).toSorted())
    hash.update(file).update(readFileSync(join(chart, file)));
  return hash.digest('hex').slice(0, 16);
}
