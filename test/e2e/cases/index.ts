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

/** Returns the cases in order. `before` is the content of the cluster before the first. */
export const cases = (before: readonly Item[]): readonly Case[] => [
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
  operatorsDay,
  upgrade,
];
