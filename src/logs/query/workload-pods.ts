/** Resolves the workloads of a query to pods: existing pods by their owner, deleted pods by their name. */
import { badRequest } from '../../runtime/errors.ts';
import type { RequestContext } from '../../http/route.ts';
import type { WorkloadPods } from '../stores/log-store.ts';
import type { LogQuery } from './query.ts';
import { matcherOfPattern, podPatternContaining, podPatternOf, workloadsOf } from './workloads.ts';
import type { Catalogue } from '../../cluster/catalogue/catalogue.ts';
import { visitPods } from '../pod-lister.ts';
import type { VisibleLogs } from './visible.ts';

/** Maximum pod names in addition to the patterns, for each workload and for all workloads together. */
const maxNames = 1_000;
const maxNamesInAll = 10_000;

interface Search {
  readonly workload: string;
  readonly pattern: string;
  readonly matchesPattern: (pod: string) => boolean;
  readonly owns: (workloads: readonly string[]) => boolean;
  /** Pods that the workload owns and whose names match the pattern. */
  readonly ownPods: Set<string>;
  readonly alsoPods: Set<string>;
  readonly notPods: Set<string>;
}

const searchOf = (workload: string, pattern: string, owns: Search['owns']): Search => ({
  workload,
  pattern,
  matchesPattern: matcherOfPattern(pattern),
  owns,
  ownPods: new Set(),
  alsoPods: new Set(),
  notPods: new Set(),
});

function found({ workload, pattern, ownPods, alsoPods, notPods: others }: Search): WorkloadPods {
  // In another namespace, a pod with the name of a pod of this workload may belong to another workload.
  const notPods = new Set([...others].filter((name) => !ownPods.has(name)));
  if (alsoPods.size > maxNames || notPods.size > maxNames)
    throw badRequest(
      `workload_query: "${workload}" matches too many pods: use a longer keyword, or specify namespaces`,
    );
  return { workload, pattern, alsoPods: [...alsoPods], notPods: [...notPods] };
}

/** Throws 400 for a keyword that matches too many pods. */
export async function workloadPods(
  catalogue: Pick<Catalogue, 'find' | 'acquire'>,
  context: Pick<RequestContext, 'signal'>,
  { workloads, workload_query: keywords }: Pick<LogQuery, 'workloads' | 'workload_query'>,
  visible: VisibleLogs,
): Promise<{ readonly named: readonly WorkloadPods[]; readonly searched: readonly WorkloadPods[] }> {
  const named = workloads.map((name) => searchOf(name, podPatternOf(name), (owners) => owners.includes(name)));
  const searched = keywords.map((word) => {
    const lower = word.toLowerCase();
    return searchOf(lower, podPatternContaining(lower), (owners) => owners.some((owner) => owner.includes(lower)));
  });
  const all = [...named, ...searched];
  if (all.length === 0) return { named: [], searched: [] };
  await visitPods(catalogue, context, (object) => {
    if (visible?.has(object.namespace) === false) return;
    const owners = workloadsOf(object);
    for (const { matchesPattern, owns, ownPods, alsoPods, notPods } of all) {
      const isOwned = owns(owners);
      if (matchesPattern(object.name)) (isOwned ? ownPods : notPods).add(object.name);
      else if (isOwned) alsoPods.add(object.name);
    }
  });
  const pods = { named: named.map(found), searched: searched.map(found) };
  const names = [...pods.named, ...pods.searched].reduce(
    (sum, { alsoPods, notPods }) => sum + alsoPods.length + notPods.length,
    0,
  );
  if (names > maxNamesInAll)
    throw badRequest(
      'workload_query: the keywords match too many pods: specify fewer workloads, or specify namespaces',
    );
  return pods;
}
