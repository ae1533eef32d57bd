import { recordSoon } from '../http/records.ts';
import type { RequestContext } from '../http/route.ts';
import { upstreamDurations } from '../runtime/metrics/definitions.ts';

/** Records the time until kube-apiserver responded. Only the first call counts. */
export type StopTimer = (result: 'ok' | 'error' | 'aborted') => void;

/** Starts to measure the response time of a forwarded request. */
export function startTimer({ info }: RequestContext): StopTimer {
  const started = performance.now();
  let isRunning = true;
  return (result) => {
    if (!isRunning) return;
    isRunning = false;
    const seconds = (performance.now() - started) / 1_000;
    recordSoon(() => upstreamDurations.observe({ verb: info.verb, result }, seconds));
  };
}
