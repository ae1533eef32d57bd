/**
 * make bench: our server beside kube-apiserver and nginx on this machine, as ratios; Linux only. See `usage`.
 * Ends with 1 if an answer was wrong, never because of a time.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { cpus, loadavg, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { stopControlPlane } from '../../hack/cluster/control-plane.ts';
import { withLock } from '../../hack/cluster/lock.ts';
import { findAll, stop } from '../../hack/cluster/processes.ts';
import { progress, seconds } from '../../hack/cluster/progress.ts';
import { caseNames, casesOf, furtherNames, labels } from './cases.ts';
import { changesIn, changesPerSecond } from './changes.ts';
import { termCost, verdicts } from './goals.ts';
import { concurrency, roundSeconds } from './job.ts';
import { describeLoginFailures, measureLoginFailures } from './login-failures.ts';
import { measureCase, measureRest, type Figures } from './measure.ts';
import { measureMemory } from './memory.ts';
import { callers } from './readers.ts';
import type { Size } from './seed.ts';
import { few, foldersOf, startStand, type Stand } from './stand.ts';
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

const others = ['watch', 'many', 'memory', 'start', 'login'];
const names = [...caseNames, ...others];
const usual = names.filter((name) => !furtherNames.includes(name) && name !== 'login');

const usage = `make bench [CASES="${names.join(' ')}"] [NODES=5000] [PODS=0] [CHURN=120] [RESULTS=FILE]

Starts a control plane with so many nodes and pods, of which ${changesPerSecond} nodes change each second, and one with ${few} nodes; our server behind
each as make run starts it; and nginx with files of the bytes that our server answers. Takes less than ten minutes with 5,000 nodes.
CASES=all is everything; without CASES these are left out: ${names.filter((name) => !usual.includes(name)).join(', ')}. CHURN is
how many seconds memory is watched while 200 nodes change each second; 3600 is an hour. RESULTS names a new file for every figure, as
JSON. What etcd holds at the start is kept in the cache of the cluster's programs, under bench.

Each case asks every server in turn, three rounds of ${roundSeconds} s: ${concurrency} connections with HTTP/1.1, each with one request at a time (4 for full
lists), of ${callers} callers with their own tokens. Ours and kube-apiserver authenticate and authorize them, nginx and node:http do not;
in each round as many callers are new to the servers' caches of 10 s as would be in the long run. Status and size of every answer are
checked, and the whole of some. Everything is on loopback and shares the machine's cores: ratios within one run mean something, times
do not.

  CPU ms     of the server's processes, a request. kube-apiserver's is without what the changes cost it at rest, for it alone takes them.
  behind ms  of those it asks in its turn (kube-apiserver, etcd), likewise without what the changes cost
  >          the load generator was what limited the requests, so that CPU alone says something about the server
  RSS, peak  after the round, and the most in it; the servers are not started anew between cases

kube-apiserver sends managedFields, which ours leaves out unless asked: compare body KB. "watch" holds 1,000 watches and "many"
10,000, each of which must get every change. "memory" and "start" are of our server alone. "login" tells whether the time of a refused login
tells why it was refused.`;

/** Always the same, so that a bench that was killed is cleared away by the next. */
const dir = join(tmpdir(), `platform-apiserver-bench-${userInfo().uid}`);

const watchCases = [
  ['watch', 'watchers', 1_000, changesPerSecond],
  ['many', 'many watchers', 10_000, changesPerSecond / 10],
] as const;

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    interrupted.abort(new Error(`ended by ${signal}`));
    // What is under way fails at once and does not wait for its end.
    for (const folder of foldersOf(dir)) for (const running of findAll(folder)) void stop(folder, running, 'SIGKILL');
  });

try {
  if (process.argv.length > 2) {
    console.log(usage);
  } else {
    const chosen = settings();
    const right = await withLock(
      'bench',
      () => bench(chosen),
      () => console.error('waiting for another bench on this machine'),
    );
    process.exitCode = right ? 0 : 1;
  }
} catch (error) {
  console.error(interrupted.signal.aborted ? interrupted.signal.reason : error);
  process.exitCode = 1;
}

