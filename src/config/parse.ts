import { errorMap, issuesOf } from './error-map.ts';
import { objectKeys } from './names.ts';
import { readYAML, type YAMLProblem } from './yaml.ts';
import { platformConfiguration, type PlatformConfiguration } from './schema.ts';

/** A problem at a path such as `authentication.users[0] (erin).email`. The message names what is accepted. */
export interface Problem {
  readonly path: string;
  readonly message: string;
}

export type Parsed =
  | { readonly ok: true; readonly value: PlatformConfiguration }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const maxLength = 1024 * 1024;

/** The key of the configuration in its ConfigMap, as messages name it. Lines of YAML problems count from its start. */
export const configMapKey = `data['${objectKeys.config}']`;

/**
 * Parses `platform.yaml`. Reports all problems at once, and never throws. `origin` names the text in the positions of
 * YAML problems.
 */
export function parseConfiguration(text: string, origin?: string): Parsed {
  if (text.length > maxLength) return { ok: false, problems: [{ path: '', message: 'must not be larger than 1 MiB' }] };
  const yaml = readYAML(text);
  if (!yaml.ok) return { ok: false, problems: yaml.problems.map((problem) => yamlProblem(problem, origin)) };
  const { content } = yaml;
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    return {
      ok: false,
      problems: [{ path: '', message: 'must be a mapping with apiVersion, kind and authentication' }],
    };
  const result = platformConfiguration.safeParse(content, { error: errorMap });
  if (result.success) return { ok: true, value: result.data };
  return {
    ok: false,
    problems: issuesOf(result.error).map(({ path, message }) => ({ path: pathOf(path, content), message })),
  };
}

/** Returns the problem of a text that is not YAML, with the position as its path. */
export const yamlProblem = ({ position, message }: YAMLProblem, origin?: string): Problem => ({
  path: origin === undefined ? position : `${origin}, ${position}`,
  message: `is not valid YAML: ${message}`,
});

/** Returns a path whose list indexes are followed by the name of the entry, because a name is easier to find. */
export function pathOf(path: readonly PropertyKey[], content: unknown): string {
  let text = '';
  let here = content;
  for (const step of path) {
    here = (here as Readonly<Record<PropertyKey, unknown>> | null | undefined)?.[step];
    if (typeof step === 'number') text += `[${step}]${nameOf(here)}`;
    else text += text === '' ? String(step) : `.${String(step)}`;
  }
  return text;
}

function nameOf(item: unknown): string {
  const { username, name } = (item ?? {}) as Readonly<Record<string, unknown>>;
  const found = username ?? name;
  return typeof found === 'string' && /^[\w.@-]{1,253}$/.test(found) ? ` (${found})` : '';
}

/** Formats a problem as one line: `authentication.users[0] (erin).email: must be …`. */
export const formatProblem = ({ path, message }: Problem): string => (path === '' ? message : `${path}: ${message}`);
