import type { AuthParts } from '../auth/build.ts';
import type { ClusterParts } from '../cluster/build.ts';
import type { CatalogueParts } from '../cluster/catalogue/build.ts';
import { logRecordsDropped, logStoreDurations } from '../runtime/metrics/definitions.ts';
import type { LogsParts } from './handler.ts';
import { LogsBounds } from './limits.ts';
import { ConfiguredLogStore } from './open-store.ts';
import { podLister } from './pod-lister.ts';
import { openStore } from './stores/index.ts';

/** Creates the objects that serve log queries, including the log store that the configuration selects. */
export function buildLogs(
  { client, live, secrets, lifecycle, log }: ClusterParts,
  { authorizer }: AuthParts,
  { granted, catalogue }: CatalogueParts,
): LogsParts {
  const parts = {
    listPods: podLister(catalogue),
    secrets,
    observe: (operation: string, result: string, seconds: number) =>
      logStoreDurations.observe({ operation, result }, seconds),
    drop: (store: string, count: number) => logRecordsDropped.add({ store }, count),
  };
  const logs = lifecycle.add(
    'logs',
    new ConfiguredLogStore({ config: live, open: (settings) => openStore(settings, parts), client, log }),
  );
  return { authorizer, granted, catalogue, client, logs, bounds: new LogsBounds() };
}
