/** Tests the dashboards of the chart. test/monitoring evaluates their queries with Prometheus. */
import { describe, expect, test } from '@jest/globals';
import { queryProblems } from '../../labs/monitoring/metrics.ts';
import { dashboards, panelsOf, queries } from '../../labs/monitoring/sources.ts';

test('each dashboard has its own uid and title', () => {
  const all = [...dashboards.values()];
  expect(new Set(all.flatMap(({ uid, title }) => [uid, title])).size).toBe(2 * dashboards.size);
});

test.each(queries.map(({ title, expr }) => [title, expr]))(
  'the query %s uses only metrics, labels and label values that the server exports',
  (_, expr) => {
    expect(queryProblems(expr)).toEqual([]);
  },
);

test.each(queries.map(({ title, expr, legend }) => [title, expr, legend]))(
  'the legend of %s names labels that the query returns',
  (_, expr, legend) => {
    const labels = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
    const grouping = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '));
    expect(labels.filter((label) => !grouping.includes(label))).toEqual([]);
  },
);

describe.each([...dashboards])('the dashboard %s', (_, dashboard) => {
  const { panels = [], templating } = dashboard;

  test('each panel has a unique id', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  });

  test('the dashboard has variables for the data source, the namespace and the job', () => {
    expect(templating?.list?.map(({ name }) => name)).toEqual(['datasource', 'namespace', 'job']);
    const sources = panelsOf(dashboard).flatMap(({ datasource, targets = [] }) => [
      datasource?.uid,
      ...targets.map((target) => (target['datasource'] as { uid: string }).uid),
    ]);
    expect(new Set(sources)).toEqual(new Set(['${datasource}']));
  });

  test('each panel has a unique title, a description in sentences, and a unit', () => {
    const all = panelsOf(dashboard);
    expect(new Set(all.map(({ title }) => title)).size).toBe(all.length);
    for (const { description, fieldConfig } of all)
      expect([description, fieldConfig?.defaults.unit]).toEqual([
        expect.stringMatching(/^[A-Z0-9].*\.$/),
        expect.stringMatching(/./),
      ]);
  });

  test('no panel covers another panel', () => {
    const cells = panels.flatMap(({ gridPos = { x: 0, y: 0, w: 0, h: 0 } }) =>
      Array.from(
        { length: gridPos.w * gridPos.h },
        (__, at) => `${gridPos.x + (at % gridPos.w)},${gridPos.y + Math.floor(at / gridPos.w)}`,
      ),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...cells.map((cell) => Number(cell.split(',')[0])))).toBe(23);
  });
});
