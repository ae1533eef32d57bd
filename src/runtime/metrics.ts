import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** The only metrics registry of the process, served at /metrics in the Prometheus text format. */
export const registry = new Registry();

const labels = ['verb', 'resource', 'code'] as const;

const requests = new Counter({
  name: 'platform_apiserver_requests_total',
  help: 'Completed requests by verb, resource and HTTP status.',
  labelNames: labels,
  registers: [registry],
});

const durations = new Histogram({
  name: 'platform_apiserver_request_duration_seconds',
  help: 'Time from the first byte of a request to the last byte of its response, by verb and resource. Excludes watches.',
  labelNames: ['verb', 'resource'] as const,
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  registers: [registry],
});

const inFlight = new Gauge({
  name: 'platform_apiserver_requests_in_flight',
  help: 'Requests in progress by kind: read, change, login, body (incomplete logins), anonymous, and authentication (waiting for it). Excludes watches, streams and probes.',
  labelNames: ['kind'] as const,
  registers: [registry],
});

export const countInFlight = (kind: string, change: 1 | -1): void => inFlight.inc({ kind }, change);

/** Verbs and resources that may become label values. Callers must not be able to create new values. */
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

export function registerResource(resource: string): void {
  knownResources.add(resource);
}

/** Properties of a request that become labels. */
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

/** Registers a counter and returns the function that adds to it. Label values must never come from callers. */
export function counter(name: string, help: string, label: string): (labelValue: string, count: number) => void {
  const metric = new Counter({ name: `platform_apiserver_${name}`, help, labelNames: [label], registers: [registry] });
  return (labelValue, count) => metric.inc({ [label]: labelValue }, count);
}

/** Registers a histogram of durations and returns the function that observes one. Label values must never come from callers. */
export function durationHistogram(
  name: string,
  help: string,
  labelNames: readonly string[],
): (labelValues: Readonly<Record<string, string>>, seconds: number) => void {
  const metric = new Histogram({
    name: `platform_apiserver_${name}`,
    help,
    labelNames,
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [registry],
  });
  return (labelValues, seconds) => metric.observe(labelValues, seconds);
}

/** Registers a gauge whose value is read when the metrics are collected. Replaces an earlier gauge of the same name. */
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

/** Registers a gauge with one value per label value. `read` must never return label values that come from callers. */
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
      for (const [labelValue, value] of read()) metric.set({ [label]: labelValue }, value);
    },
  });
}

/** Collects event loop delay, memory, garbage collection and file descriptors. */
export const collectProcessMetrics = (): void => collectDefaultMetrics({ register: registry });
