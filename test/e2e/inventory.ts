/** Everything that is in the cluster, by its API alone: every object of every resource that can be listed. */
import type { KubeClient } from '../../src/kube/client.ts';

export interface Item {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

interface Discovery {
  readonly items: readonly {
    readonly metadata: { readonly name?: string };
    readonly versions: readonly {
      readonly version: string;
      readonly resources: readonly { readonly resource: string; readonly verbs: readonly string[] }[];
    }[];
  }[];
}

/** What comes and goes by itself. */
const restless = ['events', 'events.events.k8s.io'];

export async function inventory(kube: KubeClient): Promise<Item[]> {
  const all = await Promise.all(
    (await listable(kube)).map(async ({ resource, path }) => {
      const accept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
      const list = await kube.json<{ items: { metadata: { name: string; namespace?: string } }[] | null }>(path, {
        headers: { accept },
      });
      return (list.items ?? []).map(({ metadata: { name, namespace = '' } }) => ({ resource, namespace, name }));
    }),
  );
  return all.flat();
}

async function listable(kube: KubeClient): Promise<{ resource: string; path: string }[]> {
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  const answers = await Promise.all(
    ['/api', '/apis'].map((root) => kube.json<Discovery>(root, { headers: { accept } })),
  );
  return answers.flatMap(({ items }) =>
    items.flatMap(({ metadata: { name: group = '' }, versions: [preferred] }) =>
      (preferred?.resources ?? [])
        .filter(({ verbs }) => verbs.includes('list'))
        .map(({ resource }) => ({
          resource: group === '' ? resource : `${resource}.${group}`,
          path: `${group === '' ? '/api' : `/apis/${group}`}/${preferred?.version}/${resource}`,
        }))
        .filter(({ resource }) => !restless.includes(resource)),
    ),
  );
}

export const describe = ({ resource, namespace, name }: Item): string =>
  `${resource} ${namespace === '' ? '' : `${namespace}/`}${name}`;

/** What is in one and not in the other, with a sign before it. */
export function difference(before: readonly Item[], after: readonly Item[]): string[] {
  const [old, young] = [new Set(before.map(describe)), new Set(after.map(describe))];
  return [
    ...[...young].filter((item) => !old.has(item)).map((item) => `+ ${item}`),
    ...[...old].filter((item) => !young.has(item)).map((item) => `- ${item}`),
  ].toSorted();
}
