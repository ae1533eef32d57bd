/** Translates a selection to the common query language of Elasticsearch and OpenSearch. */
import type { Selection, WorkloadPods } from '../log-store.ts';
import type { Part } from '../remote/parts.ts';
import { fields } from './documents.ts';
import type { Phrase } from './words.ts';

export type Clause = Readonly<Record<string, unknown>>;

/** Requires one of the clauses; an empty list has no effect. */
const anyOf = (clauses: readonly Clause[]): Clause[] =>
  clauses.length < 2 ? [...clauses] : [{ bool: { should: clauses, minimum_should_match: 1 } }];

const oneOf = (field: string, values: readonly string[]): Clause[] =>
  values.length === 0 ? [] : [{ terms: { [field]: values } }];

export const between = (field: string, start: number | undefined, end?: number): Clause => ({
  range: {
    [field]: {
      ...(start === undefined ? {} : { gte: start }),
      ...(end === undefined ? {} : { lte: end }),
      format: 'epoch_millis',
    },
  },
});

/** Maximum length of a regular expression (index.max_regex_length). */
const maxPatternLength = 1_000;

/** Returns whether the pattern starts with a wildcard. */
const startsWithWildcard = (pattern: string): boolean => /^(?:\.|\[[^\]]*\])\*/.test(pattern);

/**
 * Joins patterns of whole names into as few clauses as possible. `NONE` disables operators that only Lucene has.
 * Patterns that start with a wildcard are not joined, because the joined pattern would exceed the maximum number of
 * automaton states of an index.
 */
function matching(field: string, patterns: readonly string[]): Clause[] {
  const joined: string[] = [];
  const pieces = patterns.flatMap((pattern) =>
    pattern.length > maxPatternLength && !pattern.includes('(') ? pattern.split('|') : [pattern],
  );
  for (const pattern of pieces) {
    const last = joined.at(-1);
    const both = `${last}|${pattern}`;
    if (last === undefined || startsWithWildcard(last) || startsWithWildcard(pattern) || both.length > maxPatternLength)
      joined.push(pattern);
    else joined[joined.length - 1] = both;
  }
  return joined.map((value) => ({ regexp: { [field]: { value, flags: 'NONE' } } }));
}

function anyCase(character: string): string {
  const [small, capital] = [character.toLowerCase(), character.toUpperCase()];
  if (small !== capital && small.length === 1 && capital.length === 1) return `[${small}${capital}]`;
  return /[.?+*|{}[\]()"\\#@&<>~^$]/.test(character) ? `\\${character}` : character;
}

/**
 * Returns a pattern such as `.*[eE][rR][rR].*`. If this pattern would be too long, returns a pattern in lower case,
 * because names in Kubernetes are in lower case.
 */
function containing(keyword: string): string {
  const pattern = `.*${Array.from(keyword, anyCase).join('')}.*`;
  return pattern.length <= maxPatternLength ? pattern : `.*${keyword.toLowerCase().replaceAll('.', '\\.')}.*`;
}

/** Matches the pods of one of the workloads. */
function podsOf(workloads: readonly WorkloadPods[]): Clause[] {
  const also = workloads.flatMap(({ alsoPods }) => alsoPods);
  const plain = workloads.filter(({ notPods }) => notPods.length === 0);
  const others = workloads.filter(({ notPods }) => notPods.length > 0);
  return anyOf([
    ...oneOf(fields.pod, also),
    ...matching(
      fields.pod,
      plain.map(({ pattern }) => pattern),
    ),
    ...others.map(({ pattern, notPods }) => ({
      bool: { filter: anyOf(matching(fields.pod, [pattern])), must_not: oneOf(fields.pod, notPods) },
    })),
  ]);
}

/** Escapes the special characters of wildcard patterns. */
const literal = (word: string): string => word.replace(/[\\*?]/g, '\\$&');

/**
 * Matches words of the text that start with, end with or contain this word; undefined if only the whole word matches.
 */
function wordLike(word: string, isOpenBefore: boolean, isOpenAfter: boolean): Clause | undefined {
  if (isOpenBefore) return { wildcard: { [fields.text]: { value: `*${literal(word)}${isOpenAfter ? '*' : ''}` } } };
  return isOpenAfter ? { prefix: { [fields.text]: { value: word } } } : undefined;
}

/** Matches consecutive words. */
function phrase({ words, isOpenBefore, isOpenAfter }: Phrase): Clause {
  if (words.length === 1) {
    const [word = ''] = words;
    return wordLike(word, isOpenBefore, isOpenAfter) ?? { term: { [fields.text]: { value: word } } };
  }
  const clauses = words.map((word, index) => {
    const like = wordLike(word, isOpenBefore && index === 0, isOpenAfter && index === words.length - 1);
    return like === undefined ? { span_term: { [fields.text]: { value: word } } } : { span_multi: { match: like } };
  });
  return { span_near: { clauses, slop: 0, in_order: true } };
}

function visibleIn(timeField: string, { visible }: Part): Clause[] {
  if (visible === undefined) return [];
  const { always, later } = visible;
  return anyOf([
    ...oneOf(fields.namespace, always),
    ...later.map(({ names, from }) => ({
      bool: { filter: [...oneOf(fields.namespace, names), between(timeField, from)] },
    })),
  ]);
}

export interface SearchQueryParts {
  readonly selection: Selection;
  readonly part: Part;
  /** Phrase of each keyword. */
  readonly phrases: readonly Phrase[];
  readonly timeField: string;
  /** IDs of the documents that are later than the end, but in the same millisecond. */
  readonly excluded: readonly string[];
}

export function queryOf({ selection, part, phrases, timeField, excluded }: SearchQueryParts): Clause {
  const { keywords } = selection;
  const named = (field: string, all: readonly string[]): Clause[] => anyOf(matching(field, all.map(containing)));
  const last = between(timeField, part.end, part.end);
  return {
    bool: {
      filter: [
        between(timeField, part.start, part.end),
        ...visibleIn(timeField, part),
        ...oneOf(fields.pod, selection.pods),
        ...oneOf(fields.container, selection.containers),
        ...podsOf(selection.workloads),
        ...named(fields.namespace, keywords.namespace),
        ...podsOf(keywords.workload),
        ...named(fields.pod, keywords.pod),
        ...named(fields.container, keywords.container),
        ...anyOf(phrases.map(phrase)),
      ],
      must_not: excluded.length === 0 ? [] : [{ bool: { filter: [last, { ids: { values: excluded } }] } }],
    },
  };
}

const day = 86_400_000;
/**
 * Maximum indices that a request names, because the length of its path is limited. More indices are selected by a
 * pattern.
 */
const maxDays = 33;

/**
 * Returns the indices that may contain records of the time range. Adds a day before and after the range, because
 * shippers may use another time zone.
 */
export function indicesOf(prefix: string, { start, end }: Part): string[] {
  const first = start === undefined ? -Infinity : Math.floor(start / day) - 1;
  const last = Math.floor(end / day) + 1;
  if (last - first + 1 > maxDays) return [`${prefix}-*`];
  return Array.from({ length: last - first + 1 }, (_, index) => {
    const date = new Date((last - index) * day).toISOString().slice(0, 10);
    return `${prefix}-${date.replaceAll('-', '.')}`;
  });
}
