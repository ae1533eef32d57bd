import { setTimeout as sleep } from 'node:timers/promises';
import type { ClusterParts } from '../cluster/build.ts';
import { auditEventsDropped } from '../runtime/metrics/definitions.ts';
import { createAuditor, type Auditor } from './auditor.ts';
import { Sinks } from './sinks.ts';

/** Maximum milliseconds to wait for the events of requests that were aborted during shutdown. */
const maxDrain = 1_000;

export function buildAudit({ live, secrets, lifecycle, log }: ClusterParts): Auditor {
  const sinks = new Sinks({
    config: live,
    secrets,
    log,
    dropped: (sink, count) => auditEventsDropped.add({ sink }, count),
  });
  const auditor = createAuditor(
    () => live.value.audit.policy,
    () => sinks.current,
  );
  lifecycle.add('audit', {
    start: () => sinks.start(),
    async stop() {
      await Promise.race([auditor.idle(), sleep(maxDrain, undefined, { ref: false })]);
      await sinks.stop();
    },
  });
  return auditor;
}
