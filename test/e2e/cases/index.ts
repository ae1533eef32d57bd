import { kubernetesMinor } from '../../../hack/cluster/kubernetes-version.ts';
import type { Item } from '../inventory.ts';
import type { Case } from '../steps.ts';
import { aggregation } from './aggregation.ts';
import { audit } from './audit.ts';
import { confinement } from './confinement.ts';
import { gateway } from './gateway.ts';
import { insideAPod } from './inside-a-pod.ts';
import { installation } from './installation.ts';
import { logs } from './logs.ts';
import { nodePort } from './node-port.ts';
import { operatorsDay } from './operators-day.ts';
import { replacement } from './replacement.ts';
import { rotation } from './rotation.ts';
import { tlsOnly } from './tls-only.ts';
import { uninstallation } from './uninstallation.ts';
import { upgrade } from './upgrade.ts';

/**
 * Returns the cases in order. `before` is the content of the cluster before the first. The operator's day documents the
 * output of Kubernetes 1.36. Earlier versions do not verify the certificate of an aggregated API server when they check
 * whether the APIService is available.
 */
export const cases = async (before: readonly Item[]): Promise<readonly Case[]> => [
  installation,
  insideAPod,
  nodePort,
  gateway,
  aggregation,
  logs,
  confinement,
  audit,
  tlsOnly,
  replacement,
  rotation,
  uninstallation(before),
  ...((await kubernetesMinor()) >= 36 ? [operatorsDay] : []),
  upgrade,
];
