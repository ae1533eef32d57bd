/**
 * Patterns of the pod names of a workload. The patterns find pods whose owner is no longer known. A generated name is
 * cut to 58 characters before five random characters are appended (k8s.io/apiserver pkg/storage/names). The name of a
 * ReplicaSet ends with a hash of up to ten characters (k8s.io/kubernetes pkg/controller ComputeHash), and the name of a
 * CronJob's Job ends with the scheduled minute.
 */
import type { WorkloadPods } from '../stores/log-store.ts';

const maxBaseLength = 58;
const random = '[a-z0-9]{5}';
/** Alphabet of k8s.io/apimachinery pkg/util/rand. Its characters cannot form words. */
const hashed = '[bcdfghjklmnpqrstvwxz2456789]';
const maxHashLength = 10;
/** Maximum digits of the scheduled minute of a CronJob, and of the index of a pod of an indexed Job. */
const maxNumberLength = 10;

/**
 * Returns patterns for the end of a generated name: `-`, up to `max` characters of the pattern `added`, `-` and five
 * random characters. Long names are cut.
 */
function generated(name: string, added: string, max: number): string[] {
  const left = maxBaseLength - name.length - 1;
  if (left < 1) return [];
  const whole = Math.min(max, left - 1);
  return [
    ...(whole < 1 ? [] : [`-${added}{1,${whole}}-${random}`]),
    // The name may be cut before the second hyphen, or within the added characters.
    ...(left > max ? [] : [`-${added}{${left}}${random}`]),
  ];
}

const anything = '[-a-z0-9.]*';

const literal = (name: string): string => name.replaceAll('.', '[.]');

/** Returns the pattern of the pod names of a Deployment, StatefulSet, DaemonSet, Job or CronJob with this name. */
export function podPatternOf(name: string): string {
  if (name.length >= maxBaseLength) {
    const cut = literal(name.slice(0, maxBaseLength));
    return `${cut}${random}|${literal(name)}-[0-9]+`;
  }
  const endings = [
    ...generated(name, hashed, maxHashLength),
    ...generated(name, '[0-9]', maxNumberLength),
    `-${random}`,
    '-[0-9]+',
  ];
  return endings.map((ending) => `${literal(name)}${ending}`).join('|');
}

/**
 * Returns the pattern of the pod names of all workloads whose names contain the keyword. Names whose hash contains the
 * keyword match too.
 */
export function podPatternContaining(keyword: string): string {
  const within = `${anything}${literal(keyword.toLowerCase())}${anything}`;
  return `${within}-${random}|${within}-[0-9]+`;
}

/** End of all pod names that `podPatternContaining` matches. */
const ending = /-(?:[a-z0-9]{5}|[0-9]+)$/;

/**
 * Returns a function that matches whole pod names. A pattern that starts with a wildcard is tried only on names with
 * the right ending, because it would backtrack quadratically on other names.
 */
export function matcherOfPattern(pattern: string): (pod: string) => boolean {
  const whole = new RegExp(`^(?:${pattern})$`);
  const isWide = pattern.startsWith(anything);
  return (pod) => (!isWide || ending.test(pod)) && whole.test(pod);
}

/** Returns a function that checks whether a pod name belongs to the workload. */
export function matcherOf({ pattern, alsoPods, notPods }: WorkloadPods): (pod: string) => boolean {
  const matches = matcherOfPattern(pattern);
  const also = new Set(alsoPods);
  const not = new Set(notPods);
  return (pod) => also.has(pod) || (matches(pod) && !not.has(pod));
}

interface Owned {
  readonly labels: Readonly<Record<string, string>>;
  readonly ownerReferences: readonly { readonly kind: string; readonly name: string; readonly controller?: boolean }[];
}

/** Returns the workloads that own the pod: none, one, or a Job and the CronJob that created it. */
export function workloadsOf({ labels, ownerReferences }: Owned): readonly string[] {
  const owner = ownerReferences.find(({ controller }) => controller === true) ?? ownerReferences[0];
  if (owner === undefined || owner.kind === 'Node') return [];
  const { kind, name } = owner;
  // Only the Deployment controller, and controllers derived from it, set this label to the hash at the end of the
  // ReplicaSet's name.
  const hash = kind === 'ReplicaSet' ? labels['pod-template-hash'] : undefined;
  if (hash !== undefined && name.endsWith(`-${hash}`)) return [name.slice(0, -hash.length - 1)];
  const cronJob = kind === 'Job' ? /^(.+)-\d{7,10}$/.exec(name)?.[1] : undefined;
  return cronJob === undefined ? [name] : [name, cronJob];
}
