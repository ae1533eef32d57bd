import { expect, test } from '@jest/globals';
import * as definitions from '../../../src/runtime/metrics/definitions.ts';
import { first, oneOf, registered } from '../../../src/runtime/metrics/labels.ts';
import { registry, type Defined } from '../../../src/runtime/metrics/registry.ts';

const all = Object.values(definitions).filter((value): value is typeof value & Defined => 'kind' in value);

type Values = Readonly<Record<string, string>>;

/** Records one value for each of the labels, whatever the kind of the metric. */
function record(metric: Defined, values: readonly Values[]): void {
  const { add, observe, read } = metric as {
    add?: (labels: Values, value: number) => void;
    observe?: (labels: Values, value: number) => void;
    read?: (samples: () => readonly (readonly [Values, number])[]) => void;
  };
  if (read !== undefined) read(() => values.map((labels) => [labels, 1]));
  for (const labels of values) (add ?? observe)?.(labels, 1);
}

/** Returns one line for each time series, also for each time series of a histogram. */
async function seriesOf(name: string): Promise<string[]> {
  const text = await registry.getSingleMetricAsString(`platform_apiserver_${name}`);
  return text.split('\n').filter((line) => /^[a-z_]+(_count)?\{/.test(line) && !/_(bucket|sum)\{/.test(line));
}

test('a label with fixed values replaces every other value with "other"', () => {
  const { bound, max } = oneOf('get', 'list');
  expect((['get', 'list', 'GET', 'x'] as const).map((value) => bound(value as 'get'))).toEqual([
    'get',
    'list',
    'other',
    'other',
  ]);
  expect(max).toBe(3);
});

test('a label that is limited to the first values keeps these values and replaces further values with "other"', () => {
  const { bound } = first(2, 'clients');
  expect(['a', 'b', 'c', 'a'].map(bound)).toEqual(['a', 'b', 'other', 'a']);
});

test('a label with registered values replaces unregistered values with "other", and does not store them', () => {
  const label = registered(1, 'resources');
  label.add('nodes');
  label.add('pods');
  expect(['nodes', 'pods', ''].map(label.bound)).toEqual(['nodes', 'other', '']);
});

test.each(all.map((metric) => [metric.name, metric] as const))(
  'the metric %s follows the naming conventions of Prometheus',
  (name, { kind, help }) => {
    expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect(name.endsWith('_total')).toBe(kind === 'counter');
    expect(kind !== 'histogram' || /_(seconds|bytes)$/.test(name)).toBe(true);
    expect(name).not.toMatch(/milli|_ms$|_kb$|_percent/);
    expect(help).toMatch(/^[A-Z1].*\.$/);
  },
);

// This test must run before the next test, which uses up the allowed label values.
test('the metrics of the cache contain the name and the API group of a resource', async () => {
  definitions.storeObjects.read(() => [[{ resource: 'deployments.apps' }, 5]]);
  expect(await seriesOf('store_objects')).toContain('platform_apiserver_store_objects{resource="deployments.apps"} 5');
});

test.each(all.filter(({ labels }) => Object.keys(labels).length > 0).map((metric) => [metric.name, metric] as const))(
  'label values that callers choose create no more than the allowed number of time series of %s',
  async (name, metric) => {
    const names = Object.keys(metric.labels);
    const allowed = Object.values(metric.labels).reduce((product, { max }) => product * max, 1);
    const hostile = Array.from({ length: 3_000 }, (_, at) =>
      Object.fromEntries(names.map((label) => [label, `hostile-${label}-${at}`])),
    );
    record(metric, hostile);
    const series = await seriesOf(name);
    expect(series.length).toBeGreaterThan(0);
    expect(series.length).toBeLessThanOrEqual(Math.min(allowed, 2_100));
  },
);

test('metric values are added up if their labels are replaced by the same value', async () => {
  definitions.upstreamConnections.read(() => [
    [{ state: 'busy' }, 2],
    [{ state: 'hostile' as 'busy' }, 3],
    [{ state: 'strange' as 'busy' }, 4],
  ]);
  expect(await seriesOf('upstream_connections')).toEqual([
    'platform_apiserver_upstream_connections{state="busy"} 2',
    'platform_apiserver_upstream_connections{state="other"} 7',
  ]);
});
