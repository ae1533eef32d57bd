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
import { median } from './statistics.ts';
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
const rounds = 3;
const seconds = 5;
/** Milliseconds for a new rate to settle. */
const settle = 1_000;
/** Rate and seconds of the changes before the first round: V8 has then compiled the code, as in an older server. */
const warmUp = { rate: 500, seconds: 10 } as const;

interface Follower {
  readonly replay: ChildProcess;
  readonly child: ChildProcess;
}

async function start(what: 'cache' | 'lines'): Promise<Follower> {
  const replay = fork(fileURLToPath(import.meta.resolve('./replay.ts')), [String(nodes)]);
  const [served] = (await once(replay, 'message')) as [Replay];
  const args = [what, JSON.stringify(served)];
  const child = fork(fileURLToPath(import.meta.resolve('./follower.ts')), args, { execArgv: nodeFlags });
  await once(child, 'message');
  return { replay, child };
}

async function report({ child }: Follower): Promise<Followed> {
  child.send('report');
  const [followed] = (await once(child, 'message')) as [Followed];
  return followed;
}

/** Returns the CPU time per change in milliseconds. */
async function cost(follower: Follower, rate: number): Promise<number> {
  follower.replay.send(rate);
  await sleep(settle);
  const before = await report(follower);
  await sleep(seconds * 1000);
  const after = await report(follower);
  follower.replay.send(0);
  return (after.cpu - before.cpu) / (after.changes - before.changes);
}

export async function measureFollowing(): Promise<FollowingCost[]> {
  const cache = await start('cache');
  const lines = await start('lines');
  try {
    for (const { replay } of [cache, lines]) replay.send(warmUp.rate);
    await sleep(warmUp.seconds * 1000);
    for (const { replay } of [cache, lines]) replay.send(0);
    const costs: FollowingCost[] = [];
    for (let round = 0; round < rounds; round += 1)
      for (const rate of rates) costs.push({ rate, cache: await cost(cache, rate), lines: await cost(lines, rate) });
    return rates.map((rate) => {
      const all = costs.filter((one) => one.rate === rate);
      return { rate, cache: median(all.map((one) => one.cache)), lines: median(all.map((one) => one.lines)) };
    });
  } finally {
    for (const { replay, child } of [cache, lines]) for (const one of [replay, child]) one.disconnect();
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
