/**
 * `make bench` compares our server with kube-apiserver and nginx on this machine, as ratios. The command runs only on
 * Linux (see `usage`). The exit code is 1 if a response was wrong or a shortcut of the hot path saves too little. The
 * exit code never depends on a duration.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { cpus, loadavg, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { stopControlPlane } from '../../hack/cluster/control-plane.ts';
import { withLock } from '../../hack/cluster/lock.ts';
import { findAll, stop } from '../../hack/cluster/processes.ts';
import { seconds } from '../../hack/cluster/progress.ts';
import type { AccountSizes } from './accounts.ts';
import { aloneCases, type AloneOptions } from './alone.ts';
import { compareBuilds, describeComparisons } from './builds.ts';
import { caseNames, furtherNames } from './cases.ts';
import { changesPerSecond } from './changes.ts';
import { concurrency, loginSeconds, roundSeconds } from './job.ts';
import { callers } from './readers.ts';
import type { Size } from './seed.ts';
import { few, foldersOf, startStand, type Stand } from './stand.ts';
import { Run, otherNames } from './run.ts';
import { figure } from './table.ts';

const names = [...caseNames, ...otherNames, ...aloneCases.keys()];
const usual = names.filter((name) => ![...furtherNames, 'login', 'logs', ...aloneCases.keys()].includes(name));

const usage = `make bench [CASES="${names.join(' ')}"] [NODES=5000] [PODS=0] [USERS=50000] [SESSIONS=100000] [CHURN=120] [BEFORE=CHECKOUT] [RESULTS=FILE]

Starts a control plane with NODES nodes and PODS pods, where ${changesPerSecond} nodes change per second, and one with ${few} nodes; our server with
each, as make run starts it; and nginx with the bytes of our responses as files. Takes less than ten minutes with 5,000 nodes.
CASES=all runs everything; by default these are left out: ${names.filter((name) => !usual.includes(name)).join(', ')}. CHURN is
the number of seconds for which memory is observed while 200 nodes change per second. RESULTS is a new file for all figures in
JSON. BEFORE is another checkout of this repository with installed packages: its server and two of this checkout then take
turns at the cases, and nothing else is measured. Initial data of etcd is cached with the cluster's programs, under bench.

Each case measures every server in turn, with one warm-up round and three counted ones of ${roundSeconds} s (logins: ${loginSeconds} s): ${concurrency} connections with
HTTP/1.1 (4 for full lists), each with one request at a time, from ${callers} callers with their own tokens. Ours and kube-apiserver authenticate and authorize them, nginx and node:http do not.
In each round, as many callers are new to the servers' caches of 10 s as on average. Status and size of every response are
checked, and some responses completely. Everything runs on loopback and shares the machine's cores: only ratios within one run are
meaningful, durations are not.

  CPU ms     per request, of the server's processes. For kube-apiserver, which alone receives the changes, it
             excludes their cost at rest.
  behind ms  CPU of the servers behind it (kube-apiserver, etcd), also without the cost of changes.
  alone ms   CPU without the cost of changes at rest, for our server, too.
  cores      cores used by the servers. Far below 1, other processes used them: then fixed costs per second
             (following changes, new callers) weigh more on each request.
  >          the load generator was the bottleneck, so only CPU is meaningful.
  RSS, peak  after the round, and the peak during it; servers are not restarted between cases.

kube-apiserver sends managedFields, which ours omits by default: compare body KB. "watch" holds 1,000 watches and "many"
10,000, each of which must receive every change. "memory" and "start" measure only our server. "login" tests if the duration of a failed login
reveals the reason. "logs" fills an OpenSearch, which takes minutes. "fairness" lets one user or address use as much as possible of
each shared resource while twenty others use it; "event-loop" sends the most expensive input of each endpoint. "hot-path" compares each shortcut
of the hot path with the code without it and fails if it saves too little. "changes" follows a replayed watch of 5,000 nodes at
10, 100 and 1,000 changes per second. These four need no control plane.
"accounts" starts two control planes, one of them with USERS users and SESSIONS sessions, and compares our servers. "my-namespaces" starts
one with 20,000 namespaces.`;

/** The path is fixed, so that a benchmark cleans up after an earlier benchmark that was killed. */
const dir = join(tmpdir(), `platform-apiserver-bench-${userInfo().uid}`);

