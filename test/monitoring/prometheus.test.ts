/** Queries of the dashboards and rules, evaluated by a Prometheus that scrapes the running servers. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { buildTimeout } from '../../hack/monitoring/prometheus.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { selectorsIn } from '../labs/monitoring/promql.ts';
import { startPrometheusInLab, type Prometheus, type Sample } from '../labs/monitoring/prometheus.ts';
import { alerts, queries, rules } from '../labs/monitoring/sources.ts';
import { sendTraffic } from '../labs/monitoring/traffic.ts';

/** Parts of selectors and queries that a healthy server has no data for, with the reason. */
const missing: readonly (readonly [part: string, reason: string])[] = [
  ['code=~"5.."', 'no request fails'],
  ['result=~"5.."', 'no request to the log store fails'],
  ['result="error"', 'kube-apiserver responds to every request'],
  ['outcome="Unavailable"', 'no identity provider fails'],
  ['memory_limit_bytes{', 'the processes of the lab may have no memory limit'],
];
const isMissing = (text: string): boolean => missing.some(([part]) => text.includes(part));

const ended = new AbortController();
let prometheus: Prometheus;
let traffic: Promise<void>;

beforeAll(async () => {
  prometheus = await startPrometheusInLab();
  traffic = sendTraffic(ended.signal);
}, buildTimeout);
afterAll(async () => {
  ended.abort();
  await traffic;
  await prometheus.stop();
});

/** Waits until an expression returns numbers. */
const numbers = (expr: string): Promise<Sample[]> =>
  eventually(
    `${expr} returns data`,
    async () => {
      const samples = (await prometheus.query(expr)).filter(({ value }) => Number.isFinite(value));
      if (samples.length === 0) throw new Error('it returns no number');
      return samples;
    },
    90_000,
  );

test('Prometheus scrapes both replicas with the token of a ServiceAccount', async () => {
  await eventually('both replicas are up', async () => {
    const up = await prometheus.query('up{job="platform-apiserver"}');
    expect(up.map(({ value }) => value)).toEqual([1, 1]);
  });
});

const [expected, absent] = [
  queries.filter(({ expr }) => !isMissing(expr)),
  queries.filter(({ expr }) => isMissing(expr)),
];

test.each(expected.map(({ title, expr }) => [title, expr]))('the query %s returns data', async (_, expr) => {
  expect((await numbers(expr)).length).toBeGreaterThan(0);
});

test.each(absent.map(({ title, expr }) => [title, expr]))('the query %s is valid', async (_, expr) => {
  await expect(prometheus.query(expr)).resolves.toBeDefined();
});

const selectors = [...new Set(rules.flatMap(({ expr }) => selectorsIn(expr)).map(({ text }) => text))];

test.each(selectors.filter((text) => !isMissing(text)))('the rules select existing time series: %s', async (text) => {
  expect((await numbers(text)).length).toBeGreaterThan(0);
});

test('Prometheus evaluates every rule without an error', async () => {
  const states = await eventually('all rules have been evaluated', async () => {
    const all = await prometheus.rules();
    expect(all.map(({ health }) => health)).not.toContain('unknown');
    return all;
  });
  expect(states.filter(({ health }) => health !== 'ok')).toEqual([]);
  expect(states.length).toBe(rules.length);
});

test.each(alerts.map(({ alert, labels, expr }) => [`${alert} (${labels.severity})`, expr]))(
  'the condition of the alert %s does not hold on a healthy server',
  async (_, expr) => {
    expect(await prometheus.query(expr)).toEqual([]);
  },
);
