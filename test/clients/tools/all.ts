import type { Tool } from '../tool.ts';
import { clientJava, fabric8 } from './java.ts';
import { argoCD } from './argo-cd.ts';
import { controllerRuntime } from './controller-runtime.ts';
import { grafana } from './grafana.ts';
import { headlamp } from './headlamp.ts';
import { helm3, helm4 } from './helm.ts';
import { k9s } from './k9s.ts';
import { kubelogin } from './kubelogin.ts';
import { kubeRBACProxy } from './kube-rbac-proxy.ts';
import { kubeStateMetrics } from './kube-state-metrics.ts';
import { kubectl130, kubectl133 } from './kubectl.ts';
import { libraries } from './libraries.ts';
import { oauth2Proxy } from './oauth2-proxy.ts';
import { springSecurity } from './spring-security.ts';
import { stern } from './stern.ts';

/** Tools in the order of the run. */
export const tools: readonly Tool[] = [
  fabric8,
  clientJava,
  controllerRuntime,
  helm3,
  helm4,
  stern,
  kubeStateMetrics,
  kubeRBACProxy,
  k9s,
  kubelogin,
  headlamp,
  oauth2Proxy,
  grafana,
  argoCD,
  springSecurity,
  ...libraries,
  kubectl133,
  kubectl130,
];
