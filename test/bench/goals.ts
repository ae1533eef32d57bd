/** Goals for the figures of a run, and the check of the figures against the goals. */
import { labels } from './cases.ts';
import type { Figures } from './measure.ts';
import { figure } from './table.ts';

/** Results of a run. Figures that were not measured are missing. */
export interface Findings {
  /** Figures by case and subject. */
  readonly cases: Readonly<Record<string, Readonly<Record<string, Figures>>>>;
  /** Nanoseconds per object and term, by case. */
  readonly terms: Readonly<Record<string, number>>;
  /** Figures of other measurements, by name. */
  readonly others: Readonly<Record<string, number>>;
}

export interface Goal {
  readonly what: string;
  readonly limit: number;
  /** True if the limit is a minimum instead of a maximum. */
  readonly atLeast?: boolean;
  readonly unit?: string;
  /** Returns the figure, or undefined if it was not measured. */
  readonly of: (found: Findings) => number | undefined;
}

const cpu = (name: string, label: string) => (found: Findings) => found.cases[name]?.[label]?.cpu;

const both =
  (combine: (one: number, other: number) => number) =>
  (one: number | undefined, other: number | undefined): number | undefined =>
    one === undefined || other === undefined ? undefined : combine(one, other);
const quotient = both((one, other) => one / other);
const difference = both((one, other) => one - other);

const ratio = (name: string, label: string, by: string) => (found: Findings) =>
  quotient(cpu(name, label)(found), cpu(name, by)(found));

const other = (name: string) => (found: Findings) => found.others[name];

const pages = {
  page: 'by name',
  created: 'by creation time',
  label: 'by label',
  end: 'near the end',
  namespace: 'by namespace',
};
const filters = ['contains', 'in', 'notin', 'exists', 'field', 'sorted'];

