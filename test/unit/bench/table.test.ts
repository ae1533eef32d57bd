import { expect, test } from '@jest/globals';
import type { Figures, Row } from '../../bench/measure.ts';
import { figure, ratiosOf, ratioTable, table } from '../../bench/table.ts';

const figures = (cpu: number): Figures => ({
  cpu,
  behind: 0,
  alone: 0,
  cores: 1,
  perSecond: 100 / cpu,
  p50: cpu,
  p99: cpu,
  rss: 100,
  peak: 100,
  bytes: 2000,
  generator: 0.1,
  changes: 50,
});

const row = (server: Row['subject']['server'], rounds: readonly number[], problems: readonly string[] = []): Row => ({
  subject: { server, label: server },
  rounds: rounds.map((cpu) => figures(cpu)),
  figures: figures(rounds[1] ?? NaN),
  problems,
});

test.each([
  [1234.5, '1235'],
  [99.96, '100'],
  [12.345, '12.3'],
  [0.012345, '0.0123'],
  [-463.7, '-464'],
  [0, '0'],
])('the number %d is printed as %s in the benchmark table', (value, text) => {
  expect(figure(value)).toBe(text);
});

test('the benchmark table shows the median ratio of the rounds, and the minimum and maximum CPU time', () => {
  const rows = [row('ours', [2, 4, 9]), row('nginx', [1, 1, 3])];
  expect(ratiosOf(rows)).toMatchObject(
    [{ label: 'ours', peer: 'nginx', ratios: { cpu: 3, perSecond: 0.333, rss: 1 }, lowest: 2, highest: 4 }].map(
      (one) => ({
        ...one,
        ratios: { ...one.ratios, perSecond: expect.closeTo(0.333, 2) },
      }),
    ),
  );
  expect(ratioTable([{ name: 'get', ratios: ratiosOf(rows) }])).toMatch(/^get: ours ÷ nginx +×3 .* 2–4$/m);
});

test('a benchmark case with wrong responses has no figures and no ratios', () => {
  const rows = [row('ours', [2, 4, 9], ['status 500']), row('nginx', [1, 1, 3])];
  expect(ratiosOf(rows)).toEqual([]);
  expect(table('get', rows)).toMatch(/^ {2}ours: WRONG: status 500$/m);
});
