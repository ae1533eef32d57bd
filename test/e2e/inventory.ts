/** The whole content of the cluster according to its API: every object of every resource that can be listed. */
import type { KubeClient } from '../../src/cluster/client/client.ts';

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

/** Resources that change by themselves: Events, and the kubelet's lease. */
const isRestless = ({ resource, namespace }: Item): boolean =>
  resource.startsWith('events') || namespace === 'kube-node-lease';

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
  return all.flat().filter((item) => !isRestless(item));
}

/** Returns each resource in the first version that serves the resource. */
async function listable(kube: KubeClient): Promise<{ resource: string; path: string }[]> {
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  const paths = new Map<string, string>();
  for (const root of ['/api', '/apis']) {
    const { items } = await kube.json<Discovery>(root, { headers: { accept } });
    for (const { metadata, versions } of items)
      for (const { version, resources } of versions)
        for (const { resource: plural, verbs } of resources) {
          const group = metadata.name ?? '';
          const resource = group === '' ? plural : `${plural}.${group}`;
          const path = [root, ...(group === '' ? [] : [group]), version, plural].join('/');
          if (verbs.includes('list') && !paths.has(resource)) paths.set(resource, path);
        }
  }
  return [...paths].map(([resource, path]) => ({ resource, path }));
}

const describe = ({ resource, namespace, name }: Item): string =>
  `${resource} ${namespace === '' ? '' : `${namespace}/`}${name}`;

/** Returns the differences: added objects with the prefix `+`, and removed objects with `-`. */
export function difference(before: readonly Item[], after: readonly Item[]): string[] {
  const [old, young] = [new Set(before.map(describe)), new Set(after.map(describe))];
  return [
    ...[...young].filter((item) => !old.has(item)).map((item) => `+ ${item}`),
    ...[...old].filter((item) => !young.has(item)).map((item) => `- ${item}`),
  ].toSorted();
}
