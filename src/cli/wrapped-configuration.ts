import { objectKeys } from '../config/names.ts';
import { configMapKey, parseConfiguration, yamlProblem, type Parsed } from '../config/parse.ts';
import { readYAML } from '../config/yaml.ts';

/**
 * Parses a configuration file, or a file with a ConfigMap that contains the configuration, alone or among other
 * documents. Returns a single problem for a file of another kind, instead of a problem for each key.
 */
export function parseWrapped(text: string): Parsed {
  const documents = documentsOf(text).map(readYAML);
  const contents = documents.map((yaml) => (yaml.ok ? recordOf(yaml.content) : undefined));
  const configuration = contents.map(configurationIn).find((one) => one !== undefined);
  if (configuration !== undefined) return parseConfiguration(configuration, configMapKey);
  const broken = documents.flatMap((yaml) => (yaml.ok ? [] : yaml.problems));
  if (broken.length > 0) return { ok: false, problems: broken.map((problem) => yamlProblem(problem)) };
  const [content, ...others] = contents.filter((one) => one !== undefined);
  if (others.length === 0 && (content === undefined || isConfiguration(content))) return parseConfiguration(text);
  const message = `is not a cluster configuration: expected a mapping with apiVersion, kind: PlatformConfiguration and authentication, or a ConfigMap with one in ${configMapKey}, as "helm template" renders it`;
  return { ok: false, problems: [{ path: '', message }] };
}

const isConfiguration = (content: Readonly<Record<string, unknown>>): boolean =>
  content['kind'] === 'PlatformConfiguration' || 'authentication' in content;

/**
 * Splits a YAML stream. Each document starts with as many empty lines as there are lines before it, so that reported
 * positions refer to the file.
 */
function documentsOf(text: string): string[] {
  const documents: string[] = [];
  let lines = 0;
  for (const document of text.split(/^---(?=\s|$)/m)) {
    documents.push('\n'.repeat(lines) + document);
    lines += document.split('\n').length - 1;
  }
  return documents;
}

/** Returns the configuration that a ConfigMap contains. */
function configurationIn(content: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const text = content?.['kind'] === 'ConfigMap' ? recordOf(content['data'])?.[objectKeys.config] : undefined;
  return typeof text === 'string' ? text : undefined;
}

const recordOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
