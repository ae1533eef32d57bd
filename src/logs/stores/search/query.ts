/** A selection in the query language that Elasticsearch and OpenSearch share. */
import type { Selection, WorkloadPods } from '../log-store.ts';
import type { Part } from '../remote/parts.ts';
import { fields } from './documents.ts';
import type { Phrase } from './words.ts';

export type Clause = Readonly<Record<string, unknown>>;

/** One of these must hold; nothing is asked of an empty list. */
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

/** Characters of a regular expression that an index takes (index.max_regex_length). */
const longestPattern = 1_000;

/** How patterns begin that begin with anything. */
const isOpen = (pattern: string): boolean => /^(?:\.|\[[^\]]*\])\*/.test(pattern);

/**
 * As few clauses as these patterns, each of a whole name, need; NONE: no operators that other languages do not have. Those that begin with
 * anything stay apart: together they would need more states than an index allows.
 */
function matching(field: string, patterns: readonly string[]): Clause[] {
  const joined: string[] = [];
  const pieces = patterns.flatMap((pattern) =>
    pattern.length > longestPattern && !pattern.includes('(') ? pattern.split('|') : [pattern],
  );
  for (const pattern of pieces) {
    const before = joined.at(-1);
    const both = `${before}|${pattern}`;
    if (before === undefined || isOpen(before) || isOpen(pattern) || both.length > longestPattern) joined.push(pattern);
    else joined[joined.length - 1] = both;
  }
  return joined.map((value) => ({ regexp: { [field]: { value, flags: 'NONE' } } }));
}

function anyCase(character: string): string {
  const [small, capital] = [character.toLowerCase(), character.toUpperCase()];
  if (small !== capital && small.length === 1 && capital.length === 1) return `[${small}${capital}]`;
  return /[.?+*|{}[\]()"\\#@&<>~^$]/.test(character) ? `\\${character}` : character;
}

/** `.*[eE][rR][rR].*`; of longer ones than any pattern may be, the small letters that names of Kubernetes have. */
function containing(keyword: string): string {
  const pattern = `.*${Array.from(keyword, anyCase).join('')}.*`;
  return pattern.length <= longestPattern ? pattern : `.*${keyword.toLowerCase().replaceAll('.', '\\.')}.*`;
}

/** The pods of any of them. */
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

/** What means something else in a pattern is itself behind a backslash. */
const literal = (word: string): string => word.replace(/[\\*?]/g, '\\$&');

/** A word of the text that has this one at its beginning, at its end or anywhere, or is it. */
function wordLike(word: string, isOpenBefore: boolean, isOpenAfter: boolean): Clause | undefined {
  if (isOpenBefore) return { wildcard: { [fields.text]: { value: `*${literal(word)}${isOpenAfter ? '*' : ''}` } } };
  return isOpenAfter ? { prefix: { [fields.text]: { value: word } } } : undefined;
}

/** These words beside each other. */
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
  /** Of each keyword of the text. */
  readonly phrases: readonly Phrase[];
  readonly timeField: string;
  /** Documents that are after the end, by less than what the store tells times apart by. */
  readonly not: readonly string[];
}

export function queryOf({ selection, part, phrases, timeField, not }: SearchQueryParts): Clause {
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
      must_not: not.length === 0 ? [] : [{ bool: { filter: [last, { ids: { values: not } }] } }],
    },
  };
}

const day = 86_400_000;
/** More than these are asked for by a pattern: a request has a longest first line. */
const mostDays = 33;

/** The indices that may have records of this time: the days of shippers may be of another zone. */
export function indicesOf(prefix: string, { start, end }: Part): string[] {
  const first = start === undefined ? -Infinity : Math.floor(start / day) - 1;
  const last = Math.floor(end / day) + 1;
  if (last - first + 1 > mostDays) return [`${prefix}-*`];
  return Array.from({ length: last - first + 1 }, (_, index) => {
    const date = new Date((last - index) * day).toISOString().slice(0, 10);
    return `${prefix}-${date.replaceAll('-', '.')}`;
  });
}
