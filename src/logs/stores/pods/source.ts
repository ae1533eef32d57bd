/** Selects the container logs to read from the existing pods. */
import type { Reasons, Selection } from '../log-store.ts';
import { matcherOf } from '../../query/workloads.ts';
import { compareTexts } from './entry.ts';

export interface LogContainer {
  readonly name: string;
  readonly restarts: number;
  /** True if the log from before the last restart is available too. */
  readonly hasPrevious: boolean;
  /** True if the container has terminated. */
  readonly isOver: boolean;
}

export interface LogPod {
  readonly namespace: string;
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly containers: () => readonly LogContainer[];
}

/** Lists the pods of the cluster for which `wanted` returns true. */
export type ListPods = (
  wanted: (namespace: string, pod: string) => boolean,
  signal: AbortSignal,
) => Promise<readonly LogPod[]>;

/** One log to read. */
export interface ContainerLog {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** Creation time of the pod in milliseconds since the epoch. */
  readonly createdAt: number;
  readonly restarts: number;
  readonly previous: boolean;
  readonly isOver: boolean;
}

/**
 * Returns whether the query is limited to certain pods, by name or otherwise. The limit on containers is higher for
 * such queries.
 */
export const isNarrow = ({ namespaces, workloads, pods, keywords }: Selection): boolean =>
  namespaces !== undefined ||
  [workloads, pods, keywords.namespace, keywords.workload, keywords.pod].some(({ length }) => length > 0);

/** Converts to lower case. A final sigma becomes a plain sigma, because a keyword may end within a word. */
function folded(text: string): string {
  const small = text.toLowerCase();
  return small.includes('ς') ? small.replaceAll('ς', 'σ') : small;
}

const containsOneOf = (words: readonly string[]): ((text: string) => boolean) => {
  const wanted = words.map(folded);
  return (text) => {
    if (wanted.length === 0) return true;
    const small = folded(text);
    return wanted.some((word) => small.includes(word));
  };
};

const isOneOf = (names: readonly string[]): ((name: string) => boolean) => {
  const set = new Set(names);
  return (name) => set.size === 0 || set.has(name);
};

function podsWanted({ namespaces, workloads, pods, keywords }: Selection): (namespace: string, pod: string) => boolean {
  const named = isOneOf(pods);
  const inNamespace = containsOneOf(keywords.namespace);
  const inPod = containsOneOf(keywords.pod);
  const groups = [workloads, keywords.workload].filter(({ length }) => length > 0).map((all) => all.map(matcherOf));
  return (namespace, pod) =>
    namespaces?.has(namespace) !== false &&
    named(pod) &&
    inNamespace(namespace) &&
    inPod(pod) &&
    groups.every((matchers) => matchers.some((matches) => matches(pod)));
}

/** Returns a case-insensitive filter for the keywords in the text; undefined if there are none. */
export const textWanted = ({ keywords: { log } }: Selection): ((text: string) => boolean) | undefined =>
  log.length === 0 ? undefined : containsOneOf(log);

/** Returns the logs of at most `max` containers, those of the newest pods first. */
export async function sourcesOf(
  list: ListPods,
  selection: Selection,
  max: number,
  reasons: Reasons,
  signal: AbortSignal,
): Promise<readonly ContainerLog[]> {
  const found = await list(podsWanted(selection), signal);
  const named = isOneOf(selection.containers);
  const inContainer = containsOneOf(selection.keywords.container);
  const sources: ContainerLog[] = [];
  let taken = 0;
  const newestFirst = found.toSorted(
    (a, b) => b.createdAt - a.createdAt || compareTexts(a.namespace, b.namespace) || compareTexts(a.name, b.name),
  );
  for (const { namespace, name: pod, createdAt, containers } of newestFirst) {
    for (const { name: container, restarts, hasPrevious, isOver } of containers()) {
      if (!named(container) || !inContainer(container)) continue;
      taken += 1;
      if (taken > max) break;
      const one = { namespace, pod, container, createdAt, restarts, isOver };
      if (hasPrevious) sources.push({ ...one, previous: true });
      sources.push({ ...one, previous: false });
    }
    if (taken > max) break;
  }
  if (taken > max)
    reasons.add(
      isNarrow(selection)
        ? `only the newest ${max} containers were read: select fewer pods`
        : `only the newest ${max} containers were read: filter by namespace, pod or workload`,
    );
  const present = new Set(found.map(({ name }) => name));
  const gone = selection.pods.filter((name) => !present.has(name));
  if (gone.length > 0)
    reasons.add(
      `${gone.length === 1 ? `pod ${gone[0]} does not exist` : `${gone.length} of these pods do not exist`}; logs of deleted pods are not kept`,
    );
  return sources;
}
