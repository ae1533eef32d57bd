import type { AuthParts } from '../auth/build.ts';
import type { ClusterParts } from '../cluster/build.ts';
import type { CatalogueParts } from '../cluster/catalogue/build.ts';
import { counter, durationsOf } from '../runtime/metrics.ts';
import type { LogsParts } from './handler.ts';
import { LogsBounds } from './limits.ts';
import { ConfiguredLogStore } from './open-store.ts';
import { podLister } from './pod-lister.ts';
import { openStore } from './stores/index.ts';

/** What serves log queries, from the log store of the configuration. */
export function buildLogs(
  { client, live, secrets, lifecycle, log }: ClusterParts,
  { authorizer }: AuthParts,
  { granted, catalogue }: CatalogueParts,
): LogsParts {
  const observe = durationsOf(
    'log_store_duration_seconds',
    'Time that a question to the log store took, of exports and tails as a whole, by operation and result.',
    ['operation', 'result'],
  );
  const drop = counter(
    'log_records_dropped_total',
    'Records that a log store returned although the caller is not allowed to see them, by store.',
    'store',
  );
  const parts = {
    listPods: podLister(catalogue),
    secrets,
    observe: (operation: string, result: string, seconds: number) => observe({ operation, result }, seconds),
    drop,
  };
  const logs = lifecycle.add(
    'logs',
    new ConfiguredLogStore({ config: live, open: (settings) => openStore(settings, parts), client, log }),
  );
  return { authorizer, granted, catalogue, client, logs, bounds: new LogsBounds() };
}
