/** Renders the chart. */
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { output } from '../../../hack/cluster/exec.ts';
import { programs } from '../../../hack/cluster/programs.ts';
import { release } from '../../../hack/run/chart.ts';
import type { KubeObject } from './kube.ts';

const chart = join(import.meta.dirname, '../../../charts/platform-apiserver');

/** Returns the notes that Helm prints after an installation with these values, in YAML. */
export async function chartNotes(values: string): Promise<string> {
  const { helm } = await programs(['helm']);
  const flags = ['--dry-run=client', '--output', 'json', '--namespace', release.namespace, '--values', '-'];
  const printed = await output(helm, ['install', release.name, chart, ...flags], { input: values });
  return (JSON.parse(printed) as { info: { notes: string } }).info.notes;
}

/** Returns the objects that the chart renders with these values, in YAML. */
export async function chartObjects(values: string): Promise<readonly KubeObject[]> {
  const { helm } = await programs(['helm']);
  const flags = ['--skip-tests', '--namespace', release.namespace, '--values', '-'];
  const rendered = await output(helm, ['template', release.name, chart, ...flags], { input: values });
  return parseAllDocuments(rendered).flatMap((one) => (one.contents === null ? [] : [one.toJS() as KubeObject]));
}
