/** The nodes as our own group must give them. */
import { nodes, type KubeObject } from './kube.ts';

export const apiVersion = 'resources.platform.io/v1alpha3';

/** What the core API says of a node, as our group says it. */
export function served(node: KubeObject): object {
  const metadata = Object.fromEntries(Object.entries(node.metadata).filter(([key]) => key !== 'managedFields'));
  return { ...node, kind: 'Node', apiVersion, metadata };
}

export const servedNodes = async (): Promise<object[]> => (await nodes()).items.map(served);

/** A rule that lets read the nodes of one API group. */
export const readNodes = (apiGroup: string): object => ({
  apiGroups: [apiGroup],
  resources: ['nodes'],
  verbs: ['get', 'list', 'watch'],
});