interface Settings {
  readonly wanted: readonly string[];
  readonly size: Size;
  readonly churnSeconds: number;
  readonly file: string;
}

function settings(): Settings {
  const { CASES = '', RESULTS = '' } = process.env;
  const named = CASES.split(/[ ,]+/).filter((name) => name !== '');
  const unknown = named.filter((name) => name !== 'all' && !names.includes(name));
  if (unknown.length > 0) throw new Error(`no such case: ${unknown.join(', ')}; there are ${names.join(', ')}`);
  return {
    wanted: named.includes('all') ? names : named.length === 0 ? usual : named,
    size: { nodes: number('NODES', 5000), pods: number('PODS', 0) },
    churnSeconds: number('CHURN', 120),
    file: RESULTS,
  };
}

function number(variable: string, usually: number): number {
  const text = process.env[variable] || String(usually);
  if (!/^\d{1,6}$/.test(text) || (text === '0' && usually > 0)) throw new Error(`${variable} is a number, not ${text}`);
  return Number(text);
}

async function bench({ wanted, size, churnSeconds, file }: Settings): Promise<boolean> {
  await clear();
  await mkdir(dir, { recursive: true, mode: 0o700 });
  // Before anything takes its time: it may not be possible, or overwrite something.
  if (file !== '') await writeFile(file, '', { flag: 'wx' });
  let stand: Stand | undefined;
  try {
    const begin = performance.now();
    const [load = 0] = loadavg();
    stand = await startStand(dir, size);
    console.error(`everything runs after ${seconds(begin)}`);
    const { right, ...results } = await run(stand, wanted, churnSeconds);
    const { length: cores } = cpus();
    console.log(`${size.nodes} nodes, ${size.pods} pods, ${seconds(begin)}`);
    console.log(`${cores} cores of ${cpus()[0]?.model}; load before: ${figure(load)}`);
    if (load > cores / 2)
      console.log('the machine was busy before: times mean nothing, and CPU is more than it need be');
    const machine = { cores, model: cpus()[0]?.model, load };
    const date = new Date().toISOString();
    if (file !== '') await writeFile(file, `${JSON.stringify({ date, machine, ...size, ...results }, undefined, 1)}\n`);
    return right;
  } finally {
    await stand?.close();
    await clear();
  }
}

/** Ends whatever runs and removes the state. */
async function clear(): Promise<void> {
  for (const folder of foldersOf(dir)) await stopControlPlane(folder);
  await rm(dir, { recursive: true, force: true });
}