export const goals: readonly Goal[] = [
  { what: 'full list ÷ nginx', limit: 1.5, of: ratio('list', labels.plain, labels.nginx) },
  { what: 'kube-apiserver ÷ full list', limit: 15, atLeast: true, of: ratio('list', labels.cached, labels.plain) },
  { what: 'full list TLS ÷ nginx TLS', limit: 1.5, of: ratio('list', labels.tls, labels.nginxTLS) },
  { what: 'full list gzip ÷ nginx gzip_static', limit: 2, of: ratio('gzip', labels.plain, labels.nginx) },
  {
    what: 'kube-apiserver gzip ÷ full list gzip',
    limit: 80,
    atLeast: true,
    of: ratio('gzip', labels.cached, labels.plain),
  },
  ...Object.entries(pages).map(([name, how]) => ({
    what: `page ${how}`,
    limit: 0.1,
    unit: 'ms',
    of: cpu(name, labels.plain),
  })),
  ...(['page', 'created', 'label'] as const).map((name) => ({
    what: `page ${pages[name]} ÷ the same of 10 nodes`,
    limit: 1.2,
    of: ratio(name, labels.plain, labels.few),
  })),
  ...filters.map((name) => ({
    what: `${name}: per object and term`,
    limit: 25,
    unit: 'ns',
    of: (found: Findings) => found.terms[name],
  })),
  ...filters.map((name) => ({
    what: `${name}: repeated query`,
    limit: 0.1,
    unit: 'ms',
    of: cpu(name, labels.again),
  })),
  { what: 'get', limit: 0.07, unit: 'ms', of: cpu('get', labels.plain) },
  { what: 'get ÷ node:http', limit: 2.5, of: ratio('get', labels.plain, labels.bare) },
  { what: 'kube-apiserver ÷ get', limit: 6, atLeast: true, of: ratio('get', labels.cached, labels.plain) },
  { what: 'health', limit: 0.04, unit: 'ms', of: cpu('health', labels.plain) },
  { what: 'gateway', limit: 0.2, unit: 'ms', of: cpu('gateway', labels.gatewayTLS) },
  {
    what: 'gateway ÷ kube-apiserver, requests',
    limit: 0.7,
    atLeast: true,
    of: ({ cases: { gateway } }) =>
      quotient(gateway?.[labels.gatewayTLS]?.perSecond, gateway?.[labels.latest]?.perSecond),
  },
  {
    what: 'gateway: p50 of one at a time, more by',
    limit: 0.3,
    unit: 'ms',
    of: ({ cases: { 'gateway-alone': alone } }) =>
      difference(alone?.[labels.gatewayTLS]?.p50, alone?.[labels.latest]?.p50),
  },
  {
    what: 'gateway ÷ kube-apiserver, full lists',
    limit: 0.8,
    atLeast: true,
    of: ({ cases: { 'gateway-list': list } }) =>
      quotient(list?.[labels.gatewayTLS]?.perSecond, list?.[labels.latest]?.perSecond),
  },
  { what: 'gateway: RSS for 1,000 watches', limit: 100, unit: 'MB', of: other('held: MB') },
  { what: 'RSS with an empty store', limit: 120, unit: 'MB', of: other('empty MB') },
  { what: 'RSS above that ÷ JSON', limit: 1.6, of: other('rest ÷ JSON') },
  { what: 'RSS with 50 slow full lists ÷ rest', limit: 1.2, of: other('slow lists ÷ rest') },
  { what: 'RSS after churn ÷ before', limit: 1.05, of: other('churn ÷ before') },
  ...Object.entries({ 10: 0.4, 100: 0.2, 1000: 0.1 }).map(([rate, limit]) => ({
    what: `following a change, at ${rate} per second`,
    limit,
    unit: 'ms',
    of: other(`changes: ms at ${rate}`),
  })),
  { what: 'events lost by 1,000 watchers', limit: 0, of: other('watchers: lost') },
  { what: 'watchers: p99', limit: 100, unit: 'ms', of: other('watchers: p99 ms') },
  { what: 'watchers: CPU per event', limit: 6, unit: 'µs', of: other('watchers: µs an event') },
  { what: 'events lost by 10,000 watchers', limit: 0, of: other('many watchers: lost') },
  { what: 'verification of a known token', limit: 10, unit: 'µs', of: other('verification: known µs') },
  { what: 'verification of a new token', limit: 200, unit: 'µs', of: other('verification: new µs') },
  {
    what: 'login without its hash',
    limit: 1,
    unit: 'ms',
    of: ({ cases: { token } }) => difference(token?.[labels.login]?.cpu, token?.[labels.hash]?.cpu),
  },
  {
    what: 'logins ÷ bare hashes',
    limit: 0.9,
    atLeast: true,
    of: ({ cases: { token } }) => quotient(token?.[labels.login]?.perSecond, token?.[labels.hash]?.perSecond),
  },
  { what: 'many accounts: start ÷ upstream lists', limit: 1.5, of: other('accounts: start ÷ lists') },
  { what: 'many accounts: RSS, more by', limit: 150, unit: 'MB', of: other('accounts: MB') },
  { what: 'many accounts: logins ÷ few', limit: 0.9, atLeast: true, of: other('accounts: logins ÷ few') },
  { what: 'many accounts: refreshes ÷ few', limit: 0.9, atLeast: true, of: other('accounts: refreshes ÷ few') },
  { what: 'refreshes ÷ bare writes', limit: 0.9, atLeast: true, of: other('accounts: refreshes ÷ writes') },
  { what: 'refreshes lost', limit: 0, of: other('accounts: lost') },
  { what: 'many accounts: CPU of the sweeper', limit: 5, unit: '%', of: other('accounts: sweep %') },
  { what: 'many accounts: event loop, delayed more by', limit: 10, unit: 'ms', of: other('accounts: loop ms') },
  { what: 'p99 of a page during 50 logins ÷ alone', limit: 3, of: other('flood: p99 ÷ alone') },
  { what: 'event loop p99 during 50 logins, more by', limit: 10, unit: 'ms', of: other('flood: loop ms') },
  { what: 'revoked token rejected by another replica', limit: 1000, unit: 'ms', of: other('revocation: ms') },
  { what: 'page of 5,000 of 20,000 namespaces', limit: 1, unit: 'ms', of: other('my namespaces: ms') },
  { what: 'query of logs, p50 more than the store by', limit: 2, unit: 'ms', of: other('logs: ms') },
  { what: 'export of logs ÷ the store itself', limit: 0.8, atLeast: true, of: other('logs: export ÷ direct') },
  { what: 'RSS in an export: second half ÷ first', limit: 1.05, of: other('logs: second half ÷ first') },
  { what: 'p50 of a page during 100 queries ÷ alone', limit: 3, of: other('logs: page ÷ alone') },
  { what: 'ready after start', limit: 1000, unit: 'ms', of: other('start-up: ready ms') },
  { what: 'first list after the upstream list', limit: 1000, unit: 'ms', of: other('start-up: list ms') },
];

/** Returns a line for each measured goal. */
export function verdicts(found: Findings): string[] {
  return goals.flatMap(({ what, limit, atLeast = false, unit = '', of }) => {
    const value = of(found);
    if (value === undefined) return [];
    const met = atLeast ? value >= limit : value <= limit;
    const by = atLeast ? limit / value : value / limit;
    const wanted = `${atLeast ? '≥' : '≤'} ${figure(limit)}${unit === '' ? '' : ` ${unit}`}`;
    const verdict = met ? 'met' : `MISSED${Number.isFinite(by) ? ` by ×${figure(by)}` : ''}`;
    return [`${what.padEnd(44)} ${figure(value).padStart(10)}   ${wanted.padEnd(12)} ${verdict}`];
  });
}

/**
 * Returns the cost per object and term of the filters of a case. The cost of a cached page is subtracted. Returns
 * undefined unless both the case and the cached page were measured.
 */
export function termCost(found: Findings['cases'], name: string, nodes: number, terms: number): number | undefined {
  const filtered = found[name]?.[labels.first]?.cpu;
  const page = found[name]?.[labels.again]?.cpu;
  return filtered === undefined || page === undefined ? undefined : ((filtered - page) * 1e6) / nodes / terms;
}
