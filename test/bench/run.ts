/** Runs the selected cases, prints each result as it arrives, and collects the results. */
import { largeClusterTimeout } from '../../hack/cluster/control-plane.ts';
import { fileURLToPath } from 'node:url';
import { output } from '../../hack/cluster/exec.ts';
import { progress } from '../../hack/cluster/progress.ts';
import { until } from '../../hack/cluster/until.ts';
import { casesOf, labels, type Case } from './cases.ts';
import { changesPerSecond } from './changes.ts';
import { sendOnce } from './connection.ts';
import { termCost, verdicts } from './goals.ts';
import { describeFlood, measureFlood } from './flood.ts';
import { measureHeld } from './held.ts';
import { describeLogs, measureLogs } from './logs.ts';
import { describeLoginFailures, measureLoginFailures } from './login-failures.ts';
import { measureCase, measureRest, type AtRest, type Figures } from './measure.ts';
import { measureMemory } from './memory.ts';
import { measureRevocation } from './revocation.ts';
import type { Stand } from './stand.ts';
import { measureStarts } from './start-up.ts';
import {
  describeMemory,
  describeStart,
  figure,
  ratiosOf,
  ratioTable,
  table,
  watchTable,
  type Ratios,
} from './table.ts';
import { measureWatches } from './watch.ts';
import type { Verification } from './verification.ts';

const watches = {
  watch: { watchers: 1_000, perSecond: changesPerSecond, prefix: 'watchers', withTLS: true },
  many: { watchers: 10_000, perSecond: changesPerSecond / 10, prefix: 'many watchers', withTLS: false },
} as const;

/** Measurements in addition to the cases. */
export const otherNames: readonly string[] = [
  'memory',
  ...Object.keys(watches),
  'held',
  'start',
  'verification',
  'flood',
  'login',
  'revocation',
  'logs',
];

// Measures the verification in a separate process, so that only the garbage of that process is collected.
const measureVerification = async (): Promise<Verification> =>
  JSON.parse(await output(process.execPath, [fileURLToPath(import.meta.resolve('./verification.ts'))])) as Verification;

export class Run {
  /** Results as JSON. */
  readonly results: Record<string, unknown> = {};
  readonly #stand: Stand;
  readonly #signal: AbortSignal;
  readonly #cases: Record<string, Record<string, Figures>> = {};
  readonly #terms: Record<string, number> = {};
  readonly #others: Record<string, number> = {};
  readonly #compared: { name: string; ratios: readonly Ratios[] }[] = [];
  /** Number of changes per second in each round. */
  readonly #rates: number[] = [];
  #right = true;

  constructor(stand: Stand, signal: AbortSignal) {
    this.#stand = stand;
    this.#signal = signal;
  }

  /** True if no response was wrong and no measurement failed. */
  get right(): boolean {
    return this.#right;
  }

