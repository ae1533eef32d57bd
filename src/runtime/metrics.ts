import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** The one registry of the process, served at /metrics in Prometheus' text format. */
export const registry = new Registry();

const labels = ['verb', 'resource', 'code'] as const;

const requests = new Counter({
  name: 'platform_apiserver_requests_total',
  help: 'Requests answered, by verb, resource and HTTP status.',
  labelNames: labels,
  registers: [registry],
});

const durations = new Histogram({
  name: 'platform_apiserver_request_duration_seconds',
  help: 'Time from the first byte of a request to the last of its answer, by verb and resource; watches are left out.',
  labelNames: ['verb', 'resource'] as const,
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  registers: [registry],
});

const inFlight = new Gauge({
  name: 'platform_apiserver_requests_in_flight',
  help: 'Requests under way, by kind: read, change, login, body (incomplete logins), anonymous and authentication (waiting for it); neither watches and streams nor probes.',
  labelNames: ['kind'] as const,
  registers: [registry],
});

/** One more or one less is under way. */
export const countInFlight = (kind: string, more: 1 | -1): void => inFlight.inc({ kind }, more);

/** Only what the route table knows may become a label: callers must not be able to make new ones. */
const knownVerbs = new Set([
  'get',
  'list',
  'watch',
  'create',
  'update',
  'patch',
  'delete',
  'deletecollection',
  'post',
  'put',
  'head',
]);
const knownResources = new Set<string>();

export function knowResource(resource: string): void {
  knownResources.add(resource);
}

/** What of a request becomes a label. */
export interface Labelled {
  readonly verb: string;
  readonly resource: string;
  readonly isResourceRequest: boolean;
}

export function observeRequest(info: Labelled, code: number, seconds: number): void {
  const verb = knownVerbs.has(info.verb) ? info.verb : 'other';
  const resource = info.isResourceRequest ? (knownResources.has(info.resource) ? info.resource : 'other') : '';
  requests.inc({ verb, resource, code: String(code) });
  if (verb !== 'watch') durations.observe({ verb, resource }, seconds);
}

/** Answers what counts more of a kind; `label` has only values that callers cannot make up. */
export function counter(name: string, help: string, label: string): (which: string, more: number) => void {
  const metric = new Counter({ name: `platform_apiserver_${name}`, help, labelNames: [label], registers: [registry] });
  return (which, more) => metric.inc({ [label]: which }, more);
}

/** The same of how long things took, in seconds. */
export function durationsOf(
  name: string,
  help: string,
  labelNames: readonly string[],
): (which: Readonly<Record<string, string>>, seconds: number) => void {
  const metric = new Histogram({
    name: `platform_apiserver_${name}`,
    help,
    labelNames,
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [registry],
  });
  return (which, seconds) => metric.observe(which, seconds);
}

/** A figure that is read when the metrics are. Replaces an earlier one of the same name. */
export function gauge(suffix: string, help: string, read: () => number): void {
  const name = `platform_apiserver_${suffix}`;
  registry.removeSingleMetric(name);
  const metric: Gauge = new Gauge({
    name,
    help,
    registers: [registry],
    collect: () => metric.set(read()),
  });
}

/** The same for several of a kind; `read` tells only names that callers cannot make up. */
export function gauges(
  name: string,
  help: string,
  label: string,
  read: () => Iterable<readonly [string, number]>,
): void {
  const metric: Gauge = new Gauge({
    name: `platform_apiserver_${name}`,
    help,
    labelNames: [label],
    registers: [registry],
    collect() {
      metric.reset();
      for (const [which, value] of read()) metric.set({ [label]: which }, value);
    },
  });
}

/** Event-loop delay, memory, garbage collection, file descriptors. */
export const collectProcessMetrics = (): void => collectDefaultMetrics({ register: registry });
