import type { Check } from '../check.ts';
import { availability } from './availability.ts';
import { configuration, secrets, urls } from './configuration.ts';
import { clock, frontProxy, kubeApiserver } from './kube-apiserver.ts';
import { connection, dns, networkPolicies } from './network.ts';
import { cache, readiness } from './reports.ts';
import { rights } from './rights.ts';
import { certificate, registrations } from './trust.ts';
import { endpoints, pods, service } from './workload.ts';

/** All checks, each after the checks that it needs. */
export const checks: readonly Check[] = [
  kubeApiserver,
  clock,
  frontProxy,
  configuration,
  secrets,
  rights,
  pods,
  service,
  endpoints,
  networkPolicies,
  dns,
  certificate,
  registrations,
  connection,
  availability,
  readiness,
  cache,
  urls,
];
