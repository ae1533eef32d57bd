/** Which pods a query means by its workloads: those that one owns, and those that are gone by their names. */
import { badRequest } from '../../runtime/errors.ts';
import type { RequestContext } from '../../http/route.ts';
import type { WorkloadPods } from '../stores/log-store.ts';
import type { LogQuery } from './query.ts';
import { namedSo, podsOf, podsOfAny, workloadsOf } from './workloads.ts';
import type { Catalogue } from '../../cluster/catalogue/catalogue.ts';
import { visitPods } from '../pod-lister.ts';
import type { VisibleLogs } from './visible.ts';

/** Names beside the pattern of one workload, and of all of them. */
const mostNames = 1_000;
const mostInAll = 10_000;

interface Search {
  readonly workload: string;
  readonly pattern: string;
  readonly isNamedSo: (pod: string) => boolean;
  readonly owns: (workloads: readonly string[]) => boolean;
  /** Pods that it owns and that are named so. */
  readonly ownPods: Set<string>;
  readonly alsoPods: Set<string>;
  readonly notPods: Set<string>;
}

const searchOf = (workload: string, pattern: string, owns: Search['owns']): Search => ({
  workload,
  pattern,
  isNamedSo: namedSo(pattern),
  owns,
  ownPods: new Set(),
  alsoPods: new Set(),
  notPods: new Set(),
});

function found({ workload, pattern, ownPods, alsoPods, notPods: others }: Search): WorkloadPods {
  // Another namespace may have a pod of others by the name of one of its own.
  const notPods = new Set([...others].filter((name) => !ownPods.has(name)));
  if (alsoPods.size > mostNames || notPods.size > mostNames)
    throw badRequest(`workload_query: "${workload}" means too many pods: say more of the name, or name namespaces`);
  return { workload, pattern, alsoPods: [...alsoPods], notPods: [...notPods] };
}

/** Throws 400 for a keyword that is in too many names. */
export async function workloadPods(
  catalogue: Pick<Catalogue, 'find' | 'use'>,
  context: Pick<RequestContext, 'signal'>,
  { workloads, workload_query: keywords }: Pick<LogQuery, 'workloads' | 'workload_query'>,
  visible: VisibleLogs,
): Promise<{ readonly named: readonly WorkloadPods[]; readonly searched: readonly WorkloadPods[] }> {
  const named = workloads.map((name) => searchOf(name, podsOf(name), (owners) => owners.includes(name)));
  const searched = keywords.map((word) => {
    const lower = word.toLowerCase();
    return searchOf(lower, podsOfAny(lower), (owners) => owners.some((owner) => owner.includes(lower)));
  });
  const all = [...named, ...searched];
  if (all.length === 0) return { named: [], searched: [] };
  await visitPods(catalogue, context, (object) => {
    if (visible?.has(object.namespace) === false) return;
    const owners = workloadsOf(object);
    for (const { isNamedSo, owns, ownPods, alsoPods, notPods } of all) {
      const isOwned = owns(owners);
      if (isNamedSo(object.name)) (isOwned ? ownPods : notPods).add(object.name);
      else if (isOwned) alsoPods.add(object.name);
    }
  });
  const pods = { named: named.map(found), searched: searched.map(found) };
  const names = [...pods.named, ...pods.searched].reduce(
    (sum, { alsoPods, notPods }) => sum + alsoPods.length + notPods.length,
    0,
  );
  if (names > mostInAll)
    throw badRequest('workload_query: all of these together mean too many pods: name fewer workloads, or namespaces');
  return pods;
}
