/** Objects that route requests from Traefik to the server, from the chart and the documents. */
import { parse } from 'yaml';
import { chartObjects } from '../integration/chart.ts';
import { blocksIn } from '../integration/documents.ts';
import type { KubeObject } from '../integration/kube.ts';
import { kubectl, manifestFile, strictApply, succeed } from '../integration/kubectl.ts';

/** Host in place of the documented one. It resolves to this machine. */
export const host = 'localhost';
export const controllerNamespace = 'gateways';

const kinds = ['BackendTLSPolicy', 'HTTPRoute', 'Ingress', 'Service'];

/** Returns the block of docs/guides/expose.md that contains a text, for the host of the tests. */
function documented(text: string): string {
  const block = blocksIn('guides/expose.md', 'text').find((one) => one.includes(text));
  if (block === undefined) throw new Error(`docs/guides/expose.md has no block with ${text}`);
  return block.replaceAll('platform.example.com', host);
}

/** Returns the routes that the chart renders with the documented values that contain a text, and the Service with its annotations. */
export async function renderRoutes(text: string): Promise<KubeObject[]> {
  return (await chartObjects(documented(text))).filter(({ kind = '' }) => kinds.includes(kind));
}

/** Returns the documented object of a kind. */
export const documentedObject = (kind: string): KubeObject => parse(documented(`\nkind: ${kind}\n`)) as KubeObject;

const listOf = (items: readonly object[]): string => JSON.stringify({ apiVersion: 'v1', kind: 'List', items });

export type Undo = () => Promise<unknown>;

/** Applies objects, and returns a function that deletes all but the Service. */
export async function apply(...objects: readonly object[]): Promise<Undo> {
  await succeed(kubectl, ...strictApply(listOf(objects)));
  const own = objects.filter((one) => (one as KubeObject).kind !== 'Service');
  return () => succeed(kubectl, 'delete', '--ignore-not-found', '-f', manifestFile(listOf(own)));
}
