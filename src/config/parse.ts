import { errorMap, issuesOf } from './error-map.ts';
import { readYAML } from './yaml.ts';
import { platformConfiguration, type PlatformConfiguration } from './schema.ts';

/** One thing that is wrong: where, as a path such as `authentication.users[0] (erin).email`, and what would be right. */
export interface Problem {
  readonly path: string;
  readonly message: string;
}

export type Parsed =
  | { readonly ok: true; readonly value: PlatformConfiguration }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const largest = 1024 * 1024;

/** Reads `platform.yaml`. All problems at once, never an exception. */
export function parseConfiguration(text: string): Parsed {
  if (text.length > largest) return { ok: false, problems: [{ path: '', message: 'must be smaller than 1 MiB' }] };
  const yaml = readYAML(text);
  if (!yaml.ok)
    return {
      ok: false,
      problems: yaml.problems.map(({ place, message }) => ({ path: place, message: `is not valid YAML: ${message}` })),
    };
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

/** Steps into lists have the name of what is there too: nobody counts users. */
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

/** One line for people: `authentication.users[0] (erin).email: must be …`. */
export const formatProblem = ({ path, message }: Problem): string => (path === '' ? message : `${path}: ${message}`);
