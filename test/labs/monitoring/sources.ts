/** The rules and dashboards of the chart, and the tests of the rules. */
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Dashboard, Panel, RowPanel } from '@grafana/schema';
import { parse } from 'yaml';

export const root = join(import.meta.dirname, '../../..');
const folder = join(root, 'charts/platform-apiserver/monitoring');

/** Rule file of Prometheus. */
export const rulesFile = join(folder, 'rules.yaml');
/** Test file of promtool. */
export const rulesTestFile = join(root, 'test/monitoring/rules.test.yaml');

export interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface Alert extends Rule {
  readonly alert: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string; readonly runbook_url: string };
}

interface RuleFile {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
}

export const rules = (parse(readFileSync(rulesFile, 'utf8')) as RuleFile).groups.flatMap((group) => group.rules);
export const alerts = rules.filter((rule): rule is Alert => rule.alert !== undefined);

/** The dashboards by file name. */
export const dashboards = new Map(
  globSync('dashboards/*.json', { cwd: folder })
    .toSorted()
    .map((file) => [basename(file), JSON.parse(readFileSync(join(folder, file), 'utf8')) as Dashboard]),
);

/** Values that replace the variables of Grafana and of the dashboards in queries. */
const variables: Readonly<Record<string, string>> = {
  __rate_interval: '1m',
  __range: '1h',
  namespace: 'platform-system',
  job: 'platform-apiserver',
};

/** Returns an expression with values for its variables. `ranges` replaces values. Throws if a variable is unknown. */
export const substitute = (expr: string, ranges: Readonly<Record<string, string>> = {}): string =>
  expr.replaceAll(/\$(\w+)/g, (_, name: string) => {
    const value = ranges[name] ?? variables[name];
    if (value === undefined) throw new Error(`unknown variable ${name}: ${expr}`);
    return value;
  });

export interface Query {
  /** Dashboard, panel and legend of the query, such as `overview.json, Requests by verb, {{verb}}`. */
  readonly title: string;
  readonly expr: string;
  readonly legend: string;
}

/** A query of a panel. */
export type Target = Readonly<Record<'expr' | 'legendFormat', string>>;

export const isPanel = (panel: Panel | RowPanel): panel is Panel => panel.type !== 'row';

export const panelsOf = ({ panels = [] }: Dashboard): Panel[] => panels.filter(isPanel);

/** The queries of all dashboards, in which values replace the variables. */
export const queries: readonly Query[] = [...dashboards].flatMap(([file, dashboard]) =>
  panelsOf(dashboard).flatMap(({ title = '', targets = [] }) =>
    (targets as Target[]).map(({ expr, legendFormat: legend }) => ({
      title: [file, title, ...(legend === '' ? [] : [legend])].join(', '),
      expr: substitute(expr),
      legend,
    })),
  ),
);
