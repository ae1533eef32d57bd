/**
 * Measures the cost of following changes at several rates. The changes come from a replayed watch, because a real
 * control plane on one machine reaches only some hundred writes per second.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { nodeFlags } from '../../hack/run/server.ts';
import type { Followed } from './follower.ts';
import type { Replay } from './replay.ts';
import { figure } from './table.ts';

export const rates = [10, 100, 1_000] as const;

/** CPU time per change in milliseconds, at one rate. */
export interface FollowingCost {
  readonly rate: number;
  /** Cost in the server's cache. */
  readonly cache: number;
  /** Cost in a control program that only reads the lines and copies their bytes. */
  readonly lines: number;
}

const nodes = 5_000;
/** A measurement lasts at least this many seconds and changes, so that it includes the usual garbage collections. */
const minimum = { seconds: 15, changes: 500 } as const;
/** Milliseconds for a new rate to settle. */
const settle = 1_000;
/** Rate and seconds of the changes before the first round: V8 has then compiled the code, as in an older server. */
const warmUp = { rate: 500, seconds: 10 } as const;
/**
 * Milliseconds after the warm-up. After busy times, V8 collects garbage twice, with pauses of 8 s. A collection of the
 * whole heap takes as long as following 50 changes.
 */
const quietTime = 20_000;

interface Follower {
  readonly replay: ChildProcess;
  readonly child: ChildProcess;
}

async function start(what: 'cache' | 'lines', started: ChildProcess[]): Promise<Follower> {
  const run = (file: string, args: readonly string[], execArgv: string[] = []): ChildProcess => {
    const child = fork(fileURLToPath(import.meta.resolve(file)), args, { execArgv });
    started.push(child);
    return child;
  };
  const replay = run('./replay.ts', [String(nodes)]);
  const served = await messageOf<Replay>(replay);
  const child = run('./follower.ts', [what, JSON.stringify(served)], nodeFlags);
  await messageOf(child);
  return { replay, child };
}

/** Returns the next message of a process. Throws if the process ends first. */
async function messageOf<T>(child: ChildProcess): Promise<T> {
  const over = new AbortController();
  try {
    const exit = once(child, 'exit', { signal: over.signal }).then(([code]) => {
      throw new Error(`${child.spawnfile} ended with ${code}`);
    });
    const [message] = (await Promise.race([once(child, 'message', { signal: over.signal }), exit])) as [T];
    return message;
  } finally {
    over.abort();
  }
}

function report({ child }: Follower): Promise<Followed> {
  child.send('report');
  return messageOf(child);
}

/** Returns the CPU time per change in milliseconds. */
async function cost(follower: Follower, rate: number): Promise<number> {
  follower.replay.send(rate);
  await sleep(settle);
  const before = await report(follower);
  await sleep(Math.max(minimum.seconds, minimum.changes / rate) * 1000);
  const after = await report(follower);
  follower.replay.send(0);
  return (after.cpu - before.cpu) / (after.changes - before.changes);
}

export async function measureFollowing(): Promise<FollowingCost[]> {
  const started: ChildProcess[] = [];
  try {
    const cache = await start('cache', started);
    const lines = await start('lines', started);
    for (const { replay } of [cache, lines]) replay.send(warmUp.rate);
    await sleep(warmUp.seconds * 1000);
    for (const { replay } of [cache, lines]) replay.send(0);
    await sleep(quietTime);
    const costs: FollowingCost[] = [];
    for (const rate of rates) costs.push({ rate, cache: await cost(cache, rate), lines: await cost(lines, rate) });
    return costs;
  } finally {
    for (const one of started) if (one.connected) one.disconnect();
  }
}

export const describeFollowing = (costs: readonly FollowingCost[]): string =>
  [
    'changes: ms of CPU per change of a node of 8 KB, of a program that only reads the lines, and the ratio',
    ...costs.map(
      ({ rate, cache, lines }) =>
        `  ${`${rate} per second`.padEnd(16)} ${figure(cache).padStart(7)} ${figure(lines).padStart(7)}   ×${figure(cache / lines)}`,
    ),
  ].join('\n');

/** Returns the figures under the names that the goals use. */
export const followingFigures = (costs: readonly FollowingCost[]): Record<string, number> =>
  Object.fromEntries(costs.map(({ rate, cache }) => [`changes: ms at ${rate}`, cache]));
