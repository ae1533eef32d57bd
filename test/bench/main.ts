/**
 * make bench: our server beside kube-apiserver and nginx on this machine, as ratios; Linux only. See `usage`.
 * Ends with 1 if an answer was wrong, never because of a time.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { stopControlPlane } from '../../hack/cluster/control-plane.ts';
import { withLock } from '../../hack/cluster/lock.ts';
import { findAll, stop } from '../../hack/cluster/processes.ts';
import { progress, seconds } from '../../hack/cluster/progress.ts';
import { caseNames, casesOf } from './cases.ts';
import { changesIn, changesPerSecond } from './changes.ts';
import { concurrency } from './job.ts';
import { describeLoginFailures, measureLoginFailures } from './login-failures.ts';
import { measureCase, measureRest } from './measure.ts';
import { callers } from './readers.ts';
import { startStand, type Stand } from './stand.ts';
import { figure, ratiosOf, ratioTable, table, type Ratios } from './table.ts';

const login = 'login';
const names = [...caseNames, login];

const usage = `make bench [CASES="${names.join(' ')}"] [NODES=1000] [RESULTS=FILE]

Starts a control plane with so many nodes, of which ${changesPerSecond} change each second, our server as make run does, and nginx with
files of the bytes that our server answers. Takes about nine minutes. RESULTS names a new file for every figure, as JSON.

Each case asks every server in turn, three rounds of two seconds: ${concurrency} connections with HTTP/1.1, each with one request at a
time, of ${callers} callers with their own tokens. Ours and kube-apiserver authenticate and authorize them, nginx does not; in each round
as many callers are new to the servers' caches of 10 s as would be in the long run. Status and size of every answer are
checked, and the whole of some. Everything is on loopback and shares the machine's cores: ratios within one run mean
something, times do not.

  CPU ms     of the server's processes, a request. kube-apiserver's is without what the changes cost it at rest, for it alone takes them.
  behind ms  of those it asks in its turn (kube-apiserver, etcd), likewise without what the changes cost
  >          the load generator was what limited the requests, so that CPU alone says something about the server
  RSS, peak  after the round, and the most in it; the servers are not started anew between cases

kube-apiserver sends managedFields, which ours leaves out unless asked: compare body KB. The token grant has no peer; what it cannot
go below is the password's hash, verified by as many at a time in a process of its own. "${login}" tells whether the time of a refused
login tells why it was refused.`;

/** Always the same, so that a bench that was killed is cleared away by the next. */
const dir = join(tmpdir(), `platform-apiserver-bench-${userInfo().uid}`);

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    interrupted.abort(new Error(`ended by ${signal}`));
    // What is under way fails at once and does not wait for its end.
    for (const running of findAll(dir)) void stop(dir, running, 'SIGKILL');
  });

try {
  if (process.argv.length > 2) {
    console.log(usage);
  } else {
    const { wanted, nodes, results } = settings();
    const right = await withLock(
      'bench',
      () => bench(wanted, nodes, results),
      () => console.error('waiting for another bench on this machine'),
    );
    process.exitCode = right ? 0 : 1;
  }
} catch (error) {
  console.error(interrupted.signal.aborted ? interrupted.signal.reason : error);
  process.exitCode = 1;
}

function settings(): { wanted: readonly string[]; nodes: number; results: string } {
  const { CASES = '', NODES = '', RESULTS = '' } = process.env;
  const wanted = CASES.split(/[ ,]+/).filter((name) => name !== '');
  const unknown = wanted.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`no such case: ${unknown.join(', ')}; there are ${names.join(', ')}`);
  if (!/^([1-9]\d{0,5})?$/.test(NODES)) throw new Error(`NODES is a number, not ${NODES}`);
  return { wanted: wanted.length === 0 ? names : wanted, nodes: Number(NODES || '1000'), results: RESULTS };
}

async function bench(wanted: readonly string[], nodes: number, file: string): Promise<boolean> {
  await clear();
  await mkdir(dir, { recursive: true, mode: 0o700 });
  // Before anything takes its time: it may not be possible, or overwrite something.
  if (file !== '') await writeFile(file, '', { flag: 'wx' });
  let stand: Stand | undefined;
  try {
    const begin = performance.now();
    stand = await startStand(dir, nodes);
    console.error(`everything runs after ${seconds(begin)}`);
    const { right, ...results } = await run(stand, wanted);
    console.log(`${nodes} nodes, ${seconds(begin)}`);
    if (file !== '') await writeFile(file, `${JSON.stringify({ nodes, ...results }, undefined, 1)}\n`);
    return right;
  } finally {
    await stand?.close();
    await clear();
  }
}

/** Ends whatever runs and removes the state. */
async function clear(): Promise<void> {
  await stopControlPlane(dir);
  await rm(dir, { recursive: true, force: true });
}

async function run(stand: Stand, wanted: readonly string[]): Promise<{ right: boolean } & Record<string, unknown>> {
  const { signal } = interrupted;
  const results: Record<string, unknown> = {};
  let right = true;
  const before = { changes: changesIn(stand.changes), time: performance.now() };

  const atRest = await showing('at rest', () =>
    measureRest(
      [
        { server: 'ours', pids: stand.ours.pids },
        { server: 'kube-apiserver', pids: stand.kubeApiserver.pids },
        { server: 'etcd', pids: stand.etcd.pids },
        { server: 'nginx', pids: stand.nginx.pids },
      ],
      stand.changes,
      signal,
    ),
  );
  results['rest'] = atRest;
  console.log(`at rest, but for ${changesPerSecond} changes of nodes a second:`);
  for (const { server, cpuPerSecond, rss } of atRest)
    console.log(`  ${server.padEnd(16)} ${figure(cpuPerSecond)} ms of CPU a second, ${figure(rss)} MB`);

  const rates: number[] = [];
  const compared: { name: string; ratios: readonly Ratios[] }[] = [];
  for (const one of casesOf(stand).filter(({ name }) => wanted.includes(name))) {
    const { name, title } = one;
    const rows = await showing(name, () => measureCase(one, atRest, signal));
    const ratios = ratiosOf(rows);
    right &&= rows.every(({ problems }) => problems.length === 0);
    console.log(`\n${table(`${name}: ${title}`, rows)}`);
    compared.push({ name, ratios });
    for (const { subject, rounds } of rows)
      if (subject.job !== undefined) rates.push(...rounds.map(({ changes }) => changes));
    results[name] = { ratios, rows: rows.map(({ subject: { label }, ...row }) => ({ label, ...row })) };
  }
  if (wanted.includes(login)) {
    const failures = await showing(login, () => measureLoginFailures(stand.ours.plain, stand.users, signal));
    right &&= failures.problems.length === 0;
    results[login] = failures;
    console.log(`\n${describeLoginFailures(failures)}`);
  }
  console.log(`\n${ratioTable(compared)}`);

  const rate = (changesIn(stand.changes) - before.changes) / ((performance.now() - before.time) / 1000);
  results['changesPerSecond'] = rate;
  console.log(`\nchanges a second: ${figure(rate)}; in the slowest round ${figure(Math.min(...rates))}`);
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
