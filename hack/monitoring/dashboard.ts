/** Builds dashboards for Grafana from rows of panels. */
import {
  BigValueColorMode,
  BigValueGraphMode,
  DashboardCursorSync,
  GraphThresholdsStyleMode,
  LegendDisplayMode,
  SortOrder,
  StackingMode,
  ThresholdsMode,
  TooltipDisplayMode,
  VariableRefresh,
  VisibilityMode,
  type Dashboard,
  type GraphFieldConfig,
  type Panel,
  type RowPanel,
  type Threshold,
  type VariableModel,
} from '@grafana/schema';

/** Ids of units in Grafana. */
type Unit = 'short' | 'percentunit' | 's' | 'bytes' | 'binBps' | 'reqps' | 'ops';

export interface PanelText {
  readonly title: string;
  /** Text that explains what the values mean, and when to act. */
  readonly description: string;
  readonly unit: Unit;
}

interface ChartOptions {
  /** True to stack the series, because they are parts of a total. */
  readonly isStacked?: boolean;
  /** Value at which the chart has a red line. */
  readonly limit?: number;
}

/** Color below the first threshold, and colors from each threshold on. */
type Colors = readonly [base: string, ...thresholds: (readonly [value: number, color: string])[]];

interface Size {
  readonly w: number;
  readonly h: number;
}

type Sized = Omit<Panel, 'gridPos'> & { readonly gridPos: Size };

export interface Row {
  readonly title: string;
  readonly panels: readonly Sized[];
}

export interface DashboardText {
  /** Part of the URL of the dashboard. */
  readonly uid: string;
  readonly title: string;
  readonly description: string;
}

/** Width of Grafana's grid in columns. */
const gridWidth = 24;
const datasource = { type: 'prometheus', uid: '${datasource}' };

const thresholds = ([base, ...others]: Colors): { mode: ThresholdsMode; steps: Threshold[] } => ({
  mode: ThresholdsMode.Absolute,
  steps: [{ color: base, value: null }, ...others.map(([value, color]) => ({ color, value }))],
});

const query = (expr: string, legendFormat: string, index: number, isInstant: boolean): Record<string, unknown> => ({
  refId: String.fromCodePoint(65 + index),
  datasource,
  expr,
  legendFormat,
  instant: isInstant,
  range: !isInstant,
});

/** Returns a line chart. The keys of `queries` are the legends. Three charts fill the width. */
export function chart(
  { title, description, unit }: PanelText,
  queries: Readonly<Record<string, string>>,
  { isStacked = false, limit }: ChartOptions = {},
): Sized {
  const custom: GraphFieldConfig = {
    fillOpacity: isStacked ? 30 : 0,
    showPoints: VisibilityMode.Never,
    stacking: { mode: isStacked ? StackingMode.Normal : StackingMode.None, group: 'A' },
    thresholdsStyle: { mode: limit === undefined ? GraphThresholdsStyleMode.Off : GraphThresholdsStyleMode.Line },
  };
  return {
    type: 'timeseries',
    title,
    description,
    datasource,
    gridPos: { w: 8, h: 8 },
    targets: Object.entries(queries).map(([legend, expr], index) => query(expr, legend, index, false)),
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        custom: { ...custom },
        thresholds: thresholds(limit === undefined ? ['green'] : ['green', [limit, 'red']]),
      },
      overrides: [],
    },
    options: {
      legend: {
        displayMode: LegendDisplayMode.Table,
        placement: 'bottom',
        showLegend: true,
        calcs: ['lastNotNull', 'max'],
      },
      tooltip: { mode: TooltipDisplayMode.Multi, sort: SortOrder.Descending },
    },
  };
}

/** Returns a panel with the current value of a query. Six panels fill the width. */
export function stat({ title, description, unit }: PanelText, expr: string, colors: Colors): Sized {
  return {
    type: 'stat',
    title,
    description,
    datasource,
    gridPos: { w: 4, h: 4 },
    targets: [query(expr, '', 0, true)],
    fieldConfig: { defaults: { unit, thresholds: thresholds(colors) }, overrides: [] },
    options: {
      colorMode: BigValueColorMode.Value,
      graphMode: BigValueGraphMode.None,
      reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
    },
  };
}

/** Places the panels of each row from left to right, and the rows one below the other. */
function place(rows: readonly Row[]): (Panel | RowPanel)[] {
  const placed: (Panel | RowPanel)[] = [];
  let y = 0;
  for (const { title, panels } of rows) {
    const gridPos = { x: 0, y, w: gridWidth, h: 1 };
    placed.push({ id: placed.length + 1, type: 'row', title, collapsed: false, gridPos, panels: [] });
    y += 1;
    let x = 0;
    let height = 0;
    for (const panel of panels) {
      const { w, h } = panel.gridPos;
      if (x + w > gridWidth) {
        x = 0;
        y += height;
      }
      placed.push({ id: placed.length + 1, ...panel, gridPos: { x, y, w, h } });
      x += w;
      height = h;
    }
    y += height;
  }
  return placed;
}

/** A variable that selects values of a label of the server's metrics. */
const labelVariable = (name: string, label: string): VariableModel => ({
  type: 'query',
  name,
  label,
  datasource,
  query: { query: `label_values(platform_apiserver_build_info, ${name})`, refId: name },
  refresh: VariableRefresh.onTimeRangeChanged,
  multi: true,
  includeAll: true,
  current: { text: 'All', value: '$__all' },
});

const tag = 'platform-apiserver';

export function dashboard({ uid, title, description }: DashboardText, rows: readonly Row[]): Dashboard {
  return {
    uid,
    title,
    description,
    tags: [tag],
    schemaVersion: 42,
    editable: true,
    graphTooltip: DashboardCursorSync.Crosshair,
    refresh: '1m',
    time: { from: 'now-6h', to: 'now' },
    timezone: 'browser',
    links: [
      {
        title: 'Other dashboards of platform-apiserver',
        type: 'dashboards',
        tags: [tag],
        icon: 'external link',
        tooltip: '',
        asDropdown: false,
        includeVars: true,
        keepTime: true,
        targetBlank: false,
      },
    ],
    templating: {
      list: [
        { type: 'datasource', name: 'datasource', label: 'Prometheus', query: 'prometheus' },
        labelVariable('namespace', 'Namespace'),
        labelVariable('job', 'Job'),
      ],
    },
    panels: place(rows),
  };
}
