/**
 * make bench [NODES=1000]: our server beside kube-apiserver and nginx on this machine. Arguments: names of cases; all without.
 * Ends with 1 if an answer was wrong, never because of a time.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { stopControlPlane } from '../../hack/cluster/control-plane.ts';
import { withLock } from '../../hack/cluster/lock.ts';
import { findAll, stop } from '../../hack/cluster/processes.ts';
import { seconds } from '../../hack/cluster/progress.ts';
import { casesOf } from './cases.ts';
import { changesPerSecond, changesWritten } from './changes.ts';
import { hashCost } from './hash-cost.ts';
import { describeLoginFailures, measureLoginFailures } from './login-failures.ts';
import { measureCase, measureRest } from './measure.ts';
import { startStand, type Stand } from './stand.ts';
import { figure, ratiosOf, table } from './table.ts';

const names = ['health', 'get', 'page', 'list', 'gzip', 'token', 'login'];
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
  const wanted = process.argv.slice(2);
  const unknown = wanted.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`no such case: ${unknown.join(', ')}; there are ${names.join(', ')}`);
  const right = await withLock(
    'bench',
    () => bench(wanted.length === 0 ? names : wanted, wantedNodes()),
    () => console.error('waiting for another bench on this machine'),
  );
  process.exitCode = right ? 0 : 1;
} catch (error) {
  console.error(interrupted.signal.aborted ? interrupted.signal.reason : error);
  process.exitCode = 1;
}

async function bench(wanted: readonly string[], nodes: number): Promise<boolean> {
  await clear();
  await mkdir(dir, { recursive: true, mode: 0o700 });
  let stand: Stand | undefined;
  try {
    const begin = performance.now();
    stand = await startStand(dir, nodes);
    console.error(`everything runs after ${seconds(begin)}`);
    return await run(stand, wanted);
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

async function run(stand: Stand, wanted: readonly string[]): Promise<boolean> {
  const { signal } = interrupted;
  const results: Record<string, unknown> = {};
  let right = true;
  const begin = { time: Date.now(), written: await changesWritten(dir) };

  const servers = { ours: stand.ours.pids, 'kube-apiserver': stand.kubeApiserver.pids, nginx: stand.nginx.pids };
  const atRest = await measureRest(servers, signal);
  results['rest'] = atRest;
  console.log(`${stand.nodes} nodes; at rest, but for ${changesPerSecond} changes of nodes a second:`);
  for (const { server, cpuPerSecond, rss } of atRest)
    console.log(`  ${server.padEnd(16)} ${figure(cpuPerSecond)} ms of CPU a second, ${figure(rss)} MB`);
  const rest = new Map(atRest.map(({ server, cpuPerSecond }) => [server, cpuPerSecond]));

  for (const one of casesOf(stand).filter(({ name }) => wanted.includes(name))) {
    const rows = await measureCase(one, rest, signal);
    right &&= rows.every(({ problems }) => problems.length === 0);
    console.log(`\n${table(`${one.name}: ${one.title}`, rows)}`);
    results[one.name] = rows.map((row) => ({
      label: row.subject.label,
      figures: row.figures,
      ratios: ratiosOf(row, rows),
      problems: row.problems,
      rounds: row.rounds,
    }));
    if (one.name === 'token') {
      const hash = await hashCost();
      results['hash'] = hash;
      console.log(`  of that, the hash: ${figure(hash)} ms of CPU; no peer grants tokens`);
    }
  }
  if (wanted.includes('login')) {
    const failures = await measureLoginFailures(stand.ours.plain, stand.users, signal);
    right &&= failures.problems.length === 0;
    results['login'] = failures;
    console.log(`\n${describeLoginFailures(failures)}`);
  }

  const rate = ((await changesWritten(dir)) - begin.written) / ((Date.now() - begin.time) / 1000);
  results['changesPerSecond'] = rate;
  console.log(`
16 connections, HTTP/1.1, 100 callers; bearer and access review on every read of ours and kube-apiserver's, none at nginx.
Medians of rounds in turn. kube-apiserver's CPU is without what it uses at rest. ${figure(rate)} changes a second arrived.`);
  const file = join(tmpdir(), `platform-apiserver-bench-${new Date().toISOString().replaceAll(':', '')}.json`);
  await writeFile(file, JSON.stringify({ nodes: stand.nodes, ...results }, undefined, 1), { flag: 'wx' });
  console.log(`all figures: ${file}`);
  return right;
}

function wantedNodes(): number {
  const text = process.env['NODES'] || '1000';
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new Error(`NODES is a number, not ${text}`);
  return Number(text);
}
