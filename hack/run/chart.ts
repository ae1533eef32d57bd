import { join } from 'node:path';
import { output } from '../cluster/exec.ts';
import { programs } from '../cluster/programs.ts';

/** Where the chart puts the server, and what it calls it and its ServiceAccount. */
export const release = { name: 'platform-apiserver', namespace: 'platform-system' } as const;

const chart = join(import.meta.dirname, '../../charts/platform-apiserver');

/**
 * Installs or upgrades the chart for servers that run as processes: nothing here could run its pods.
 * `values` are the chart's own, laid over that.
 */
export async function installChart(kubeconfig: string, values: Readonly<Record<string, unknown>> = {}): Promise<void> {
  const { helm } = await programs(['helm']);
  const { name, namespace } = release;
  const args = ['upgrade', name, chart, '--install', '--namespace', namespace, '--create-namespace', '--values', '-'];
  await output(helm, [...args, '--kubeconfig', kubeconfig], { input: JSON.stringify({ replicaCount: 0, ...values }) });
}
