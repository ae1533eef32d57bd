/**
 * A query can name some hundreds of namespaces each from a time of its own on, but thousands only of one time. So a selection is cut: into
 * spans of time that follow each other, or into namespaces that have nothing in common.
 */
import type { TimeOrder, Selection } from '../log-store.ts';

export interface Since {
  readonly names: readonly string[];
  /** Milliseconds. */
  readonly from: number;
}

export interface Part {
  /** Milliseconds, both inclusive. */
  readonly start: number | undefined;
  readonly end: number;
  /** Undefined: all namespaces. */
  readonly visible:
    | undefined
    | {
        /** In the whole span. */
        readonly always: readonly string[];
        readonly later: readonly Since[];
      };
}

/** Lucene takes 1,024 clauses of everything together, and counts up to four for each time. */
const mostClauses = 1_000;
const perTime = 4;
const [leastTimes, mostTimes] = [20, 200];

/** Of namespaces that begin to be visible in between, as many as there is room for beside what else is asked. */
function timesOf({ workloads, keywords }: Selection): number {
  const words = keywords.log.reduce((sum, keyword) => sum + keyword.split(/[^\w.]+/).length, 0);
  const names = [
    keywords.namespace,
    keywords.pod,
    keywords.container,
    workloads,
    workloads,
    keywords.workload,
    keywords.workload,
  ];
  const others = names.reduce((sum, { length }) => sum + length, words);
  return Math.min(mostTimes, Math.max(leastTimes, Math.floor((mostClauses - others) / perTime)));
}

/** Those that may be seen at all, by when each begins to be. */
function bySince({ namespaces = new Map<string, number>(), end }: Selection): Since[] {
  const names = new Map<number, string[]>();
  for (const [name, since] of namespaces) {
    if (since > end) continue;
    const same = names.get(since);
    if (same === undefined) names.set(since, [name]);
    else same.push(name);
  }
  return [...names]
    .map(([since, those]) => ({ names: those, from: since * 1_000 }))
    .toSorted((a, b) => a.from - b.from);
}

const isAlways =
  (start: number | undefined) =>
  ({ from }: Since): boolean =>
    start !== undefined && from <= start;

const namesOf = (groups: readonly Since[]): string[] => groups.flatMap(({ names }) => names);

const boundsOf = ({ start, end }: Selection) => ({
  start: start === undefined ? undefined : start * 1_000,
  end: end * 1_000,
});

/** One after the other from the oldest on; none if there is nothing to be seen. */
export function spansOf(selection: Selection): Part[] {
  const bounds = boundsOf(selection);
  if (selection.namespaces === undefined) return [{ ...bounds, visible: undefined }];
  const groups = bySince(selection);
  const most = timesOf(selection);
  const parts: Part[] = [];
  let { start } = bounds;
  let reached = groups.findIndex((group) => !isAlways(start)(group));
  if (reached === -1) reached = groups.length;
  do {
    const next = groups[reached + most];
    const visible = { always: namesOf(groups.slice(0, reached)), later: groups.slice(reached, reached + most) };
    parts.push({
      start: start ?? visible.later[0]?.from,
      end: next === undefined ? bounds.end : next.from - 1,
      visible,
    });
    start = next?.from;
    reached += most;
  } while (reached < groups.length);
  return groups.length === 0 ? [] : parts;
}

/** Of the whole time, each with other namespaces; none if there is nothing to be seen. */
export function sharesOf(selection: Selection): Part[] {
  const bounds = boundsOf(selection);
  if (selection.namespaces === undefined) return [{ ...bounds, visible: undefined }];
  const groups = bySince(selection);
  const most = timesOf(selection);
  const always = namesOf(groups.filter(isAlways(bounds.start)));
  const later = groups.filter((group) => !isAlways(bounds.start)(group));
  const parts: Part[] = [];
  for (let at = 0; at < later.length || (at === 0 && always.length > 0); at += most)
    parts.push({ ...bounds, visible: { always: at === 0 ? always : [], later: later.slice(at, at + most) } });
  return parts;
}

/** What is there in the order of time, in this order. */
export const inOrder = <T>(parts: readonly T[], order: TimeOrder): readonly T[] =>
  order === 'asc' ? parts : parts.toReversed();
