import { expect, test } from '@jest/globals';
import { labels } from '../../bench/cases.ts';
import { termCost, verdicts, type Findings } from '../../bench/goals.ts';
import type { Figures } from '../../bench/measure.ts';

const figures = (cpu: number): Figures => ({
  cpu,
  behind: 0,
  alone: 0,
  cores: 1,
  perSecond: 0,
  p50: 0,
  p99: 0,
  rss: 0,
  peak: 0,
  bytes: 0,
  generator: 0,
  changes: 0,
});
const nothing: Findings = { cases: {}, terms: {}, others: {} };
const columns = (line: string): string[] => line.split(/ {2,}/);

test('a benchmark goal without a measurement has no verdict', () => {
  expect(verdicts(nothing)).toEqual([]);
  expect(verdicts({ ...nothing, cases: { list: { [labels.plain]: figures(1) } } })).toEqual([]);
});

test('a benchmark result has a verdict, and the factor by which it misses its goal, whether higher or lower is better', () => {
  const lines = verdicts({
    ...nothing,
    cases: {
      list: { [labels.plain]: figures(30), [labels.nginx]: figures(10), [labels.cached]: figures(300) },
      get: { [labels.plain]: figures(0.05), [labels.cached]: figures(0.4) },
    },
  });
  expect(lines.map((line) => columns(line))).toEqual([
    ['full list ÷ nginx', '3', '≤ 1.5', 'MISSED by ×2'],
    ['kube-apiserver ÷ full list', '10', '≥ 15', 'MISSED by ×1.5'],
    ['get', '0.05', '≤ 0.07 ms', 'met'],
    ['kube-apiserver ÷ get', '8', '≥ 6', 'met'],
  ]);
});

test('a benchmark result for lost events has no factor, since no losses are allowed', () => {
  const name = 'watchers: lost';
  expect(columns(verdicts({ ...nothing, others: { [name]: 3 } })[0] ?? '').at(-1)).toBe('MISSED');
  expect(columns(verdicts({ ...nothing, others: { [name]: 0 } })[0] ?? '').at(-1)).toBe('met');
});

test('termCost() returns the extra time of a first response compared with a repeated response, per object and term', () => {
  const cases = {
    in: { [labels.first]: figures(0.35), [labels.again]: figures(0.1) },
    exists: { [labels.first]: figures(0.35) },
  };
  expect(termCost(cases, 'in', 5000, 2)).toBeCloseTo(25, 6);
  expect(termCost(cases, 'exists', 5000, 2)).toBeUndefined();
  expect(termCost(cases, 'field', 5000, 1)).toBeUndefined();
});
