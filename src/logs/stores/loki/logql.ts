/** A selection in Loki's query language. */
import type { LogStoreSettings } from '../../../config/log-stores.ts';
import type { Selection, WorkloadPods } from '../log-store.ts';
import type { Part } from '../remote/parts.ts';

/** The labels of a stream that name a container. */
export type Labels = LogStoreSettings<'loki'>['labels'];

export interface LogQLQuery {
  /** What the labels of a stream must be, without braces; never nothing, which Loki refuses. */
  readonly matchers: readonly string[];
  /** What is done with the lines of these streams; those that come through are meant. */
  readonly stages: readonly string[];
}

/** Labels that a query makes for itself. */
const own = { second: 'platform_second', nanosecond: 'platform_nanosecond', text: 'platform_text' };

/** What JSON and Go write alike. */
const quoted = (text: string): string => JSON.stringify(text);

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

const equals = (label: string, value: string): string => `${label}=${quoted(value)}`;

/** This character in either case, where each of them has one of its own in the other. */
function anyCase(character: string): string {
  const small = character.toLowerCase();
  const both = [character, small, character.toUpperCase()].filter((one) => one.toLowerCase() === small);
  const single = [...new Set(both)].filter((one) => Array.from(one).length === 1);
  return single.length === 1 ? escaped(character) : `[${single.join('')}]`;
}

/** In whatever case. What Loki makes of `(?i)` does not even find some letters beyond ASCII themselves. */
const folded = (keyword: string): string =>
  /^[\0-\x7f]*$/.test(keyword) ? `(?i:${escaped(keyword)})` : Array.from(keyword, anyCase).join('');

/** One of these, as a whole. */
const oneOf = (label: string, values: readonly string[]): string[] => {
  if (values.length < 2) return values.map((value) => equals(label, value));
  return [`${label}=~${quoted(values.map(escaped).join('|'))}`];
};

const noneOf = (label: string, values: readonly string[]): string =>
  `${label}!~${quoted(values.map(escaped).join('|'))}`;

/** One of these is contained. */
const containing = (label: string, keywords: readonly string[]): string[] =>
  keywords.length === 0 ? [] : [`${label}=~${quoted(`.*(?:${keywords.map(folded).join('|')}).*`)}`];

/** As its pods are called, whoever else has such a name. */
const patternOf = ({ pattern, alsoPods }: WorkloadPods): string => [pattern, ...alsoPods.map(escaped)].join('|');

const podsOf = (label: string, workloads: readonly WorkloadPods[]): string[] =>
  workloads.length === 0 ? [] : [`${label}=~${quoted(workloads.map(patternOf).join('|'))}`];

/** Without the pods of others; undefined where there are none. */
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

/** Of lines that are JSON, the text. What is none stays as it is. */
const textStages = (field: string): readonly string[] => [
  `| json ${own.text}=${quoted(`[${quoted(field)}]`)}`,
  `| line_format ${quoted(`{{if .${own.text}}}{{.${own.text}}}{{else}}{{__line__}}{{end}}`)}`,
  // A line that is no JSON is none the less counted.
  `| drop ${own.text},__error__,__error_details__`,
];

/** A selector knows no times, so the namespaces that begin to be visible later are looked at record by record. */
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

export function questionOf(
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

/** The same of these containers alone. */
export interface QueryShare {
  readonly namespaces: readonly string[];
  /** Undefined: all of these namespaces. */
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

/** What was written at the beginning of this second, to the nanosecond. */
export const atSecond = ({ matchers, stages }: LogQLQuery, second: number): LogQLQuery => ({
  matchers,
  stages: [
    ...stages,
    `| label_format ${own.nanosecond}=${quoted('{{__timestamp__ | unixEpochNanos}}')}`,
    `| ${equals(own.nanosecond, `${second}000000000`)}`,
  ],
});

export const selectorOf = ({ matchers }: LogQLQuery): string => `{${matchers.join(',')}}`;

/** The records. */
export const linesOf = (question: LogQLQuery): string => [selectorOf(question), ...question.stages].join(' ');

/** Their number in so much time, in whole seconds, or what Loki takes for a duration. */
export const countOf = (question: LogQLQuery, range: string): string =>
  `sum(count_over_time(${linesOf(question)} [${range}]))`;

export const countByContainer = (question: LogQLQuery, range: string, { namespace, pod, container }: Labels): string =>
  `sum by (${namespace},${pod},${container}) (count_over_time(${linesOf(question)} [${range}]))`;

/** What two of the series of `countByEdge` are told apart by. */
export const edge = 'platform_edge';

/** Apart from the others, those whose time is a multiple of so many seconds. */
export const countByEdge = ({ matchers, stages }: LogQLQuery, seconds: number): string => {
  const isEdge = `{{eq (mod (__timestamp__ | unixEpochNanos | int) ${seconds}000000000) 0}}`;
  return `sum by (${edge}) (count_over_time(${linesOf({ matchers, stages: [...stages, `| label_format ${edge}=${quoted(isEdge)}`] })} [${seconds}s]))`;
};
