/** Translates a selection to Loki's query language. */
import type { LogStoreSettings } from '../../../config/log-stores.ts';
import type { Selection, WorkloadPods } from '../log-store.ts';
import type { Part } from '../remote/parts.ts';

/** Names of the stream labels that identify a container. */
export type Labels = LogStoreSettings<'loki'>['labels'];

export interface LogQLQuery {
  /**
   * Conditions on the labels of a stream, without braces. The list is never empty, because Loki rejects an empty
   * selector.
   */
  readonly matchers: readonly string[];
  /** Pipeline that filters the lines of these streams. */
  readonly stages: readonly string[];
}

/** Labels that queries create. */
const own = { second: 'platform_second', nanosecond: 'platform_nanosecond', text: 'platform_text' };

/** Quotes a string in the common syntax of JSON and Go. */
const quoted = (text: string): string => JSON.stringify(text);

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

const equals = (label: string, value: string): string => `${label}=${quoted(value)}`;

/**
 * Returns a pattern that matches the upper-case and lower-case form of a character, if each form is a single character.
 */
function anyCase(character: string): string {
  const small = character.toLowerCase();
  const both = [character, small, character.toUpperCase()].filter((one) => one.toLowerCase() === small);
  const single = [...new Set(both)].filter((one) => Array.from(one).length === 1);
  return single.length === 1 ? escaped(character) : `[${single.join('')}]`;
}

/**
 * Returns a case-insensitive pattern. `(?i)` is not used, because in Loki it fails to match some non-ASCII letters even
 * in the same case.
 */
const folded = (keyword: string): string =>
  /^[\0-\x7f]*$/.test(keyword) ? `(?i:${escaped(keyword)})` : Array.from(keyword, anyCase).join('');

/** Returns a matcher for labels that have one of the values; an empty list if there are no values. */
const oneOf = (label: string, values: readonly string[]): string[] => {
  if (values.length < 2) return values.map((value) => equals(label, value));
  return [`${label}=~${quoted(values.map(escaped).join('|'))}`];
};

const noneOf = (label: string, values: readonly string[]): string =>
  `${label}!~${quoted(values.map(escaped).join('|'))}`;

/** Returns a matcher for labels that contain one of the keywords; an empty list if there are no keywords. */
const containing = (label: string, keywords: readonly string[]): string[] =>
  keywords.length === 0 ? [] : [`${label}=~${quoted(`.*(?:${keywords.map(folded).join('|')}).*`)}`];

/** Returns a pattern for all pods of a workload. The pattern may also match pods of other workloads. */
const patternOf = ({ pattern, alsoPods }: WorkloadPods): string => [pattern, ...alsoPods.map(escaped)].join('|');

const podsOf = (label: string, workloads: readonly WorkloadPods[]): string[] =>
  workloads.length === 0 ? [] : [`${label}=~${quoted(workloads.map(patternOf).join('|'))}`];

/**
 * Returns a matcher that excludes the pods of other workloads that the patterns match; undefined if there are no such
 * pods.
 */
function withoutOthers(label: string, workloads: readonly WorkloadPods[]): string | undefined {
  if (workloads.every(({ notPods }) => notPods.length === 0)) return undefined;
  const each = workloads.map(({ pattern, alsoPods, notPods }) => {
    const named = `${label}=~${quoted(pattern)}`;
    const owned = notPods.length === 0 ? named : `(${named} and ${noneOf(label, notPods)})`;
    return [owned, ...oneOf(label, alsoPods)].join(' or ');
  });
  return each.join(' or ');
}

function matchersOf(
  { pods, containers, workloads, keywords }: Selection,
  { visible }: Part,
  labels: Labels,
): readonly string[] {
  const { namespace, pod, container } = labels;
  const names = visible === undefined ? [] : [...visible.always, ...visible.later.flatMap((group) => group.names)];
  return [
    ...(names.length === 0 ? [`${namespace}=~".+"`] : oneOf(namespace, names)),
    ...oneOf(pod, pods),
    ...oneOf(container, containers),
    ...podsOf(pod, workloads),
    ...podsOf(pod, keywords.workload),
    ...containing(namespace, keywords.namespace),
    ...containing(pod, keywords.pod),
    ...containing(container, keywords.container),
  ];
}

