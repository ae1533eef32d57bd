import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Case, Subject } from './cases.ts';
import type { Measured } from './job.ts';
import { cpuTime, memory } from './processes.ts';
import { median } from './statistics.ts';

const rounds = 3;
/** Between measurements, for garbage and caches to settle. */
const pause = 700;
const restSeconds = 4;
const load = fileURLToPath(import.meta.resolve('./load.ts'));

export interface Row {
  readonly subject: Subject;
  /** The median of each figure over the rounds. */
  readonly figures: Figures;
  readonly problems: readonly string[];
  readonly rounds: readonly Measured[];
}

export interface Figures {
  /** Milliseconds of CPU a request. */
  readonly cpu: number;
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Bytes of a body. */
  readonly bytes: number;
  /** Megabytes. */
  readonly rss: number;
  readonly peak: number;
}

/** Milliseconds of CPU a second that a process uses while nobody asks. */
export type Rest = ReadonlyMap<Subject['server'], number>;

/** The subjects take turns, so that what else the machine does meets them all. */
export async function measureCase({ subjects }: Case, rest: Rest, signal: AbortSignal): Promise<Row[]> {
  const measured = subjects.map((): Measured[] => []);
  for (let round = 0; round < rounds; round++)
    for (const [index, subject] of subjects.entries()) {
      if (measured[index]?.some(({ problems }) => problems.length > 0)) continue; // once is enough
      measured[index]?.push(await measure(subject, signal));
      await sleep(pause, undefined, { signal });
    }
  return subjects.map((subject, index) => {
    const all = measured[index] ?? [];
    const of = (figure: (one: Measured) => number): number => median(all.map(figure));
    // The changes are written to kube-apiserver alone, and reading is not to blame for that.
    const atRest = subject.server === 'kube-apiserver' ? (rest.get(subject.server) ?? 0) : 0;
    return {
      subject,
      figures: {
        cpu: of(({ cpu, seconds, requests }) => Math.max(0, cpu - atRest * seconds) / requests),
        perSecond: of(({ requests, seconds }) => requests / seconds),
        p50: of(({ p50 }) => p50),
        p99: of(({ p99 }) => p99),
        bytes: of(({ bytes }) => bytes),
        rss: of(({ rss }) => rss),
        peak: of(({ peak }) => peak),
      },
      problems: [...new Set(all.flatMap(({ problems }) => problems))],
      rounds: all,
    };
  });
}

async function measure({ target, requests, pids }: Subject, signal: AbortSignal): Promise<Measured> {
  const child = spawn(process.execPath, [load], { stdio: ['pipe', 'pipe', 'inherit'], signal, killSignal: 'SIGKILL' });
  const closed = once(child, 'close') as Promise<[number | null]>;
  child.stdin.on('error', () => undefined).end(JSON.stringify({ target, requests, pids }));
  const [output, [code]] = await Promise.all([text(child.stdout), closed]);
  if (code !== 0) throw new Error(`the load generator ended with ${code}`);
  return JSON.parse(output) as Measured;
}

export interface AtRest {
  readonly server: Subject['server'];
  readonly cpuPerSecond: number;
  readonly rss: number;
}

/** What the servers use while only the changes arrive. */
export async function measureRest(
  servers: Readonly<Record<Subject['server'], readonly number[]>>,
  signal: AbortSignal,
): Promise<AtRest[]> {
  const entries = Object.entries(servers) as [Subject['server'], readonly number[]][];
  const seen = new Map(entries.map(([server]) => [server, [] as number[]]));
  for (let round = 0; round < rounds; round++) {
    const before = entries.map(([, pids]) => cpuTime(pids));
    const begin = performance.now();
    await sleep(restSeconds * 1000, undefined, { signal });
    const seconds = (performance.now() - begin) / 1000;
    for (const [index, [server, pids]] of entries.entries())
      seen.get(server)?.push((cpuTime(pids) - (before[index] ?? 0)) / seconds);
  }
  return entries.map(([server, pids]) => ({
    server,
    cpuPerSecond: median(seen.get(server) ?? []),
    rss: memory(pids).rss,
  }));
}
