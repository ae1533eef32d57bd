/** Loki counts by container, but tells the counts of a few hundred only: the containers there may be are asked for in shares. */
import { sum } from '../remote/paging.ts';
import type { LokiStream } from './client.ts';
import type { Labels, QueryShare } from './logql.ts';

/** The same for the same container, whatever else its streams have as labels. */
export const containerOf = (found: LokiStream['labels'], { namespace, pod, container }: Labels): string =>
  JSON.stringify([found[namespace] ?? '', found[pod] ?? '', found[container] ?? '']);

/** As many namespaces together as have no more containers than `most`; of one that has more, as many pods. */
export function sharesOfContainers(
  known: readonly LokiStream['labels'][],
  labels: Labels,
  most: number,
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
  const small = sizes.filter(({ size }) => size <= most);
  const large = sizes.filter(({ size }) => size > most);
  return [
    ...together(small, most).map((namespaces) => ({ namespaces })),
    ...large.flatMap(({ name, pods }) =>
      together(
        [...pods].map(([pod, all]) => ({ name: pod, size: all.size })),
        most,
      ).map((share) => ({ namespaces: [name], pods: share })),
    ),
  ];
}

/** The names, so many together that their sizes are no more than `most`. */
function together(all: readonly { readonly name: string; readonly size: number }[], most: number): string[][] {
  const groups: string[][] = [];
  let left = 0;
  for (const { name, size } of all) {
    if (size > left) {
      groups.push([]);
      left = most;
    }
    groups.at(-1)?.push(name);
    left -= size;
  }
  return groups;
}