/** Extracts the text of lines that are JSON. Other lines are unchanged. */
const textStages = (field: string): readonly string[] => [
  `| json ${own.text}=${quoted(`[${quoted(field)}]`)}`,
  `| line_format ${quoted(`{{if .${own.text}}}{{.${own.text}}}{{else}}{{__line__}}{{end}}`)}`,
  // Without this stage, lines that are not JSON would not be counted.
  `| drop ${own.text},__error__,__error_details__`,
];

/**
 * Filters records by time for namespaces that become visible within the range, because a selector cannot contain times.
 */
function visibleStages({ visible }: Part, { namespace }: Labels): readonly string[] {
  if (visible === undefined || visible.later.length === 0) return [];
  const { later } = visible;
  const names = later.flatMap((group) => group.names);
  const each = later.map(
    (group) => `(${oneOf(namespace, group.names).join('')} and ${own.second} >= ${group.from / 1_000})`,
  );
  return [
    `| label_format ${own.second}=${quoted('{{__timestamp__ | unixEpoch}}')}`,
    `| ${[noneOf(namespace, names), ...each].join(' or ')}`,
    `| drop ${own.second}`,
  ];
}

export function logQLQueryOf(
  selection: Selection,
  part: Part,
  { labels, textField }: Pick<LogStoreSettings<'loki'>, 'labels' | 'textField'>,
): LogQLQuery {
  const { workloads, keywords } = selection;
  const others = [withoutOthers(labels.pod, workloads), withoutOthers(labels.pod, keywords.workload)];
  return {
    matchers: matchersOf(selection, part, labels),
    stages: [
      ...others.filter((filter) => filter !== undefined).map((filter) => `| ${filter}`),
      ...(textField === undefined ? [] : textStages(textField)),
      ...(keywords.log.length === 0 ? [] : [`|~ ${quoted(keywords.log.map(folded).join('|'))}`]),
      ...visibleStages(part, labels),
    ],
  };
}

/** Containers to which a query is restricted. */
export interface QueryShare {
  readonly namespaces: readonly string[];
  /** Pods; undefined for all pods of the namespaces. */
  readonly pods?: readonly string[];
}

export const shareOf = (
  { matchers, stages }: LogQLQuery,
  { namespaces, pods }: QueryShare,
  labels: Labels,
): LogQLQuery => ({
  matchers: [
    ...matchers,
    ...oneOf(labels.namespace, namespaces),
    ...(pods === undefined ? [] : oneOf(labels.pod, pods)),
  ],
  stages,
});

/** Restricts the query to the first nanosecond of a second. */
export const atSecond = ({ matchers, stages }: LogQLQuery, second: number): LogQLQuery => ({
  matchers,
  stages: [
    ...stages,
    `| label_format ${own.nanosecond}=${quoted('{{__timestamp__ | unixEpochNanos}}')}`,
    `| ${equals(own.nanosecond, `${second}000000000`)}`,
  ],
});

export const selectorOf = ({ matchers }: LogQLQuery): string => `{${matchers.join(',')}}`;

/** Returns a query for the records. */
export const linesOf = (query: LogQLQuery): string => [selectorOf(query), ...query.stages].join(' ');

/** Returns a query for the number of records. `range` is a duration in Loki's syntax. */
export const countOf = (query: LogQLQuery, range: string): string =>
  `sum(count_over_time(${linesOf(query)} [${range}]))`;

export const countByContainer = (query: LogQLQuery, range: string, { namespace, pod, container }: Labels): string =>
  `sum by (${namespace},${pod},${container}) (count_over_time(${linesOf(query)} [${range}]))`;

/** Label that distinguishes the two series of `countByEdge`. */
export const edge = 'platform_edge';

/** Returns a query that counts records per step. Records exactly at a multiple of the step are counted separately. */
export const countByEdge = ({ matchers, stages }: LogQLQuery, seconds: number): string => {
  const isEdge = `{{eq (mod (__timestamp__ | unixEpochNanos | int) ${seconds}000000000) 0}}`;
  return `sum by (${edge}) (count_over_time(${linesOf({ matchers, stages: [...stages, `| label_format ${edge}=${quoted(isEdge)}`] })} [${seconds}s]))`;
};
