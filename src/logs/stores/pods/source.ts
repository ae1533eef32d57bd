/** Which containers' logs are read: those of pods that live now. */
import type { Reasons, Selection } from '../log-store.ts';
import { matcherOf } from '../../query/workloads.ts';
import { compareTexts } from './entry.ts';

export interface LogContainer {
  readonly name: string;
  readonly restarts: number;
  /** The log of the container before its last restart can be had too. */
  readonly hasPrevious: boolean;
  /** It will write no more. */
  readonly isOver: boolean;
}

export interface LogPod {
  readonly namespace: string;
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly containers: () => readonly LogContainer[];
}

/** The pods of the cluster for which `wanted` says so. */
export type ListPods = (
  wanted: (namespace: string, pod: string) => boolean,
  signal: AbortSignal,
) => Promise<readonly LogPod[]>;

/** One log to read. */
export interface ContainerLog {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** Of the pod, in milliseconds since the epoch. */
  readonly createdAt: number;
  readonly restarts: number;
  readonly previous: boolean;
  readonly isOver: boolean;
}

/** Whether the caller has said which pods are meant, so that more of them may be read. */
export const isNarrow = ({ namespaces, workloads, pods, keywords }: Selection): boolean =>
  namespaces !== undefined ||
  [workloads, pods, keywords.namespace, keywords.workload, keywords.pod].some(({ length }) => length > 0);

/** A small sigma has another form where a word ends, and a keyword may end within one. */
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

/** Whether a text has one of the keywords, in whatever case; undefined where there are none. */
export const textWanted = ({ keywords: { log } }: Selection): ((text: string) => boolean) | undefined =>
  log.length === 0 ? undefined : containsOneOf(log);

/** The newest pods come first; `most` of their containers are taken. */
export async function sourcesOf(
  list: ListPods,
  selection: Selection,
  most: number,
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
      if (taken > most) break;
      const one = { namespace, pod, container, createdAt, restarts, isOver };
      if (hasPrevious) sources.push({ ...one, previous: true });
      sources.push({ ...one, previous: false });
    }
    if (taken > most) break;
  }
  if (taken > most)
    reasons.add(
      isNarrow(selection)
        ? `only the ${most} newest containers were read: name fewer pods`
        : `only the ${most} newest containers were read: name namespaces, pods or workloads`,
    );
  const present = new Set(found.map(({ name }) => name));
  const gone = selection.pods.filter((name) => !present.has(name));
  if (gone.length > 0)
    reasons.add(
      `${gone.length === 1 ? `there is no pod ${gone[0]}` : `${gone.length} of these pods are not there`} now, and logs of pods that are gone are not kept`,
    );
  return sources;
}
