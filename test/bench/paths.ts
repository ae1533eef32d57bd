import { nodeName } from '../../hack/cluster/node.ts';

const nodes = '/resources.platform.io/v1alpha3/nodes';
const query = (parameters: Readonly<Record<string, string | number>>): string =>
  Object.entries(parameters)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&');

export const pageSize = 10;
/** Namespace of the ServiceAccounts whose tokens the callers of kube-apiserver use. */
export const readersNamespace = 'bench';
/** Placeholder in a path for a number that no earlier request had. */
export const placeholder = '~n~';

/** Paths that the benchmark requests. */
export const paths = {
  health: '/livez',
  token: '/oauth/token',
  list: `/kapis${nodes}`,
  node: (index: number) => `/kapis${nodes}/${nodeName(index)}`,
  /** Parameters that sort the list. Default: by name. */
  page: (page: number, parameters: Readonly<Record<string, string>> = {}) =>
    `/kapis${nodes}?${query({ sortBy: 'name', ascending: 'true', ...parameters, limit: pageSize, page })}`,
  podsOf: (namespace: string) =>
    `/kapis/resources.platform.io/v1alpha3/namespaces/${namespace}/pods?sortBy=name&ascending=true&limit=${pageSize}`,
  myNamespaces: `/kapis/resources.platform.io/v1alpha3/namespaces?sortBy=name&ascending=true&limit=${pageSize}&page=3`,
  metrics: '/metrics',
  watch: (resourceVersion: string) => `/kapis${nodes}?watch=true&resourceVersion=${resourceVersion}`,
  aggregated: `/apis${nodes}`,
  /** Paths of kube-apiserver. */
  core: '/api/v1/nodes',
  corePage: (labelSelector: string) => `/api/v1/nodes?${query({ labelSelector, limit: pageSize })}`,
  corePodsOf: (namespace: string) => `/api/v1/namespaces/${namespace}/pods?limit=${pageSize}`,
  serviceAccount: (name: string) => `/api/v1/namespaces/${readersNamespace}/serviceaccounts/${name}`,
  /** Path of a watch of objects that do not change. */
  quietWatch: '/api/v1/namespaces/kube-public/configmaps?watch=true&resourceVersion=0',
  coreWatch: (resourceVersion: string) => `/api/v1/nodes?watch=true&resourceVersion=${resourceVersion}`,
} as const;
