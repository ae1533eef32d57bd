import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execute, output } from '../cluster/exec.ts';
import { programs } from '../cluster/programs.ts';

/** Where the chart puts the server, and what it calls it and its ServiceAccount. */
export const release = { name: 'platform-apiserver', namespace: 'platform-system' } as const;

type Values = Readonly<Record<string, unknown>>;

const chart = join(import.meta.dirname, '../../charts/platform-apiserver');

/**
 * Installs or upgrades the chart for servers that run as processes: nothing here could run its pods. `values` are the
 * chart's own, laid over that. Does nothing if that is what was installed last, so what was edited since stays; else
 * `keep` may put into the values what an upgrade must not undo.
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
  // Else what was edited by kubectl would be a conflict for ever.
  await output(helm, ['upgrade', name, chart, ...what, '--force-conflicts', ...where], { input });
}

function fingerprint(values: string): string {
  const hash = createHash('sha256').update(values);
  for (const file of globSync('**/*.*', { cwd: chart }).toSorted())
    hash.update(file).update(readFileSync(join(chart, file)));
  return hash.digest('hex').slice(0, 16);
}
