import { objectKeys } from './names.ts';
import { parseConfiguration, type Parsed } from './parse.ts';
import { readYAML } from './yaml.ts';

/** parseConfiguration for files of people: takes the ConfigMap too, also among others, and says of a file of another kind that it is one, not each key. */
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

/** Of documents of YAML. */
const separator = /^---(?:\s.*)?$/m;

/** What stands in a ConfigMap. */
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
