/**
 * Describes a value that the schema refuses, where the schema has no message of its own. No message repeats a value: it might be a secret
 * in the wrong place.
 */
import { distance } from 'fastest-levenshtein';
import { z } from 'zod';

type Issue = z.core.$ZodRawIssue;

/** Characters that are compared with known words. */
const longestCompared = 64;
/** Unknown keys of one object that are compared with known ones: a caller may send thousands. */
const maxCompared = 20;

const isQuoted = (input: unknown, pattern: RegExp): boolean => typeof input === 'string' && pattern.test(input);

/** By zod's name of what was expected. */
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

/** A missing ending counts as one edit: `start` for `start_time`. */
function editsBetween(text: string, name: string): number {
  const [given, wanted] = [text.slice(0, longestCompared).toLowerCase(), name.toLowerCase()];
  return given.length > 2 && wanted.startsWith(given) ? 1 : distance(given, wanted);
}

/** Returns the known word that the text is closest to, if it is a likely slip. */
export const nearest = (text: string, known: readonly string[]): string | undefined =>
  known
    .map((name) => ({ name, edits: editsBetween(text, name) }))
    .filter(({ name, edits }) => edits <= Math.min(2, name.length / 2))
    .toSorted((one, other) => one.edits - other.edits)[0]?.name;

function unknownKey(key: string, known: readonly string[]): string {
  const near = nearest(key, known);
  return `is no known key${near === undefined ? '' : `; did you mean "${near}"?`}`;
}

/** Undefined: zod's own words. Of unknown keys each has a line, in their order. */
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

/** The issues of an error, one for each unknown key. */
export const issuesOf = ({ issues }: z.ZodError): { readonly path: PropertyKey[]; readonly message: string }[] =>
  issues.flatMap(({ path, message, ...issue }) =>
    issue.code === 'unrecognized_keys'
      ? message.split('\n').map((line, at) => ({ path: [...path, issue.keys[at] ?? ''], message: line }))
      : [{ path, message }],
  );
