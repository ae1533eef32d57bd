/** Computes the nodes that the platform's API group must return. */
import { nodes, type KubeObject } from './kube.ts';

export const apiVersion = 'resources.platform.io/v1alpha3';

/** Converts a node of the core API to a node of the platform's API group. */
export function served(node: KubeObject): object {
  const metadata = Object.fromEntries(Object.entries(node.metadata).filter(([key]) => key !== 'managedFields'));
  return { ...node, kind: 'Node', apiVersion, metadata };
}

export const servedNodes = async (): Promise<object[]> => (await nodes()).items.map(served);

/** Returns a rule that allows reading the nodes of one API group. */
export const readNodes = (apiGroup: string): object => ({
  apiGroups: [apiGroup],
  resources: ['nodes'],
  verbs: ['get', 'list', 'watch'],
});
