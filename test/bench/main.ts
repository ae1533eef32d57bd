/**
 * make bench: our server beside kube-apiserver and nginx on this machine, as ratios; Linux only. See `usage`.
 * Ends with 1 if a response was wrong or a shortcut of the hot path saves less than it must, never because of another time.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { cpus, loadavg, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { stopControlPlane } from '../../hack/cluster/control-plane.ts';
import { withLock } from '../../hack/cluster/lock.ts';
import { findAll, stop } from '../../hack/cluster/processes.ts';
import { seconds } from '../../hack/cluster/progress.ts';
import { aloneCases } from './alone.ts';
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

const usage = `make bench [CASES="${names.join(' ')}"] [NODES=5000] [PODS=0] [CHURN=120] [BEFORE=CHECKOUT] [RESULTS=FILE]

Starts a control plane with so many nodes and pods, of which ${changesPerSecond} nodes change each second, and one with ${few} nodes; our server behind
each as make run starts it; and nginx with files of the bytes that our server answers. Takes less than ten minutes with 5,000 nodes.
CASES=all is everything; without CASES these are left out: ${names.filter((name) => !usual.includes(name)).join(', ')}. CHURN is
how many seconds memory is watched while 200 nodes change each second; 3600 is an hour. RESULTS names a new file for every figure, as
JSON. BEFORE names another checkout of this repository with its packages installed: its server, ours and a second one of ours then take
turns at the cases, and nothing else is measured. What etcd holds at the start is kept in the cache of the cluster's programs, under bench.

Each case asks every server in turn, one round to warm up and three of ${roundSeconds} s (of logins ${loginSeconds} s) that count: ${concurrency} connections with
HTTP/1.1, each with one request at a time (4 for full lists), of ${callers} callers with their own tokens. Ours and kube-apiserver authenticate and authorize them, nginx and node:http do not;
in each round as many callers are new to the servers' caches of 10 s as would be in the long run. Status and size of every answer are
checked, and the whole of some. Everything is on loopback and shares the machine's cores: ratios within one run mean something, times
do not.

  CPU ms     of the server's processes, a request. kube-apiserver's is without what the changes cost it at rest, for it alone takes them.
  behind ms  of those it asks in its turn (kube-apiserver, etcd), likewise without what the changes cost
  alone ms   CPU without what the changes cost the server at rest; of ours too
  cores      how much of a core's time the servers used. Far below 1, others took it: then what a second costs however few the requests
             (following the changes, callers that are new) weighs more on each of them.
  >          the load generator was what limited the requests, so that CPU alone says something about the server
  RSS, peak  after the round, and the most in it; the servers are not started anew between cases

kube-apiserver sends managedFields, which ours leaves out unless asked: compare body KB. "watch" holds 1,000 watches and "many"
10,000, each of which must get every change. "memory" and "start" are of our server alone. "login" tells whether the time of a refused login
tells why it was refused. "logs" fills an OpenSearch, which takes minutes. "fairness" has one user or address take as much as possible of
each shared resource beside twenty others; "event-loop" sends the most expensive input of each endpoint. "hot-path" compares each shortcut
of the hot path with the plain way and fails if it saves too little. These three need no control plane.`;

/** Always the same, so that a bench that was killed is cleared away by the next. */
const dir = join(tmpdir(), `platform-apiserver-bench-${userInfo().uid}`);

const interrupted = new AbortController();
/** Not while another bench is waited for: what runs then is that one's. */
let begun = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    if (!begun) process.exit(1);
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
  /** Another checkout, or ''. */
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
    churnSeconds: number('CHURN', 120),
    file: RESULTS,
    before: BEFORE,
  };
}

function number(variable: string, usually: number): number {
  const text = process.env[variable] || String(usually);
  if (!/^\d{1,6}$/.test(text) || (text === '0' && usually > 0)) throw new Error(`${variable} is a number, not ${text}`);
  return Number(text);
}

async function bench({ wanted, size, churnSeconds, file, before }: Settings): Promise<boolean> {
  begun = true;
  await clear();
  await mkdir(dir, { recursive: true, mode: 0o700 });
  // Before anything takes its time: it may not be possible, or overwrite something.
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
    const alone = await measureAlone(wanted);
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
      console.log('the machine was busy before: times mean nothing, and CPU is more than it need be');
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
): Promise<{ results: Record<string, unknown>; isRight: boolean }> {
  const results: Record<string, unknown> = {};
  let isRight = true;
  for (const [name, measure] of aloneCases) {
    if (!wanted.includes(name)) continue;
    const one = await measure();
    console.log(one.text);
    results[name] = one.value;
    isRight &&= one.isRight;
  }
  return { results, isRight };
}

/** Ends whatever runs and removes the state. */
async function clear(): Promise<void> {
  for (const folder of foldersOf(dir)) await stopControlPlane(folder);
  await rm(dir, { recursive: true, force: true });
}
