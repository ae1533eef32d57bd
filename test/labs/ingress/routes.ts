/** Objects that route requests from Traefik to the server, from the chart and the documents. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { output } from '../../../hack/cluster/exec.ts';
import { programs } from '../../../hack/cluster/programs.ts';
import { release } from '../../../hack/run/chart.ts';
import { blocksIn } from '../integration/documents.ts';
import type { KubeObject } from '../integration/kube.ts';
import { kubectl, succeed } from '../integration/kubectl.ts';
import { lab } from '../integration/lab.ts';

/** Host in place of the documented one. It resolves to this machine. */
export const host = 'localhost';
export const controllerNamespace = 'gateways';

const chart = join(import.meta.dirname, '../../../charts/platform-apiserver');
const kinds = ['BackendTLSPolicy', 'HTTPRoute', 'Ingress', 'Service'];

/** Returns the block of docs/guides/expose.md that contains a text, for the host of the tests. */
function documented(text: string): string {
  const block = blocksIn('guides/expose.md', 'text').find((one) => one.includes(text));
  if (block === undefined) throw new Error(`docs/guides/expose.md has no block with ${text}`);
  return block.replaceAll('platform.example.com', host);
}

/** Returns the routes that the chart renders with the documented values that contain a text, and the Service with its annotations. */
export async function renderRoutes(text: string): Promise<KubeObject[]> {
  const { helm } = await programs(['helm']);
  const values = ['--namespace', release.namespace, '--values', '-'];
  const rendered = await output(helm, ['template', release.name, chart, ...values], { input: documented(text) });
  return parseAllDocuments(rendered)
    .map((one) => one.toJS() as KubeObject | null)
    .filter((one): one is KubeObject => one !== null && kinds.includes(one.kind ?? ''));
}

/** Returns the documented object of a kind. */
export const documentedObject = (kind: string): KubeObject => parse(documented(`\nkind: ${kind}\n`)) as KubeObject;

/** Writes objects to a file for kubectl, and returns its path. */
function writeList(items: readonly object[]): string {
  const file = join(lab().dir, 'routes.json');
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), { mode: 0o600 });
  return file;
}

/** Applies objects, and returns a function that deletes all but the Service. */
export async function apply(...objects: readonly object[]): Promise<() => Promise<void>> {
  const flags = ['--server-side', '--force-conflicts', '--validate=strict'];
  await succeed(kubectl, 'apply', ...flags, '-f', writeList(objects));
  return async () => {
    const own = objects.filter((one) => (one as KubeObject).kind !== 'Service');
    await succeed(kubectl, 'delete', '--ignore-not-found', '-f', writeList(own));
  };
}
