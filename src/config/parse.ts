import { LineCounter, parseDocument } from 'yaml';
import { platformConfiguration, type PlatformConfiguration } from './schema.ts';

/** One thing that is wrong: where, as a path such as `authentication.users[0].username`, and what would be right. */
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
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true, stringKeys: true });
  if (document.errors.length > 0)
    return {
      ok: false,
      problems: document.errors.map((error) => ({
        path: `line ${lines.linePos(error.pos[0]).line}`,
        message: `is no valid YAML: ${error.message.split('\n')[0] ?? ''}`,
      })),
    };
  let content: unknown;
  try {
    content = document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    return { ok: false, problems: [{ path: '', message: error instanceof Error ? error.message : String(error) }] };
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    return {
      ok: false,
      problems: [{ path: '', message: 'must be a mapping with apiVersion, kind and authentication' }],
    };
  const result = platformConfiguration.safeParse(content);
  if (result.success) return { ok: true, value: result.data };
  return {
    ok: false,
    problems: result.error.issues.flatMap((issue) =>
      issue.code === 'unrecognized_keys'
        ? issue.keys.map((key) => ({ path: pathOf([...issue.path, key]), message: 'is no known key' }))
        : [{ path: pathOf(issue.path), message: issue.message }],
    ),
  };
}

const pathOf = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, step) =>
      typeof step === 'number' ? `${text}[${step}]` : text === '' ? String(step) : `${text}.${String(step)}`,
    '',
  );

/** One line for people: `authentication.users[0].username: must be …`. */
export const formatProblem = ({ path, message }: Problem): string => (path === '' ? message : `${path}: ${message}`);