const interrupted = new AbortController();
/**
 * False while this benchmark waits for another benchmark to end. While waiting, this benchmark must not end processes,
 * because they belong to the other benchmark.
 */
let started = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    if (!started) process.exit(1);
    interrupted.abort(new Error(`ended by ${signal}`));
    // Ending the processes makes the running measurement fail immediately.
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
  readonly accounts: AccountSizes;
  readonly churnSeconds: number;
  readonly file: string;
  /** Path of another checkout, or ''. */
  readonly before: string;
}

function settings(): Settings {
  const { CASES = '', RESULTS = '', BEFORE = '' } = process.env;
  const named = CASES.split(/[ ,]+/).filter((name) => name !== '');
  const unknown = named.filter((name) => name !== 'all' && !names.includes(name));
  if (unknown.length > 0) throw new Error(`no such case: ${unknown.join(', ')}; there are ${names.join(', ')}`);
  return {
    wanted: named.includes('all') ? names : named.length === 0 ? usual : named,
    size: { nodes: number('NODES', 5000), pods: number('PODS', 0) },
    accounts: { users: number('USERS', 50_000), sessions: number('SESSIONS', 100_000) },
    churnSeconds: number('CHURN', 120),
    file: RESULTS,
    before: BEFORE,
  };
}

function number(variable: string, usually: number): number {
  const text = process.env[variable] || String(usually);
  if (!/^\d{1,6}$/.test(text) || (text === '0' && usually > 0))
    throw new Error(`${variable}: expected a number, got ${text}`);
  return Number(text);
}

async function bench({ wanted, size, accounts, churnSeconds, file, before }: Settings): Promise<boolean> {
  started = true;
  await clear();
  await mkdir(dir, { recursive: true, mode: 0o700 });
  // The file is created before any measurement, because the creation may fail and must not overwrite an existing file.
  if (file !== '') await writeFile(file, '', { flag: 'wx' });
  let stand: Stand | undefined;
  try {
    const begin = performance.now();
    const [load = 0] = loadavg();
    if (before !== '') {
      stand = await startStand(dir, size);
      const all = await compareBuilds(stand, before, wanted, interrupted.signal);
      console.log(describeComparisons(all));
      if (file !== '') await writeFile(file, `${JSON.stringify(all, undefined, 1)}\n`);
      return all.every(({ problems }) => problems.length === 0);
    }
    const alone = await measureAlone(wanted, { ...accounts, dir, signal: interrupted.signal });
    if (wanted.every((name) => aloneCases.has(name))) {
      if (file !== '') await writeFile(file, `${JSON.stringify(alone.results, undefined, 1)}\n`);
      return alone.isRight;
    }
    stand = await startStand(dir, size);
    console.error(`everything runs after ${seconds(begin)}`);
    const run = new Run(stand, interrupted.signal);
    await run.measure(wanted, churnSeconds);
    const machine = { cores: cpus().length, model: cpus()[0]?.model, load };
    console.log(`${size.nodes} nodes, ${size.pods} pods, ${seconds(begin)}`);
    console.log(`${machine.cores} cores of ${machine.model}; load before: ${figure(load)}`);
    if (load > machine.cores / 2)
      console.log('the machine was busy before: durations are meaningless, and CPU is overestimated');
    const results = { date: new Date().toISOString(), machine, ...size, ...alone.results, ...run.results };
    if (file !== '') await writeFile(file, `${JSON.stringify(results, undefined, 1)}\n`);
    return run.right && alone.isRight;
  } finally {
    await stand?.close();
    await clear();
  }
}

async function measureAlone(
  wanted: readonly string[],
  options: AloneOptions,
): Promise<{ results: Record<string, unknown>; isRight: boolean }> {
  const results: Record<string, unknown> = {};
  let isRight = true;
  for (const [name, measure] of aloneCases) {
    if (!wanted.includes(name)) continue;
    const one = await measure(options);
    console.log(one.text);
    results[name] = one.value;
    isRight &&= one.isRight;
  }
  return { results, isRight };
}

/** Ends all processes and removes the state folders. */
async function clear(): Promise<void> {
  for (const folder of foldersOf(dir)) await stopControlPlane(folder);
  await rm(dir, { recursive: true, force: true });
}
