import type { AuthParts } from '../auth/build.ts';
import type { ClusterParts } from '../cluster/build.ts';
import type { CatalogueParts } from '../cluster/catalogue/build.ts';
import { counter, durationHistogram } from '../runtime/metrics.ts';
import type { LogsParts } from './handler.ts';
import { LogsBounds } from './limits.ts';
import { ConfiguredLogStore } from './open-store.ts';
import { podLister } from './pod-lister.ts';
import { openStore } from './stores/index.ts';

/** Creates the parts that serve log queries, with the log store that the configuration selects. */
export function buildLogs(
  { client, live, secrets, lifecycle, log }: ClusterParts,
  { authorizer }: AuthParts,
  { granted, catalogue }: CatalogueParts,
): LogsParts {
  const observe = durationHistogram(
    'log_store_duration_seconds',
    'Duration of requests to the log store, by operation and result. An export or tail counts as one request.',
    ['operation', 'result'],
  );
  const drop = counter(
    'log_records_dropped_total',
    'Records dropped because the log store returned them although the caller is not allowed to see them, by store.',
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
