/**
 * Groups containers for queries that count by container, because each such query returns at most a few hundred series.
 */
import { sum } from '../remote/paging.ts';
import type { LokiStream } from './client.ts';
import type { Labels, QueryShare } from './logql.ts';

/** Returns a key of the container that does not depend on other labels of the stream. */
export const containerOf = (found: LokiStream['labels'], { namespace, pod, container }: Labels): string =>
  JSON.stringify([found[namespace] ?? '', found[pod] ?? '', found[container] ?? '']);

/** Groups namespaces, or the pods of a large namespace, so that each group has at most `max` containers. */
export function sharesOfContainers(
  known: readonly LokiStream['labels'][],
  labels: Labels,
  max: number,
): readonly QueryShare[] {
  const containers = new Map<string, Map<string, Set<string>>>();
  for (const found of known) {
    const [namespace = '', pod = '', container = ''] = [labels.namespace, labels.pod, labels.container].map(
      (name) => found[name],
    );
    const pods = containers.get(namespace) ?? new Map<string, Set<string>>();
    containers.set(namespace, pods);
    pods.set(pod, (pods.get(pod) ?? new Set()).add(container));
  }
  const sizes = [...containers].map(([name, pods]) => ({
    name,
    pods,
    size: sum([...pods.values()].map(({ size }) => size)),
  }));
  const small = sizes.filter(({ size }) => size <= max);
  const large = sizes.filter(({ size }) => size > max);
  return [
    ...grouped(small, max).map((namespaces) => ({ namespaces })),
    ...large.flatMap(({ name, pods }) =>
      grouped(
        [...pods].map(([pod, all]) => ({ name: pod, size: all.size })),
        max,
      ).map((share) => ({ namespaces: [name], pods: share })),
    ),
  ];
}

/** Groups names so that the sum of the sizes in each group is at most `max`. */
function grouped(all: readonly { readonly name: string; readonly size: number }[], max: number): string[][] {
  const groups: string[][] = [];
  let left = 0;
  for (const { name, size } of all) {
    if (size > left) {
      groups.push([]);
      left = max;
    }
    groups.at(-1)?.push(name);
    left -= size;
  }
  return groups;
}
