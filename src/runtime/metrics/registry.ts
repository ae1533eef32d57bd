/** Metrics of the process: Prometheus counters, gauges and histograms with bounded labels. definitions.ts lists all of them. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { LabelValues } from './labels.ts';

/** Served at /metrics in the Prometheus text format. */
export const registry = new Registry();

export interface Definition<L extends string = string> {
  /** Without the prefix `platform_apiserver_`. Ends with the unit, and counters with `total`. */
  readonly name: string;
  readonly help: string;
  readonly labels: Readonly<Record<L, LabelValues>>;
}

export type Kind = 'counter' | 'gauge' | 'histogram';

/** A metric with its definition, from which the documentation is generated. */
export interface Defined<L extends string = string> extends Definition<L> {
  readonly kind: Kind;
}

type Labels<L extends string> = Readonly<Record<L, string>>;

const namesOf = <L extends string>({ labels }: Definition<L>): L[] => Object.keys(labels) as L[];
const configurationOf = <L extends string>(definition: Definition<L>) => ({
  name: `platform_apiserver_${definition.name}`,
  help: definition.help,
  labelNames: namesOf(definition),
  registers: [registry],
});

/** Returns the values that the definition allows. */
function bounded<L extends string>({ labels }: Definition<L>, values: Labels<L>): Record<L, string> {
  const result: Partial<Record<L, string>> = {};
  for (const name in labels) result[name] = labels[name].bound(values[name]);
  return result as Record<L, string>;
}

export interface CounterMetric<L extends string> extends Defined<L> {
  add(labels: Labels<L>, count?: number): void;
}

export function counter<L extends string = never>(definition: Definition<L>): CounterMetric<L> {
  const metric = new Counter(configurationOf(definition));
  return {
    ...definition,
    kind: 'counter',
    add: (labels, count = 1) => metric.inc(bounded(definition, labels), count),
  };
}

export interface HistogramMetric<L extends string> extends Defined<L> {
  observe(labels: Labels<L>, seconds: number): void;
}

/** A histogram of durations. `buckets` are seconds. */
export function durations<L extends string = never>(
  definition: Definition<L>,
  buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
): HistogramMetric<L> {
  const metric = new Histogram({ ...configurationOf(definition), buckets });
  return {
    ...definition,
    kind: 'histogram',
    observe: (labels, seconds) => metric.observe(bounded(definition, labels), seconds),
  };
}

export interface LevelMetric<L extends string> extends Defined<L> {
  add(labels: Labels<L>, change: 1 | -1): void;
}

/** A gauge that counts what is in progress. */
export function level<L extends string = never>(definition: Definition<L>): LevelMetric<L> {
  const metric = new Gauge(configurationOf(definition));
  return { ...definition, kind: 'gauge', add: (labels, change) => metric.inc(bounded(definition, labels), change) };
}

/** Labels and value of one time series. */
export type Sample<L extends string> = readonly [Labels<L>, number];

export interface CollectedMetric<L extends string> extends Defined<L> {
  /** Sets the function that reads the values whenever the metrics are collected. It replaces an earlier one. */
  read(values: () => Iterable<Sample<L>>): void;
}

/** A metric whose values are read when the metrics are collected. A `counter` never decreases while the process runs. */
export function collected<L extends string = never>(
  definition: Definition<L>,
  kind: 'counter' | 'gauge' = 'gauge',
): CollectedMetric<L> {
  let read: (() => Iterable<Sample<L>>) | undefined;
  const options = configurationOf(definition);
  if (kind === 'gauge') {
    const metric: Gauge<L> = new Gauge({
      ...options,
      collect() {
        metric.reset();
        for (const [labels, value] of read?.() ?? []) metric.set(bounded(definition, labels), value);
      },
    });
  } else {
    const metric: Counter<L> = new Counter({
      ...options,
      collect() {
        metric.reset();
        for (const [labels, value] of read?.() ?? []) metric.inc(bounded(definition, labels), value);
      },
    });
  }
  return {
    ...definition,
    kind,
    read: (values) => {
      read = values;
    },
  };
}

/** Collects event loop delay, memory, garbage collection and file descriptors. */
export const collectProcessMetrics = (): void => collectDefaultMetrics({ register: registry });
