/**
 * Splits a selection into several queries. A query can contain hundreds of namespaces whose logs are visible from
 * different seconds on, or thousands of namespaces whose logs are visible from the same second on. Parts are
 * consecutive time spans, or disjoint sets of namespaces.
 */
import type { TimeOrder, Selection } from '../log-store.ts';

/** Namespaces that are visible from the same time on. */
export interface Since {
  readonly names: readonly string[];
  /** Milliseconds since the epoch. */
  readonly from: number;
}

export interface Part {
  /** Milliseconds since the epoch, both inclusive. */
  readonly start: number | undefined;
  readonly end: number;
  /** Namespaces; undefined for all namespaces. */
  readonly visible:
    | undefined
    | {
        /** Namespaces that are visible in the whole span. */
        readonly always: readonly string[];
        /** Namespaces that become visible within the span. */
        readonly later: readonly Since[];
      };
}

/** Maximum clauses of a query. Lucene allows 1,024. A group of namespaces (`Since`) needs up to four clauses. */
const maxClauses = 1_000;
const clausesPerGroup = 4;
const [minGroups, maxGroups] = [20, 200];

/**
 * Returns the maximum number of groups in `later` per query. The number depends on the clauses that the other
 * conditions need.
 */
function maxLaterGroups({ workloads, keywords }: Selection): number {
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
  return Math.min(maxGroups, Math.max(minGroups, Math.floor((maxClauses - others) / clausesPerGroup)));
}

/** Groups the namespaces by the second from which their logs are visible, in ascending order. */
function bySince({ namespaces = new Map<string, number>(), end }: Selection): Since[] {
  const names = new Map<number, string[]>();
  for (const [name, since] of namespaces) {
    if (since > end) continue;
    const same = names.get(since);
    if (same === undefined) names.set(since, [name]);
    else same.push(name);
  }
  return [...names]
    .map(([since, nameGroup]) => ({ names: nameGroup, from: since * 1_000 }))
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

/** Returns consecutive time spans, the oldest first; empty if nothing is visible. */
export function spansOf(selection: Selection): Part[] {
  const bounds = boundsOf(selection);
  if (selection.namespaces === undefined) return [{ ...bounds, visible: undefined }];
  const groups = bySince(selection);
  const max = maxLaterGroups(selection);
  const parts: Part[] = [];
  let { start } = bounds;
  let reached = groups.findIndex((group) => !isAlways(start)(group));
  if (reached === -1) reached = groups.length;
  do {
    const next = groups[reached + max];
    const visible = { always: namesOf(groups.slice(0, reached)), later: groups.slice(reached, reached + max) };
    parts.push({
      start: start ?? visible.later[0]?.from,
      end: next === undefined ? bounds.end : next.from - 1,
      visible,
    });
    start = next?.from;
    reached += max;
  } while (reached < groups.length);
  return groups.length === 0 ? [] : parts;
}

/** Returns parts of the whole time range with disjoint namespaces; empty if nothing is visible. */
export function sharesOf(selection: Selection): Part[] {
  const bounds = boundsOf(selection);
  if (selection.namespaces === undefined) return [{ ...bounds, visible: undefined }];
  const groups = bySince(selection);
  const max = maxLaterGroups(selection);
  const always = namesOf(groups.filter(isAlways(bounds.start)));
  const later = groups.filter((group) => !isAlways(bounds.start)(group));
  const parts: Part[] = [];
  for (let at = 0; at < later.length || (at === 0 && always.length > 0); at += max)
    parts.push({ ...bounds, visible: { always: at === 0 ? always : [], later: later.slice(at, at + max) } });
  return parts;
}

/** Returns the parts in this order. `parts` lists the oldest part first. */
export const inOrder = <T>(parts: readonly T[], order: TimeOrder): readonly T[] =>
  order === 'asc' ? parts : parts.toReversed();
