/**
 * Metrics of the process: Prometheus counters, gauges and histograms with bounded labels. definitions.ts lists all of
 * them.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { LabelValues } from './labels.ts';

/** Served at /metrics in the Prometheus text format. */
export const registry = new Registry();

/** The values of each label of a metric. */
type LabelSet = Readonly<Record<string, LabelValues<never>>>;

export interface Definition<L extends LabelSet = LabelSet> {
  /** Name without the prefix `platform_apiserver_`. Names end with the unit; names of counters end with `total`. */
  readonly name: string;
  readonly help: string;
  readonly labels: L;
}

/** A metric with its definition, from which the documentation is generated. */
export interface Defined<L extends LabelSet = LabelSet> extends Definition<L> {
  readonly kind: 'counter' | 'gauge' | 'histogram';
}

/** A value for each label of a metric. */
export type Labels<L extends LabelSet> = { readonly [K in keyof L]: L[K] extends LabelValues<infer V> ? V : never };

const configurationOf = ({ name, help, labels }: Definition) => ({
  name: `platform_apiserver_${name}`,
  help,
  labelNames: Object.keys(labels),
  registers: [registry],
});

/** Returns the function that replaces values that the definition does not allow. */
function bounding<L extends LabelSet>({ labels }: Definition<L>): (values: Labels<L>) => Record<string, string> {
  const entries = Object.entries(labels);
  return (values) => {
    const result: Record<string, string> = {};
    for (const [name, label] of entries) result[name] = label.bound(values[name] as never);
    return result;
  };
}

/** Returns every combination of label values, or none if a label has no fixed set of values. */
function fixedLabels({ labels }: Definition): Record<string, string>[] {
  let combinations: Record<string, string>[] = [{}];
  for (const [name, { values = [] }] of Object.entries(labels))
    combinations = combinations.flatMap((one) => values.map((value) => ({ ...one, [name]: value })));
  return combinations;
}

export interface CounterMetric<L extends LabelSet> extends Defined<L> {
  add(labels: Labels<L>, count?: number): void;
}

export function counter<L extends LabelSet>(definition: Definition<L>): CounterMetric<L> {
  const metric = new Counter(configurationOf(definition));
  const bounded = bounding(definition);
  // rate() and increase() ignore the first value of a time series, so the first event would be invisible without a 0
  // before it.
  for (const labels of fixedLabels(definition)) metric.inc(labels, 0);
  return {
    ...definition,
    kind: 'counter',
    add: (labels, count = 1) => metric.inc(bounded(labels), count),
  };
}

export interface HistogramMetric<L extends LabelSet> extends Defined<L> {
  observe(labels: Labels<L>, seconds: number): void;
}

/** A histogram of durations. `buckets` are seconds. */
export function durations<L extends LabelSet>(
  definition: Definition<L>,
  buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
): HistogramMetric<L> {
  const metric = new Histogram({ ...configurationOf(definition), buckets });
  const bounded = bounding(definition);
  return {
    ...definition,
    kind: 'histogram',
    observe: (labels, seconds) => metric.observe(bounded(labels), seconds),
  };
}

/** Labels and value of one time series. */
export type Sample<L extends LabelSet> = readonly [Labels<L>, number];

export interface CollectedMetric<L extends LabelSet> extends Defined<L> {
  /** Sets the function that reads the values whenever the metrics are collected. A later call replaces the function. */
  read(values: () => Iterable<Sample<L>>): void;
}

/**
 * A metric whose values are read when the metrics are collected. A `counter` never decreases while the process runs.
 * Values with the same labels are summed, for example if several label values are replaced by `other`.
 */
export function collected<L extends LabelSet>(
  definition: Definition<L>,
  kind: 'counter' | 'gauge' = 'gauge',
): CollectedMetric<L> {
  let read: (() => Iterable<Sample<L>>) | undefined;
  const options = configurationOf(definition);
  const bounded = bounding(definition);
  function collect(this: Counter | Gauge): void {
    this.reset();
    for (const [labels, value] of read?.() ?? []) this.inc(bounded(labels), value);
  }
  const metric = kind === 'counter' ? Counter : Gauge;
  // oxlint-disable-next-line no-new -- the metric registers itself
  new metric({ ...options, collect });
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
