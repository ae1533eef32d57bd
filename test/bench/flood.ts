/** Measures the effect of a flood of logins on concurrent readers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { sendOnce, Connection, type Target } from './connection.ts';
import { paths } from './paths.ts';
import { loginForm, type User } from './readers.ts';
import { problemOf, request } from './requests.ts';
import type { Stand } from './stand.ts';
import { ascending, quantile } from './statistics.ts';

/** Latencies in milliseconds. */
export interface Reading {
  readonly p50: number;
  readonly p99: number;
  readonly requests: number;
  /** p99 of the event-loop delay that the server reports in its metrics. */
  readonly loopP99: number;
}

export interface Flood {
  readonly idle: Reading;
  readonly during: Reading;
  readonly loginsPerSecond: number;
  readonly problems: readonly string[];
}

const logins = 50;
const length = 10_000;
/** Milliseconds between two reads. The reads sample the latency of one reader without adding load. */
const pause = 20;

export async function measureFlood({ site, users }: Stand, signal: AbortSignal): Promise<Flood> {
  const { plain, tokens } = site.ours;
  const problems = new Set<string>();
  const token = tokens.plain[0];
  const idle = await readPages(plain, token, problems, signal);
  const end = new AbortController();
  let done = 0;
  const flood = users.readers
    .slice(0, logins)
    .map((user) => logInAgain(plain, user, end.signal, problems, () => (done += 1)));
  const started = performance.now();
  const during = await readPages(plain, token, problems, signal);
  const seconds = (performance.now() - started) / 1_000;
  const loginsPerSecond = done / seconds;
  end.abort();
  await Promise.all(flood);
  return { idle, during, loginsPerSecond, problems: [...problems] };
}

/** Reads pages sequentially for ten seconds. */
export async function readPages(
  target: Target,
  token: string | undefined,
  problems: Set<string>,
  signal: AbortSignal,
): Promise<Reading> {
  const { text, expected } = request(paths.page(3), {}, { token });
  const wire = Buffer.from(text, 'latin1');
  const connection = new Connection(target);
  const times: number[] = [];
  // Reading the metrics resets the histogram of the event-loop delay.
  await eventLoopDelay(target, token);
  const until = performance.now() + length;
  while (performance.now() < until) {
    signal.throwIfAborted();
    const begin = performance.now();
    const problem = problemOf(await connection.send(wire, true), expected);
    times.push(performance.now() - begin);
    if (problem !== undefined) problems.add(problem);
    await sleep(pause);
  }
  const loopP99 = await eventLoopDelay(target, token);
  connection.close();
  const sorted = ascending(times);
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), requests: times.length, loopP99 };
}

/** Returns the p99 or maximum of the event-loop delay since the last read of the metrics, in milliseconds. */
export async function eventLoopDelay(
  target: Target,
  token: string | undefined,
  of: 'p99' | 'max' = 'p99',
): Promise<number> {
  const { body } = await sendOnce(target, request('/metrics', {}, { token }).text);
  const [, seconds] = new RegExp(`^nodejs_eventloop_lag_${of}_seconds (\\S+)$`, 'm').exec(String(body)) ?? [];
  if (seconds === undefined) throw new Error('/metrics has no event loop delay');
  return Number(seconds) * 1_000;
}

async function logInAgain(
  target: Target,
  user: User,
  signal: AbortSignal,
  problems: Set<string>,
  onLogin: () => void,
): Promise<void> {
  const { text, expected } = request(paths.token, { text: '"access_token"' }, { form: loginForm(user) });
  const wire = Buffer.from(text, 'latin1');
  const connection = new Connection(target);
  while (!signal.aborted) {
    const response = await connection.send(wire, true);
    const problem = problemOf(response, expected);
    if (problem !== undefined) problems.add(problem);
    onLogin();
  }
  connection.close();
}

const line = (name: string, { p50, p99, requests, loopP99 }: Reading): string =>
  `  ${name.padEnd(20)} p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms of ${requests} pages; event loop p99 ${loopP99.toFixed(2)} ms`;

export function describeFlood({ idle, during, loginsPerSecond, problems }: Flood): string {
  if (problems.length > 0) return `flood: WRONG: ${problems.join('; ')}`;
  return [
    `flood: pages read sequentially, alone and while ${logins} clients log in repeatedly`,
    line('alone', idle),
    line('during the logins', during),
    `  ${loginsPerSecond.toFixed(1)} logins a second`,
  ].join('\n');
}
