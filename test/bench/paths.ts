import { nodeName } from '../../hack/cluster/node.ts';

const nodes = '/resources.platform.io/v1alpha3/nodes';

export const pageSize = 10;

/** What is asked for. */
export const paths = {
  health: '/livez',
  token: '/oauth/token',
  list: `/kapis${nodes}`,
  node: (index: number) => `/kapis${nodes}/${nodeName(index)}`,
  page: (page: number) => `/kapis${nodes}?sortBy=name&ascending=true&limit=${pageSize}&page=${page}`,
  aggregated: `/apis${nodes}`,
  /** Of kube-apiserver. */
  core: '/api/v1/nodes',
} as const;
