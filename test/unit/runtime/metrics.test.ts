import { expect, test } from '@jest/globals';
import * as definitions from '../../../src/runtime/metrics/definitions.ts';
import { first, oneOf, registered } from '../../../src/runtime/metrics/labels.ts';
import { registry, type Defined } from '../../../src/runtime/metrics/registry.ts';

const all = Object.values(definitions).filter((value): value is typeof value & Defined => 'kind' in value);

/** Records one value of a metric, whatever its kind. */
function record(metric: Defined, labels: Readonly<Record<string, string>>): void {
  const { add, observe } = metric as Partial<Record<'add' | 'observe', (labels: object, value?: number) => void>>;
  if (add !== undefined) add(labels, 1);
  else if (observe !== undefined) observe(labels, 0.01);
}

test('a label with fixed values replaces all others', () => {
  const { bound, max } = oneOf('get', 'list');
  expect(['get', 'list', 'GET', 'x'].map(bound)).toEqual(['get', 'list', 'other', 'other']);
  expect(max).toBe(3);
});

test('a label with the first values replaces further ones and keeps the known ones', () => {
  const { bound } = first(2, 'clients');
  expect(['a', 'b', 'c', 'a'].map(bound)).toEqual(['a', 'b', 'other', 'a']);
});

test('a label with registered values replaces values that are not registered, and keeps no value', () => {
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

test.each(all.filter(({ labels }) => Object.keys(labels).length > 0).map((metric) => [metric.name, metric] as const))(
  'values that callers choose create no more than the allowed time series of %s',
  async (name, metric) => {
    const names = Object.keys(metric.labels);
    const allowed = Object.values(metric.labels).reduce((product, { max }) => product * max, 1);
    for (let count = 0; count < 3_000; count += 1)
      record(metric, Object.fromEntries(names.map((label) => [label, `hostile-${label}-${count}`])));
    const text = await registry.getSingleMetricAsString(`platform_apiserver_${name}`);
    const series = text.split('\n').filter((line) => /^[a-z_]+(_count)?\{/.test(line) && !/_(bucket|sum)\{/.test(line));
    expect(series.length).toBeLessThanOrEqual(Math.min(allowed, 1_100));
  },
);
