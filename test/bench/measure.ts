import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Case, Server, Subject } from './cases.ts';
import { changesIn } from './changes.ts';
import type { Measured } from './job.ts';
import { cpuTime, memory } from './processes.ts';
import { median, mediansOf } from './statistics.ts';

/** Number of rounds that are counted by default. */
const usualRounds = 3;
/** Seconds of the warm-up round: V8 optimizes functions after some ten thousand calls. */
const warmUpSeconds = 3;
/** Milliseconds between measurements for garbage and caches to settle. */
const pause = 100;
const restSeconds = 10;
/** Milliseconds to wait after the start of kube-apiserver, which is busy for some time. */
const settle = 10_000;

const load = fileURLToPath(import.meta.resolve('./load.ts'));
const hash = fileURLToPath(import.meta.resolve('./hash.ts'));

export interface Row {
  readonly subject: Subject;
  readonly rounds: readonly Figures[];
  /** Medians of the figures over the rounds. */
  readonly figures: Figures;
  readonly problems: readonly string[];
}

export interface Figures {
  /** CPU time per request in milliseconds: of the measured server (`cpu`), and of the servers behind it (`behind`). */
  readonly cpu: number;
  readonly behind: number;
  /** `cpu` without the CPU time that changes cost the server when it gets no requests. */
  readonly alone: number;
  /** Number of cores that the server used. A number far below 1 means that the server was waiting. */
  readonly cores: number;
  readonly perSecond: number;
  /** Latencies in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Memory in megabytes. */
  readonly rss: number;
  readonly peak: number;
  /** Mean bytes of a response body. */
  readonly bytes: number;
  /** Share of time in which the load generator was busy. */
  readonly generator: number;
  /** Changes of nodes per second. */
  readonly changes: number;
}

const hasNoUpstream = ({ server }: Subject): boolean => server === 'nginx' || server === 'node:http';

/**
 * Measures the subjects in turn, so that other load of the machine affects all of them. For cases with kube-apiserver,
 * the cost of changes is measured while kube-apiserver has no other requests. Changes cost more in this time, because
 * caches are cold.
 */
export async function measureCase(
  { subjects }: Pick<Case, 'subjects'>,
  atRest: readonly AtRest[],
  signal: AbortSignal,
  rounds = usualRounds,
): Promise<Row[]> {
  const measured = subjects.map((): Measured[] => []);
  for (let round = 0; round <= rounds; round++)
    for (const [index, subject] of subjects.entries()) {
      const before = measured[index] ?? [];
      if (before.some(({ problems }) => problems.length > 0)) continue; // The problems are already reported.

      // The first round is not counted unless it had problems, because a long-running server has already compiled its
      // code and opened connections.
      if (round === 1) before.length = 0;
      before.push(await measure(round === 0 ? warmUp(subject) : subject, signal));
      await sleep(pause, undefined, { signal });
    }
  const changeCosts = subjects.flatMap((subject, index) =>
    hasNoUpstream(subject) ? (measured[index] ?? []).map(({ cpuBehind, changes }) => cpuBehind / changes) : [],
  );
  const rest = atRest.map((one) =>
    one.server === 'kube-apiserver' && changeCosts.length > 0
      ? { ...one, cpuPerChange: Math.min(one.cpuPerChange, median(changeCosts)) }
      : one,
  );
  return subjects.map((subject, index) => {
    const all = measured[index] ?? [];
    const figures = all.map((one) => figuresOf(subject, one, rest));
    return {
      subject,
      rounds: figures,
      figures: mediansOf(figures),
      problems: [...new Set(all.flatMap(({ problems }) => problems))],
    };
  });
}

function figuresOf(subject: Subject, one: Measured, rest: readonly AtRest[]): Figures {
  const { server, job } = subject;
  const { seconds, requests, changes } = one;
  const atRest = (pids: readonly number[]): number =>
    rest.reduce((sum, { cpuPerChange, pids: [pid = 0] }) => sum + (pids.includes(pid) ? cpuPerChange * changes : 0), 0);
  // The cost of the changes is subtracted for kube-apiserver, because the changes are written only to kube-apiserver.
  // For our server, following the changes is part of the cost.
  const spared = server === 'kube-apiserver' ? atRest(job?.pids ?? []) : 0;
  return {
    cpu: Math.max(0, one.cpu - spared) / requests,
    behind: hasNoUpstream(subject) ? 0 : Math.max(0, one.cpuBehind - atRest(job?.behind ?? [])) / requests,
    alone: Math.max(0, one.cpu - atRest(job?.pids ?? [])) / requests,
    cores: one.cpu / 1000 / seconds,
    perSecond: requests / seconds,
    p50: one.p50,
    p99: one.p99,
    rss: one.rss,
    peak: one.peak,
    bytes: one.bytes,
    generator: one.generatorBusy,
    changes: one.changesPerSecond,
  };
}

const warmUp = ({ job, ...subject }: Subject): Subject =>
  job === undefined ? subject : { ...subject, job: { ...job, seconds: Math.max(job.seconds, warmUpSeconds) } };

async function measure({ job }: Subject, signal: AbortSignal): Promise<Measured> {
  const child = spawn(process.execPath, [job === undefined ? hash : load], {
    stdio: ['pipe', 'pipe', 'inherit'],
    signal,
    killSignal: 'SIGKILL',
  });
  const closed = once(child, 'close') as Promise<[number | null]>;
  child.stdin.on('error', () => undefined).end(JSON.stringify(job ?? {}));
  const [output, [code]] = await Promise.all([text(child.stdout), closed]);
  if (code !== 0) throw new Error(`the load generator ended with ${code}`);
  return JSON.parse(output) as Measured;
}

export interface AtRest {
  readonly server: Server | 'etcd';
  readonly pids: readonly number[];
  /** CPU time per second, in milliseconds. */
  readonly cpuPerSecond: number;
  /** CPU time per change, in milliseconds. On a busy machine, both the changes and the CPU time per second drop. */
  readonly cpuPerChange: number;
  /** Memory in megabytes. */
  readonly rss: number;
}

/** Measures the resource usage of the servers while they process only changes. */
export async function measureRest(
  servers: readonly Pick<AtRest, 'server' | 'pids'>[],
  changesFile: string,
  signal: AbortSignal,
): Promise<AtRest[]> {
  await sleep(settle, undefined, { signal });
  const before = servers.map(({ pids }) => cpuTime(pids));
  const changesBefore = changesIn(changesFile);
  const begin = performance.now();
  await sleep(restSeconds * 1000, undefined, { signal });
  const seconds = (performance.now() - begin) / 1000;
  const changes = changesIn(changesFile) - changesBefore;
  return servers.map(({ server, pids }, index) => {
    const cpu = cpuTime(pids) - (before[index] ?? 0);
    return { server, pids, cpuPerSecond: cpu / seconds, cpuPerChange: cpu / changes, rss: memory(pids).rss };
  });
}
