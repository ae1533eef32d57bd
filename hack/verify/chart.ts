import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { execute, output } from '../cluster/exec.ts';
import { programs } from '../cluster/programs.ts';
import { complaint, root } from './checks.ts';
import { kubernetesSchemas } from './schemas.ts';

const chart = join(root, 'charts/platform-apiserver');

/** Returns the files with values for which the chart is rendered: the files in the chart's folder `ci`. */
export const values = (): string[] => readdirSync(join(chart, 'ci')).map((file) => join(chart, 'ci', file));

export async function chartLint(): Promise<string[]> {
  const { helm } = await programs(['helm']);
  const problems = await Promise.all(
    values().map((file) => complaint(helm, ['lint', '--strict', '--quiet', '--values', file, chart])),
  );
  return problems.flat();
}

const template = ['template', 'platform-apiserver', chart, '--namespace', 'platform-system', '--values'];

/** Returns everything that the chart renders with a file of values. */
export async function renderChart(file: string): Promise<string> {
  const { helm } = await programs(['helm']);
  return await output(helm, [...template, file]);
}

/**
 * Validates each document that helm and kustomize render, with the schema that kube-apiserver publishes for its kind.
 */
export async function rendered(): Promise<string[]> {
  const { helm, kubectl } = await programs(['helm', 'kubectl']);
  const commands = [
    ...values().map((file) => [helm, ...template, file] as const),
    ...kustomizations(join(root, 'manifests')).map((folder) => [kubectl, 'kustomize', folder] as const),
  ];
  const validate = await kubernetesSchemas();
  const problems: string[] = [];
  for (const [program, ...args] of commands) {
    const documents = parseAllDocuments(await output(program, args)).filter(({ contents }) => contents !== null);
    if (documents.length === 0) problems.push(`${args.at(-1)}: the output has no documents`);
    for (const document of documents)
      problems.push(
        ...document.errors.map(({ message }) => `${args.at(-1)}: ${message}`),
        ...validate(document.toJS()).map((problem) => `${args.at(-1)}: ${problem}`),
      );
  }
  return problems;
}

/** Values that the chart rejects, with a part of the message. */
const rejected: readonly (readonly [values: string, message: string])[] = [
  ['config.authentication.isuer=https://a.example', "additional properties 'isuer' not allowed"],
  ['config.logging.store=splunk', "value must be one of 'pods'"],
  ['http.enable=false', "additional properties 'enable' not allowed"],
  ['hostNetwork=true', 'hostNetwork requires containerPorts'],
  ['containerPorts.http=9443', 'containerPorts: expected different ports'],
  ['ingress.enabled=true', 'ingress.enabled requires ingress.host or config.gateway.externalURL'],
  [
    'ingress.enabled=true,existingConfigMap=ours,config.gateway.externalURL=https://a.example',
    'ingress.enabled requires ingress.host, because the chart does not read existingConfigMap',
  ],
  ['httpRoute.enabled=true', 'httpRoute.enabled requires httpRoute.parentRefs'],
  ['httpRoute.enabled=true,httpRoute.parentRefs[0].name=public', 'requires httpRoute.hostnames'],
  ['autoscaling.enabled=true,autoscaling.minReplicas=6', 'expected at most autoscaling.maxReplicas'],
  [
    'image.repository=https://registry.example.com/a',
    "at '/image/repository': 'https://registry.example.com/a' does not",
  ],
  ['image.repository=registry.example.com/a:3.0.0', "at '/image/repository': 'registry.example.com/a:3.0.0' does not"],
  ['extraEnv[0].name=POD_NAMESPACE', "at '/extraEnv/0/name': 'not' failed"],
  [String.raw`commonLabels.app\.kubernetes\.io/component=api`, "invalid propertyName 'app.kubernetes.io/component'"],
];

/** Renders the chart with values that it must reject. */
export async function rejections(): Promise<string[]> {
  const { helm } = await programs(['helm']);
  const problems = await Promise.all(
    rejected.map(async ([setting, message]) => {
      const { code, stderr } = await execute(helm, ['template', 'platform-apiserver', chart, '--set', setting]);
      return code !== 0 && stderr.includes(message) ? [] : [`--set ${setting} is not rejected with: ${message}`];
    }),
  );
  return problems.flat();
}

function kustomizations(folder: string): string[] {
  const inner = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap((entry) => kustomizations(join(folder, entry.name)));
  return existsSync(join(folder, 'kustomization.yaml')) ? [folder, ...inner] : inner;
}