  async measure(wanted: readonly string[], churnSeconds: number): Promise<void> {
    const rest = await this.#rest();
    // Measures memory first, because the cases leave memory behind.
    if (wanted.includes('memory')) await this.#memory(churnSeconds);
    for (const one of casesOf(this.#stand)) if (wanted.includes(one.name)) await this.#case(one, rest);
    for (const name of ['watch', 'many'] as const) if (wanted.includes(name)) await this.#watches(name, rest);
    if (wanted.includes('held')) await this.#held();
    if (wanted.includes('start')) await this.#starts();
    if (wanted.includes('verification')) await this.#verification();
    if (wanted.includes('flood')) await this.#flood();
    if (wanted.includes('login')) await this.#logins();
    if (wanted.includes('revocation')) await this.#revocation();
    if (wanted.includes('logs')) await this.#logs();
    console.log(`\n${ratioTable(this.#compared)}`);
    const goals = verdicts({ cases: this.#cases, terms: this.#terms, others: this.#others });
    this.results['goals'] = goals;
    console.log(`\n${goals.join('\n')}\n`);
    if (this.#rates.length > 0)
      console.log(`changes per second in the slowest round of a case: ${figure(Math.min(...this.#rates))}`);
  }

  async #rest(): Promise<readonly AtRest[]> {
    const { site, nginx, changes } = this.#stand;
    const step = progress('at rest');
    const rest = await measureRest(
      [
        { server: 'ours', pids: site.ours.pids },
        { server: 'kube-apiserver', pids: site.kubeApiserver.pids },
        { server: 'etcd', pids: site.etcd.pids },
        { server: 'nginx', pids: nginx.pids },
      ],
      changes.file,
      this.#signal,
    );
    step.end(true);
    this.results['rest'] = rest;
    console.log(`at rest except for ${changesPerSecond} changes of nodes per second:`);
    for (const { server, cpuPerSecond, rss } of rest)
      console.log(`  ${server.padEnd(16)} ${figure(cpuPerSecond)} ms of CPU per second, ${figure(rss)} MB`);
    return rest;
  }

  async #memory(churnSeconds: number): Promise<void> {
    const one = await this.#attempt('memory', () => measureMemory(this.#stand, churnSeconds, this.#signal));
    if (one === undefined) return;
    this.#right &&= one.problems.length === 0;
    console.log(`\n${describeMemory(one)}`);
    this.#others['empty MB'] = one.empty;
    this.#others['rest ÷ JSON'] = (one.rest - one.empty) / one.json;
    this.#others['slow lists ÷ rest'] = one.slowLists.peak / one.slowLists.before;
    this.#others['churn ÷ before'] = one.churn.after / one.churn.before;
  }

  async #case(one: Case, rest: readonly AtRest[]): Promise<void> {
    const { name, title, subjects, terms, quiet = false } = one;
    const { site, changes, smallChanges } = this.#stand;
    const small = subjects.some(({ server }) => server === 'ours, few nodes');
    if (small) await smallChanges.setRate(changesPerSecond);
    if (quiet) await changes.setRate(0);
    const rows = await this.#attempt(name, async () => {
      await this.#prepare(one);
      return measureCase(one, rest, this.#signal);
    });
    if (small) await smallChanges.setRate(0);
    if (quiet) await changes.setRate(changesPerSecond);
    if (rows === undefined) return;
    const good = rows.filter(({ problems }) => problems.length === 0);
    this.#right &&= good.length === rows.length;
    console.log(`\n${table(`${name}: ${title}`, rows)}`);
    const ratios = ratiosOf(rows);
    this.#compared.push({ name, ratios });
    this.#cases[name] = Object.fromEntries(good.map(({ subject, figures }) => [subject.label, figures]));
    const cost = terms === undefined ? undefined : termCost(this.#cases, name, site.size.nodes, terms);
    if (cost !== undefined) {
      this.#terms[name] = cost;
      console.log(`  ${figure(cost)} ns per object and term, in addition to a repeated query`);
    }
    if (!quiet) for (const { rounds } of rows) this.#rates.push(...rounds.map((round) => round.changes));
    this.results[name] = { ratios, rows: rows.map(({ subject: { label }, ...row }) => ({ label, ...row })), cost };
  }

  async #prepare({ first }: Case): Promise<void> {
    if (first === undefined) return;
    const { check } = this.#stand.site.ours;
    const has = async (): Promise<boolean> => {
      const { status, body } = await sendOnce(first.target, first.text);
      if (status !== 200) throw new Error(`status ${status}: ${String(body)}`);
      return true;
    };
    await until('the server has the requested objects', check, has, largeClusterTimeout);
  }

  async #watches(name: keyof typeof watches, rest: readonly AtRest[]): Promise<void> {
    const { watchers, perSecond, prefix } = watches[name];
    const all = await this.#attempt(name, () => measureWatches(this.#stand, rest, watches[name], this.#signal));
    if (all === undefined) return;
    console.log(`\n${watchTable(`${name}: ${watchers} watches of whole nodes, ${perSecond} changes per second`, all)}`);
    this.#right &&= all.every(({ server, problems, lost }) => server !== 'ours' || problems.length + lost === 0);
    const ours = all.find(({ label }) => label === labels.plain);
    if (ours === undefined) return;
    this.#others[`${prefix}: lost`] = ours.lost;
    this.#others[`${prefix}: p99 ms`] = ours.p99;
    this.#others[`${prefix}: µs an event`] = ours.cpu;
  }

