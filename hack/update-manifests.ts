/**
 * Makes manifests/base, the plain YAML for kustomize, from the chart's default rendering, so that the two cannot drift.
 * What only Helm uses is left out: its labels, and the CRDs, which the base takes from manifests/crds.
 *
 * Run: node hack/update-manifests.ts [--check]; helm is the one of the local cluster.
 */
import { execFileSync } from 'node:child_process';
import path from 'node:path';

import { format, resolveConfig } from 'prettier';
import { parseAllDocuments } from 'yaml';

import { programs } from './cluster/programs.ts';
import { bring } from './generated.ts';

const root = path.resolve(import.meta.dirname, '..');
const base = path.join(root, 'manifests/base');
const namespace = 'platform-system';

const header = '# Made by hack/update-manifests.ts from the chart: change it there.\n';

const namespaceYaml = `apiVersion: v1
kind: Namespace
metadata:
  name: ${namespace}
  labels:
    pod-security.kubernetes.io/enforce: restricted
`;

/** The chart's default rendering, template file name to the YAML documents made from it. */
async function render(): Promise<Map<string, string[]>> {
  const { helm } = await programs(['helm']);
  const flags = ['--namespace', namespace, '--set', 'crds.install=false'];
  const text = execFileSync(
    helm,
    ['template', 'platform-apiserver', path.join(root, 'charts/platform-apiserver'), ...flags],
    { encoding: 'utf8' },
  );
  const byFile = new Map<string, string[]>();
  for (const part of text.split(/^---\n/m)) {
    const source = /^# Source: \S+\/templates\/(\S+)\n/.exec(part);
    if (source?.[1] === undefined) continue;
    const documents = byFile.get(source[1]) ?? [];
    documents.push(withoutHelm(part.slice(source[0].length)));
    byFile.set(source[1], documents);
  }
  return byFile;
}

/** The same object without the labels that say it is Helm's. */
function withoutHelm(text: string): string {
  return parseAllDocuments(text)
    .map((document) => {
      document.deleteIn(['metadata', 'labels', 'helm.sh/chart']);
      document.deleteIn(['metadata', 'labels', 'app.kubernetes.io/managed-by']);
      return document.toString({ lineWidth: 0 });
    })
    .join('---\n');
}

const rendered = [...(await render())].toSorted(([a], [b]) => (a < b ? -1 : 1));
const kustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
${['../crds', 'namespace.yaml', ...rendered.map(([file]) => file)].map((name) => `  - ${name}\n`).join('')}`;

const style = (await resolveConfig(path.join(base, 'x.yaml'))) ?? {};
const wanted = new Map<string, string>();
for (const [file, text] of [
  ['kustomization.yaml', kustomization],
  ['namespace.yaml', namespaceYaml],
  ...rendered.map(([name, documents]) => [name, documents.join('---\n')] as const),
] as const)
  wanted.set(file, await format(header + text, { ...style, parser: 'yaml' }));
bring(base, wanted);
