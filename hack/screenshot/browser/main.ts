/** Draws a dashboard on Grafana's grid, with the library that draws the lines in Grafana. */
import type { Threshold } from '@grafana/schema';
import uPlot from 'uplot';
import type { DrawnPanel } from './panel.ts';
import { format } from './units.ts';

type Series = DrawnPanel['series'];

const colors: Readonly<Record<string, string>> = { green: '#37872d', orange: '#e0610a', red: '#c4162a' };
const palette = ['#56a64b', '#f2b705', '#3274d9', '#ff780a', '#e02f44', '#8f3bb8', '#19a2a2', '#7c5c3b', '#e685b5'];
const colorOf = (index: number): string => palette[index % palette.length] ?? '';

const last = (series: Series[number] | undefined): number => series?.values.findLast((value) => value !== null) ?? 0;

function element(name: string, ...children: readonly (Node | string)[]): HTMLElement {
  const created = document.createElement(name);
  created.append(...children);
  return created;
}

/** Returns the current value in the color of the highest threshold that it reaches. */
function stat(series: Series, unit: string, steps: readonly Threshold[]): HTMLElement {
  const value = last(series[0]);
  const text = element('strong', format(value, unit));
  text.style.color = colors[steps.findLast((step) => value >= (step.value ?? -Infinity))?.color ?? ''] ?? '';
  return text;
}

/** Returns a table with the last value and the maximum of each time series. */
function legend(series: Series, unit: string): HTMLElement {
  const rows = series.map((one, index) => {
    const marker = element('i');
    marker.style.background = colorOf(index);
    const numbers = [last(one), Math.max(...one.values.map((value) => value ?? 0))];
    return element('tr', element('td', marker, one.legend), ...numbers.map((n) => element('td', format(n, unit))));
  });
  return element('table', element('tr', ...['Name', 'Last', 'Max'].map((head) => element('th', head))), ...rows);
}

/** Returns the sums of each time series and those before it. */
function stack(series: Series): number[][] {
  const sums: number[] = [];
  return series.map(({ values }) => values.map((value, at) => (sums[at] = (sums[at] ?? 0) + (value ?? 0))));
}

interface Style {
  readonly unit: string;
  readonly isStacked: boolean;
  /** Value at which the chart has a red line. */
  readonly limit: number | undefined;
}

function plot(chart: HTMLElement, series: Series, times: readonly number[], { unit, isStacked, limit }: Style): void {
  // Lower lines are drawn later, so that lines of zero values on top of them do not hide them.
  const lines = (isStacked ? stack(series) : series.map(({ values }) => [...values])).toReversed();
  const styles = lines.map((_, index): uPlot.Series => {
    const stroke = colorOf(lines.length - 1 - index);
    return { stroke, width: 1.25, points: { show: false }, ...(isStacked ? { fill: `${stroke}4d` } : {}) };
  });
  if (limit !== undefined) {
    lines.push(times.map(() => limit));
    styles.push({ stroke: colors['red'] ?? '', dash: [6, 4], points: { show: false }, auto: false });
  }
  const axis: uPlot.Axis = { font: '11px sans-serif', grid: { stroke: '#e4e5e6', width: 1 }, ticks: { show: false } };
  const time: uPlot.Axis = {
    ...axis,
    size: 24,
    incrs: [60],
    values: (_, ticks) => ticks.map((tick) => new Date(tick * 1000).toISOString().slice(11, 16)),
  };
  const value: uPlot.Axis = {
    ...axis,
    size: (_, labels) => 14 + 6 * Math.max(...(labels ?? []).map(({ length }) => length)),
    values: (_, ticks) => ticks.map((tick) => format(tick, unit)),
    ...(unit === 'binBps' ? { incrs: Array.from({ length: 40 }, (_, power) => 2 ** power) } : {}),
  };
  const options: uPlot.Options = {
    width: chart.clientWidth,
    height: chart.clientHeight,
    padding: [12, 12, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, __, max) => uPlot.rangeNum(0, max > 0 ? max : (limit ?? 1), 0.1, true) } },
    axes: [time, value],
    series: [{}, ...styles],
    // Each area ends at the line below it.
    bands: isStacked ? series.slice(1).map((_, index) => ({ series: [index + 1, index + 2] })) : [],
  };
  chart.append(new uPlot(options, [[...times], ...lines]).root);
}

function fill(box: HTMLElement, { panel, series }: DrawnPanel, times: readonly number[]): void {
  const { unit = '', custom = {}, thresholds } = ('fieldConfig' in panel && panel.fieldConfig?.defaults) || {};
  const { stacking, thresholdsStyle } = custom as Record<string, { readonly mode: string } | undefined>;
  const steps = thresholds?.steps ?? [];
  if (series.length === 0) box.append(element('strong', 'No data'));
  else if (panel.type === 'stat') box.append(stat(series, unit, steps));
  else {
    const chart = element('figure');
    box.append(chart, legend(series, unit));
    const limit = thresholdsStyle?.mode === 'line' ? (steps.at(-1)?.value ?? undefined) : undefined;
    plot(chart, series, times, { unit, isStacked: stacking?.mode === 'normal', limit });
  }
}

/** Draws a dashboard. `times` are those of the values, in Unix seconds. */
export function draw(title: string, panels: readonly DrawnPanel[], times: readonly number[]): void {
  const grid = element('main');
  document.body.append(element('h1', title), grid);
  for (const drawn of panels) {
    const { title: heading = '', type, gridPos } = drawn.panel;
    const { x, y, w, h } = gridPos ?? { x: 0, y: 0, w: 24, h: 1 };
    const box = element('section', element('h2', heading));
    box.className = type;
    box.style.gridArea = `${y + 1} / ${x + 1} / span ${h} / span ${w}`;
    grid.append(box);
    if (type !== 'row') fill(box, drawn, times);
  }
}
