/**
 * Messages for invalid values whose schema does not define a message. Messages never repeat a value, which might be a
 * misplaced secret.
 */
import { distance } from 'fastest-levenshtein';
import { z } from 'zod';

type Issue = z.core.$ZodRawIssue;

/** Maximum number of characters that are compared with known words. */
const maxComparedLength = 64;
/** Maximum number of unknown keys per object that are compared with known keys, because a caller may send thousands. */
const maxCompared = 20;

const isQuoted = (input: unknown, pattern: RegExp): boolean => typeof input === 'string' && pattern.test(input);

/** Messages by zod's name of the expected type. */
const types: Readonly<Record<string, (input: unknown) => string>> = {
  boolean: (input) => `must be true or false${isQuoted(input, /^(true|false)$/) ? ', without quotes' : ''}`,
  number: (input) => `must be a number${isQuoted(input, /^\d+$/) ? ', without quotes' : ''}`,
  int: () => 'must be a whole number',
  string: (input) => `must be text${['number', 'boolean'].includes(typeof input) ? ': put it in quotes' : ''}`,
  array: () => 'must be a list',
  object: () => 'must be a mapping',
};

const sizes: Readonly<Record<string, string>> = { string: ' characters', array: ' entries' };

function choice(values: readonly unknown[], input: unknown): string {
  const [only, ...others] = values;
  const wanted = others.length === 0 ? JSON.stringify(only) : `one of ${values.join(', ')}`;
  const near = typeof input === 'string' ? nearest(input, values.map(String)) : undefined;
  return `must be ${wanted}${near === undefined || others.length === 0 ? '' : `; did you mean "${near}"?`}`;
}

/** Returns the edit distance. A missing ending counts as one edit: `start` for `start_time`. */
export function editsBetween(text: string, name: string): number {
  const [given, wanted] = [text.slice(0, maxComparedLength).toLowerCase(), name.toLowerCase()];
  return given.length > 2 && wanted.startsWith(given) ? 1 : distance(given, wanted);
}

/**
 * Maximum number of edits of a likely typo: two for words of five letters, because two exchanged letters are two edits.
 */
export const maxEdits = (name: string): number => Math.min(2, name.length / 2.5);

/** Returns the known word that is closest to the text, if a typo is likely. */
export const nearest = (text: string, known: readonly string[]): string | undefined =>
  known
    .map((name) => ({ name, edits: editsBetween(text, name) }))
    .filter(({ name, edits }) => edits <= maxEdits(name))
    .toSorted((one, other) => one.edits - other.edits)[0]?.name;

function unknownKey(key: string, known: readonly string[]): string {
  const near = nearest(key, known);
  return `is not a known key${near === undefined ? '' : `; did you mean "${near}"?`}`;
}

/**
 * Returns the message of an issue, or undefined for zod's own message. Each unknown key has its own line, in the order
 * of the keys.
 */
export function errorMap(issue: Issue): string | undefined {
  const { input } = issue;
  switch (issue.code) {
    case 'invalid_type':
      return input === undefined ? 'is missing' : types[issue.expected]?.(input);
    case 'invalid_value':
      return input === undefined ? 'is missing' : choice(issue.values, input);
    case 'invalid_format':
      return issue.format === 'email' ? 'must be an e-mail address' : undefined;
    case 'too_small':
      if (issue.origin === 'string' && issue.minimum === 1) return 'must not be empty';
      return `must be at least ${issue.minimum}`;
    case 'too_big': {
      const size = sizes[issue.origin];
      return size === undefined ? `must be at most ${issue.maximum}` : `must have at most ${issue.maximum}${size}`;
    }
    case 'unrecognized_keys': {
      const known = issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape) : [];
      return issue.keys.map((key, at) => unknownKey(key, at < maxCompared ? known : [])).join('\n');
    }
    case 'not_multiple_of':
    case 'invalid_union':
    case 'invalid_key':
    case 'invalid_element':
    case 'custom':
  }
  return undefined;
}

/** Returns the issues of an error. Each unknown key is a separate issue. */
export const issuesOf = ({ issues }: z.ZodError): { readonly path: PropertyKey[]; readonly message: string }[] =>
  issues.flatMap(({ path, message, ...issue }) =>
    issue.code === 'unrecognized_keys'
      ? message.split('\n').map((line, at) => ({ path: [...path, issue.keys[at] ?? ''], message: line }))
      : [{ path, message }],
  );
