/** Tests the recording rules and alerts of the chart. test/monitoring evaluates these rules with Prometheus. */
import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { percent, thresholds } from '../../../src/runtime/thresholds.ts';
import { queryProblems } from '../../labs/monitoring/metrics.ts';
import { selectorsIn } from '../../labs/monitoring/promql.ts';
import { alerts, root, rules, rulesTestFile } from '../../labs/monitoring/sources.ts';

interface RulesTest {
  readonly alert_rule_test: readonly {
    readonly alertname: string;
    readonly exp_alerts: readonly { readonly exp_labels: { readonly severity: string } }[];
  }[];
}

const titled = alerts.map((alert) => [`${alert.alert} (${alert.labels.severity})`, alert] as const);
const cases = (parse(readFileSync(rulesTestFile, 'utf8')) as { tests: readonly RulesTest[] }).tests.flatMap(
  (one) => one.alert_rule_test,
);

test.each([
  ['a metric that the server does not export', 'platform_apiserver_request_total', ['no metric has this name']],
  ['a label that the metric does not have', 'rate(platform_apiserver_requests_total{status="500"}[5m])', ['status']],
  ['a grouping by a label that the metric does not have', 'sum by (le) (platform_apiserver_open_watches)', ['le']],
  [
    'a label value that the metric never has',
    'platform_apiserver_logins_total{outcome=~"Failed|Limited"}',
    ['outcome="Failed"'],
  ],
])('the check of PromQL queries reports %s', (_, expr, problems) => {
  expect(queryProblems(expr)).toEqual(problems.map((problem) => expect.stringContaining(problem)));
});

test('the check of PromQL queries rejects invalid syntax', () => {
  expect(() => queryProblems('sum by (verb rate(x[5m])')).toThrow('invalid syntax');
});

test.each(rules.map(({ alert, record = alert, expr }) => [String(record), expr]))(
  'the rule %s uses only metrics, labels and label values that the server exports',
  (_, expr) => {
    expect(queryProblems(expr)).toEqual([]);
  },
);

test.each(rules.map(({ alert, record = alert, expr }) => [String(record), expr]))(
  'targets of other namespaces do not influence the rule %s',
  (_, expr) => {
    for (const { metric, text } of selectorsIn(expr))
      expect(text).toContain(
        metric === 'aggregator_unavailable_apiservice'
          ? 'namespace=~"|default|kube-system"'
          : 'namespace="platform-system"',
      );
  },
);

const { errors, slowReads, cacheAge, cacheSize, eventLoopLag, certificateExpiry } = thresholds;

test.each([
  ['ErrorBudgetBurn', 'critical', [14.4 * errors, 14.4 * errors, 6 * errors, 6 * errors]],
  ['ErrorBudgetBurn', 'warning', [errors, errors]],
  ['LatencyBudgetBurn', 'critical', [14.4 * slowReads, 14.4 * slowReads, 6 * slowReads, 6 * slowReads]],
  ['LatencyBudgetBurn', 'warning', [slowReads, slowReads]],
  ['CacheStale', 'critical', [cacheAge]],
  ['CacheNearLimit', 'warning', [cacheSize]],
  ['EventLoopLag', 'warning', [eventLoopLag]],
  ['CertificateExpiry', 'warning', [certificateExpiry.warning]],
  ['CertificateExpiry', 'critical', [certificateExpiry.critical]],
])(
  'the alert PlatformApiserver%s (%s) has the same thresholds as the dashboards and the doctor command',
  (name, severity, values) => {
    const found = alerts.find(
      ({ alert, labels }) => alert === `PlatformApiserver${name}` && labels.severity === severity,
    );
    const products = [...(found?.expr ?? '').matchAll(/ [<>] ([\d. *]+)$/gm)].map(([, product = '']) =>
      product.split(' * '),
    );
    expect(products.map((factors) => factors.reduce((result, factor) => result * Number(factor), 1))).toEqual(values);
  },
);

test.each([
  ['ErrorBudgetBurn', errors],
  ['LatencyBudgetBurn', slowReads],
])(
  'the descriptions of the alert PlatformApiserver%s state the percentage that the objective allows',
  (name, fraction) => {
    const descriptions = alerts
      .filter(({ alert }) => alert === `PlatformApiserver${name}`)
      .map(({ annotations }) => annotations.description);
    expect(descriptions.map((text) => /[\d.]+ %/.exec(text)?.[0])).toEqual(descriptions.map(() => percent(fraction)));
  },
);

test.each(titled)(
  'the alert %s has a severity, and describes the problem in sentences',
  (_, { labels, annotations }) => {
    expect(['critical', 'warning']).toContain(labels.severity);
    expect([annotations.summary, annotations.description]).toEqual([
      expect.stringMatching(/^[A-Z][^{]*\.$/i),
      expect.stringMatching(/\.$/),
    ]);
  },
);

test.each(titled)('the alert %s links to its own runbook', (_, { alert, annotations }) => {
  const [page = '', anchor] = annotations.runbook_url.split('#');
  expect(anchor).toBe(alert.toLowerCase());
  expect(readFileSync(join(root, page), 'utf8').split('\n')).toContain(`### ${alert}`);
});

test.each(titled)(
  'rules.test.yaml has cases in which the alert %s fires and cases in which it does not',
  (_, { alert, labels }) => {
    const ofAlert = cases.filter(({ alertname }) => alertname === alert);
    const severities = ofAlert.flatMap((one) => one.exp_alerts.map(({ exp_labels }) => exp_labels.severity));
    expect(severities).toContain(labels.severity);
    expect(ofAlert.filter((one) => one.exp_alerts.length === 0).length).toBeGreaterThan(0);
  },
);