  async #held(): Promise<void> {
    const one = await this.#attempt('held', () => measureHeld(this.#stand, this.#signal));
    if (one === undefined) return;
    this.#right &&= one.problems.length === 0;
    const { watches: count, before, after, problems } = one;
    console.log(
      `\nheld: ${count} watches through the gateway: ${figure(before)} MB before, ${figure(after)} MB with them`,
    );
    for (const problem of problems) console.log(`  WRONG: ${problem}`);
    this.#others['held: MB'] = after - before;
  }

  async #starts(): Promise<void> {
    const one = await this.#attempt('start', () => measureStarts(this.#stand, this.#signal));
    if (one === undefined) return;
    console.log(`\n${describeStart(one)}`);
    this.#others['start-up: ready ms'] = one.ready;
    this.#others['start-up: list ms'] = one.listAfterUpstream;
  }

  async #verification(): Promise<void> {
    const one = await this.#attempt('verification', measureVerification);
    if (one === undefined) return;
    const { known, fresh } = one;
    console.log(
      `\nverification: µs of CPU per token: known ${figure(known)}, new ES256 ${figure(fresh.ES256)}, RS256 ${figure(fresh.RS256)}`,
    );
    this.#others['verification: known µs'] = known;
    this.#others['verification: new µs'] = Math.max(fresh.ES256, fresh.RS256);
  }

  async #flood(): Promise<void> {
    const one = await this.#withoutChanges('flood', () => measureFlood(this.#stand, this.#signal));
    if (one === undefined) return;
    this.#right &&= one.problems.length === 0;
    console.log(`\n${describeFlood(one)}`);
    const { idle, during } = one;
    this.#others['flood: p99 ÷ alone'] = during.p99 / idle.p99;
    this.#others['flood: loop ms'] = during.loopP99 - idle.loopP99;
  }

  async #logins(): Promise<void> {
    const { site, users } = this.#stand;
    const one = await this.#attempt('login', () => measureLoginFailures(site.ours.plain, users, this.#signal));
    if (one === undefined) return;
    this.#right &&= one.problems.length === 0;
    console.log(`\n${describeLoginFailures(one)}`);
  }

  async #revocation(): Promise<void> {
    const { site, users } = this.#stand;
    const one = await this.#attempt('revocation', () => measureRevocation(site, users, this.#signal));
    if (one === undefined) return;
    console.log(
      `\nrevocation: another replica rejects the token after ${figure(one.p50)} ms, at most ${figure(one.max)} ms`,
    );
    this.#others['revocation: ms'] = one.max;
  }

  async #logs(): Promise<void> {
    const one = await this.#withoutChanges('logs', () => measureLogs(this.#stand, this.#signal));
    if (one === undefined) return;
    this.#right &&= one.problems.length === 0;
    console.log(`\n${describeLogs(one)}`);
    const { query, export: rates, rss, pages } = one;
    this.#others['logs: ms'] = query.ours - query.direct;
    this.#others['logs: export ÷ direct'] = rates.ours / rates.direct;
    this.#others['logs: second half ÷ first'] = rss.secondHalf / rss.firstHalf;
    this.#others['logs: page ÷ alone'] = pages.during.p50 / pages.idle.p50;
  }

  /** Measures while no node changes. */
  async #withoutChanges<T>(name: string, work: () => Promise<T>): Promise<T | undefined> {
    const { changes } = this.#stand;
    await changes.setRate(0);
    const result = await this.#attempt(name, work);
    await changes.setRate(changesPerSecond);
    return result;
  }

  /** Reports a failed measurement, and continues with the other measurements. */
  async #attempt<T>(name: string, work: () => Promise<T>): Promise<T | undefined> {
    const step = progress(name);
    try {
      const result = await work();
      step.end(true);
      this.results[name] = result;
      return result;
    } catch (error) {
      step.end(false);
      this.#signal.throwIfAborted();
      console.error(error);
      this.#right = false;
      return undefined;
    }
  }
}
