/** What clients need to be set up: served at /kapis/config.platform.io. */
import type { Route } from '../http/route.ts';
import type { ApiGroupVersion } from '../apimachinery/api-groups.ts';
import { group, kubeconfigRoute, version, type KubeconfigParts } from './kubeconfig.ts';

export const configGroup: ApiGroupVersion = {
  group,
  version,
  resources: [{ name: 'kubeconfig', singularName: 'kubeconfig', namespaced: false, kind: 'Config', verbs: ['list'] }],
};

export const configRoutes = (parts: KubeconfigParts): Route[] => [kubeconfigRoute(parts)];
