import { nodeName } from '../../hack/cluster/node.ts';

const nodes = '/resources.platform.io/v1alpha3/nodes';

export const pageSize = 10;

/** What is asked of us. */
export const paths = {
  list: `/kapis${nodes}`,
  node: (index: number) => `/kapis${nodes}/${nodeName(index)}`,
  page: (page: number) => `/kapis${nodes}?sortBy=name&ascending=true&limit=${pageSize}&page=${page}`,
  aggregated: `/apis${nodes}`,
} as const;
