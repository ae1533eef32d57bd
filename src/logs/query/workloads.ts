/**
 * By which names the pods of a workload go, so that they are found when nobody knows any more whose they were. A name that is generated is
 * cut to 58 characters before five are put behind it (k8s.io/apiserver pkg/storage/names); a ReplicaSet's ends with a hash of up to ten
 * (k8s.io/kubernetes pkg/controller ComputeHash); the Job of a CronJob's with the minute it was for.
 */
import type { WorkloadPods } from '../stores/log-store.ts';

const longestBase = 58;
const random = '[a-z0-9]{5}';
/** k8s.io/apimachinery pkg/util/rand: letters and digits that make no words. */
const hashed = '[bcdfghjklmnpqrstvwxz2456789]';
const longestHash = 10;
/** Of a CronJob since 2001, and the index of an indexed Job. */
const longestNumber = 10;

/** Between the workload's name and the end, where the base has so many characters left: `-`, what is added, `-`, five at random. */
function generated(name: string, added: string, most: number): string[] {
  const left = longestBase - name.length - 1;
  if (left < 1) return [];
  const whole = Math.min(most, left - 1);
  return [
    ...(whole < 1 ? [] : [`-${added}{1,${whole}}-${random}`]),
    // Cut before the second hyphen, or within what is added.
    ...(left > most ? [] : [`-${added}{${left}}${random}`]),
  ];
}

const anything = '[-a-z0-9.]*';

const literal = (name: string): string => name.replaceAll('.', '[.]');

/** What the names of its pods match, of a Deployment, StatefulSet, DaemonSet, Job or CronJob of that name. */
export function podsOf(name: string): string {
  if (name.length >= longestBase) {
    const cut = literal(name.slice(0, longestBase));
    return `${cut}${random}|${literal(name)}-[0-9]+`;
  }
  const endings = [
    ...generated(name, hashed, longestHash),
    ...generated(name, '[0-9]', longestNumber),
    `-${random}`,
    '-[0-9]+',
  ];
  return endings.map((ending) => `${literal(name)}${ending}`).join('|');
}

/** The same of all workloads whose names contain this. A hash that contains it is taken for a part of the name, where nobody knows better. */
export function podsOfAny(keyword: string): string {
  const within = `${anything}${literal(keyword.toLowerCase())}${anything}`;
  return `${within}-${random}|${within}-[0-9]+`;
}

/** How the names end of all pods that `podsOfAny` means. */
const ending = /-(?:[a-z0-9]{5}|[0-9]+)$/;

/**
 * Whether a name matches as a whole. What may begin with anything is tried only on names that end as they must: on others it would be tried
 * at each place of theirs, and at each further one again.
 */
export function namedSo(pattern: string): (pod: string) => boolean {
  const whole = new RegExp(`^(?:${pattern})$`);
  const isWide = pattern.startsWith(anything);
  return (pod) => (!isWide || ending.test(pod)) && whole.test(pod);
}

/** Whether a pod is one of these, by its name alone. */
export function matcherOf({ pattern, alsoPods, notPods }: WorkloadPods): (pod: string) => boolean {
  const matches = namedSo(pattern);
  const also = new Set(alsoPods);
  const not = new Set(notPods);
  return (pod) => also.has(pod) || (matches(pod) && !not.has(pod));
}

interface Owned {
  readonly labels: Readonly<Record<string, string>>;
  readonly ownerReferences: readonly { readonly kind: string; readonly name: string; readonly controller?: boolean }[];
}

/** The names of the workloads that a pod belongs to, by its owner: none, one, or a Job and the CronJob that made it. */
export function workloadsOf({ labels, ownerReferences }: Owned): readonly string[] {
  const owner = ownerReferences.find(({ controller }) => controller === true) ?? ownerReferences[0];
  if (owner === undefined || owner.kind === 'Node') return [];
  const { kind, name } = owner;
  // Only the controller of Deployments (and those made after it) labels by the hash that the ReplicaSet's name ends with.
  const hash = kind === 'ReplicaSet' ? labels['pod-template-hash'] : undefined;
  if (hash !== undefined && name.endsWith(`-${hash}`)) return [name.slice(0, -hash.length - 1)];
  const cronJob = kind === 'Job' ? /^(.+)-\d{7,10}$/.exec(name)?.[1] : undefined;
  return cronJob === undefined ? [name] : [name, cronJob];
}
