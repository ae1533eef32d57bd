/**
 * Makes the chart's CRD templates from manifests/crds, their one source: the same text, wrapped in the value that
 * installs them, with the release's labels and the annotation that keeps them at `helm uninstall`.
 *
 * Run: node hack/update-crds.ts [--check]; with --check nothing is written and a difference ends with 1.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { bring } from './generated.ts';

const root = path.resolve(import.meta.dirname, '..');
const source = path.join(root, 'manifests/crds');

/** The chart's template of one CRD. */
function template(file: string, text: string): string {
  if (text.includes('{{')) throw new Error(`${file}: a template would read "{{"; write it another way`);
  const metadata = /^metadata:\n {2}name: (\S+)\n(?! )/m;
  const name = metadata.exec(text)?.[1];
  if (!text.includes('\nkind: CustomResourceDefinition\n') || name === undefined)
    throw new Error(`${file}: must be one CustomResourceDefinition whose metadata holds its name and nothing else`);
  if (file !== `${name}.yaml`) throw new Error(`${file}: must be named like its CRD, ${name}.yaml`);
  const body = text.replace(
    metadata,
    `metadata:
  name: ${name}
  labels:
    {{- include "platform-apiserver.labels" . | nindent 4 }}
  {{- if .Values.crds.keep }}
  annotations:
    helm.sh/resource-policy: keep
  {{- end }}
`,
  );
  return `{{- /* Made by hack/update-crds.ts from manifests/crds/${file}: change it there. */ -}}
{{- if .Values.crds.install }}
${body.trimEnd()}
{{- end }}
`;
}

const files = readdirSync(source).filter((file) => file.endsWith('.yaml') && file !== 'kustomization.yaml');
bring(
  path.join(root, 'charts/platform-apiserver/templates/crds'),
  new Map(files.map((file) => [file, template(file, readFileSync(path.join(source, file), 'utf8'))])),
);
