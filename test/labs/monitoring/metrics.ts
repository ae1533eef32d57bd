/** Names, labels and label values of the time series that queries are allowed to use. */
import * as definitions from '../../../src/runtime/metrics/definitions.ts';
import { collectProcessMetrics, registry, type Defined } from '../../../src/runtime/metrics/registry.ts';
import { selectorsIn, type Selector } from './promql.ts';
import { rules } from './sources.ts';

/** Labels that Prometheus adds to each time series of a target. */
const targetLabels = ['namespace', 'pod', 'job'];

/** Labels of metrics of other programs, by metric name. */
const foreign: Readonly<Record<string, readonly string[]>> = {
  up: targetLabels,
  ALERTS: ['alertname', 'alertstate'],
  aggregator_unavailable_apiservice: ['name', 'namespace'],
};

interface Registered {
  readonly name: string;
  readonly type: string;
  readonly labelNames?: readonly string[];
}

collectProcessMetrics();

const labelsOf = new Map<string, readonly string[]>(Object.entries(foreign));
for (const { name, type, labelNames = [] } of registry.getMetricsAsArray() as unknown as Registered[]) {
  const labels = [...labelNames, ...targetLabels];
  if (type !== 'histogram') labelsOf.set(name, labels);
  else
    for (const suffix of ['_count', '_sum', '_bucket'])
      labelsOf.set(`${name}${suffix}`, suffix === '_bucket' ? [...labels, 'le'] : labels);
}
for (const { record } of rules) if (record !== undefined) labelsOf.set(record, ['namespace', 'job']);

const isDefined = (value: unknown): value is Defined => typeof value === 'object' && value !== null && 'kind' in value;
const defined = Object.values(definitions as Record<string, unknown>).filter(isDefined);

/** Returns the values of a label; undefined if the values are not limited to a list. */
const valuesOf = (metric: string, label: string): readonly string[] | undefined =>
  defined.find(({ name, kind }) => {
    const full = `platform_apiserver_${name}`;
    return kind === 'histogram' ? metric.replace(/_(count|sum|bucket)$/, '') === full : metric === full;
  })?.labels[label]?.values;

function problemsOf({ text, metric, matchers, grouping }: Selector): string[] {
  const labels = labelsOf.get(metric);
  if (labels === undefined) return [`${text}: no metric has this name`];
  const unknownLabels = [...matchers.map(({ label }) => label), ...grouping].filter((label) => !labels.includes(label));
  const unknownValues = matchers.flatMap(({ label, operator, value }) => {
    const values = valuesOf(metric, label);
    const wanted = operator.includes('~') ? value.split('|') : [value];
    return values === undefined ? [] : wanted.filter((one) => !values.includes(one)).map((one) => `${label}="${one}"`);
  });
  return [...unknownLabels, ...unknownValues].map((what) => `${text}: ${metric} never has ${what}`);
}

/** Returns a problem for each metric name, label and label value of an expression that no time series has. */
export const queryProblems = (expr: string): string[] => selectorsIn(expr).flatMap(problemsOf);
