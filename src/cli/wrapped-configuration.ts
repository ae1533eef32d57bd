import { objectKeys } from '../config/names.ts';
import { parseConfiguration, type Parsed } from '../config/parse.ts';
import { readYAML } from '../config/yaml.ts';

/** Parses a file of a user: also a ConfigMap with the configuration, alone or among other documents. A file of another kind is one problem, not one for each key. */
export function parseWrapped(text: string): Parsed {
  const among = text
    .split(separator)
    .map(heldIn)
    .find((one) => one !== undefined);
  if (among !== undefined) return parseConfiguration(among);
  const content = mappingIn(text);
  if (content === undefined || content['kind'] === 'PlatformConfiguration' || 'authentication' in content)
    return parseConfiguration(text);
  const message = `is no cluster configuration: that is a mapping with apiVersion, kind: PlatformConfiguration and authentication, or a ConfigMap with one in data['${objectKeys.config}'], as "helm template" makes it of values`;
  return { ok: false, problems: [{ path: '', message }] };
}

/** Between YAML documents. */
const separator = /^---(?:\s.*)?$/m;

/** Returns the configuration that a ConfigMap holds. */
function heldIn(text: string): string | undefined {
  const content = mappingIn(text);
  const held = content?.['kind'] === 'ConfigMap' ? recordOf(content['data'])?.[objectKeys.config] : undefined;
  return typeof held === 'string' ? held : undefined;
}

/** Undefined also if the text is no YAML: parseConfiguration says why. */
function mappingIn(text: string): Record<string, unknown> | undefined {
  const yaml = readYAML(text);
  return yaml.ok ? recordOf(yaml.content) : undefined;
}

const recordOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