async function run(
  stand: Stand,
  wanted: readonly string[],
  churnSeconds: number,
): Promise<{ right: boolean } & Record<string, unknown>> {
  const { signal } = interrupted;
  const { site, changes, nginx } = stand;
  const results: Record<string, unknown> = {};
  const figures: Record<string, number> = {};
  let right = true;
  const before = { changes: changesIn(changes.file), time: performance.now() };

  const atRest = await showing('at rest', () =>
    measureRest(
      [
        { server: 'ours', pids: site.ours.pids, changes: changes.file },
        { server: 'kube-apiserver', pids: site.kubeApiserver.pids, changes: changes.file },
        { server: 'etcd', pids: site.etcd.pids, changes: changes.file },
        { server: 'nginx', pids: nginx.pids, changes: changes.file },
      ],
      signal,
    ),
  );
  results['rest'] = atRest;
  console.log(`at rest, but for ${changesPerSecond} changes of nodes a second:`);
  for (const { server, cpuPerSecond, rss } of atRest)
    console.log(`  ${server.padEnd(16)} ${figure(cpuPerSecond)} ms of CPU a second, ${figure(rss)} MB`);

  // First of all: what the cases leave in memory is no rest.
  if (wanted.includes('memory')) {
    const one = await showing('memory', () => measureMemory(stand, churnSeconds, signal));
    right &&= one.problems.length === 0;
    console.log(`\n${describeMemory(one)}`);
    figures['empty MB'] = one.empty;
    figures['rest ÷ JSON'] = (one.rest - one.empty) / one.json;
    figures['slow lists ÷ rest'] = one.slowLists.peak / one.slowLists.before;
    figures['churn ÷ before'] = one.churn.after / one.churn.before;
    results['memory'] = one;
  }

  const rates: number[] = [];
  const compared: { name: string; ratios: readonly Ratios[] }[] = [];
  const found: Record<string, Record<string, Figures>> = {};
  const terms: Record<string, number> = {};
  for (const one of casesOf(stand).filter(({ name }) => wanted.includes(name))) {
    const { name, title } = one;
    const small = one.subjects.some(({ server }) => server === 'ours, few nodes');
    if (small) await stand.smallChanges.setRate(changesPerSecond);
    const rows = await showing(name, () => measureCase(one, atRest, signal));
    if (small) await stand.smallChanges.setRate(0);
    const ratios = ratiosOf(rows);
    right &&= rows.every(({ problems }) => problems.length === 0);
    console.log(`\n${table(`${name}: ${title}`, rows)}`);
    compared.push({ name, ratios });
    found[name] = Object.fromEntries(
      rows.filter(({ problems }) => problems.length === 0).map(({ subject, figures: of }) => [subject.label, of]),
    );
    const cost = one.terms === undefined ? undefined : termCost(found, name, site.size.nodes, one.terms);
    if (cost !== undefined) {
      terms[name] = cost;
      console.log(`  ${figure(cost)} ns an object and term, beyond a page without any`);
    }
    for (const { subject, rounds } of rows)
      if (subject.server !== 'raw hash') rates.push(...rounds.map(({ changes: arrived }) => arrived));
    results[name] = { ratios, rows: rows.map(({ subject: { label }, ...row }) => ({ label, ...row })) };
  }
  for (const [name, prefix, watchers, rate] of watchCases) {
    if (!wanted.includes(name)) continue;
    const all = await showing(name, () => measureWatches(stand, atRest, watchers, rate, signal));
    right &&= all.every(({ server, problems, lost }) => server !== 'ours' || (problems.length === 0 && lost === 0));
    console.log(`\n${watchTable(`${name}: ${watchers} watches of whole nodes, ${rate} changes a second`, all)}`);
    const ours = all.find(({ label }) => label === labels.plain);
    if (ours !== undefined) {
      figures[`${prefix}: lost`] = ours.lost;
      figures[`${prefix}: p99 ms`] = ours.p99;
      figures[`${prefix}: µs an event`] = ours.cpu;
    }
    results[name] = all;
  }
  if (wanted.includes('start')) {
    const one = await showing('start', () => measureStarts(stand, signal));
    console.log(`\n${describeStart(one)}`);
    figures['start-up: ready ms'] = one.ready;
    figures['start-up: list ms'] = one.listAfterUpstream;
    results['start'] = one;
  }
  if (wanted.includes('login')) {
    const failures = await showing('login', () => measureLoginFailures(site.ours.plain, stand.users, signal));
    right &&= failures.problems.length === 0;
    results['login'] = failures;
    console.log(`\n${describeLoginFailures(failures)}`);
  }
  console.log(`\n${ratioTable(compared)}`);
  const judged = verdicts({ cases: found, terms, others: figures });
  results['goals'] = judged;
  console.log(`\n${judged.join('\n')}`);

  const rate = (changesIn(changes.file) - before.changes) / ((performance.now() - before.time) / 1000);
  results['changesPerSecond'] = rate;
  const slowest = rates.length === 0 ? '' : `; in the slowest round ${figure(Math.min(...rates))}`;
  console.log(`\nchanges a second: ${figure(rate)}${slowest}`);
  return { right, ...results };
}

async function showing<T>(title: string, work: () => Promise<T>): Promise<T> {
  const step = progress(title);
  try {
    const result = await work();
    step.end(true);
    return result;
  } catch (error) {
    step.end(false);
    throw error;
  }
}
