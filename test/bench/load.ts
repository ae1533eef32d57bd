/**
 * Process of the load generator: reads a `Job` from standard input, writes a `Measured` to standard output, and exits.
 */
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { changesIn } from './changes.ts';
import { Connection } from './connection.ts';
import type { Job, Measured } from './job.ts';
import { cpuTime, memory, resetPeaks } from './processes.ts';
import { placeholder } from './paths.ts';
import { numbered, problemOf, type Request } from './requests.ts';
import { ascending, quantile } from './statistics.ts';

const maxRequests = 1_000_000;
/** Minimum and maximum duration of the warm-up in milliseconds. */
const warmUp = { minRequests: 200, maxDuration: 500 };
/** Maximum number and maximum total bytes of the responses that are checked completely. */
const checked = { max: 30, bytes: 2e6 };
/** Allowed relative difference between the size of a response and the sizes of completely checked responses. */
const tolerance = 0.1;
// Milliseconds between the last response and the reading of the CPU time. In this time, processes finish other work,
// such as logging and garbage collection.
const pause = 100;
const maxDuration = 120_000;

setTimeout(() => process.exit(1), maxDuration).unref();

const job = JSON.parse(await text(process.stdin)) as Job;
const { target, requests, pids, behind, changes, concurrency } = job;
/**
 * Servers cache authentication and access reviews for 10 s, so each round has as many new callers as cached decisions
 * would expire in its time.
 */
const newCallers = job.seconds / 10;
const wire = requests.map(({ text: one }) => (one.includes(placeholder) ? undefined : Buffer.from(one, 'latin1')));
const connections = Array.from({ length: concurrency }, () => new Connection(target));
const problems = new Set<string>();
/** Sizes of the smallest and the largest response that was checked completely. */
const sizes = { smallest: Infinity, largest: 0 };
let next = 0;
/** Number of the next request. Each load starts at a different number. */
let number = Date.now();

/**
 * Sends requests over all connections in parallel, one at a time over each connection, while `shouldContinue` returns
 * true and no response is wrong. The requests are taken in turn from the first `among` requests.
 */
async function run(
  shouldContinue: () => boolean,
  sent: (connection: Connection, index: number) => Promise<void>,
  among = requests.length,
): Promise<void> {
  await Promise.all(
    connections.map(async (connection) => {
      while (problems.size === 0 && shouldContinue()) {
        const index = next++ % among;
        try {
          await sent(connection, index);
        } catch (error) {
          problems.add((error as Error).message);
        }
      }
    }),
  );
}

async function exchange(connection: Connection, index: number, whole = false): Promise<number> {
  const { text: own, expected } = numbered(requests[index] as Request, number++);
  const response = await connection.send(wire[index] ?? Buffer.from(own, 'latin1'), whole);
  const problem = problemOf(response, expected);
  if (problem !== undefined) problems.add(problem);
  return response.bytes;
}

/** Checks the complete response. */
async function check(connection: Connection, index: number): Promise<void> {
  const bytes = await exchange(connection, index, true);
  sizes.smallest = Math.min(sizes.smallest, bytes);
  sizes.largest = Math.max(sizes.largest, bytes);
}

/** Checks only the status and the size of the response. */
async function glance(connection: Connection, index: number): Promise<number> {
  const bytes = await exchange(connection, index);
  // Responses to requests with varying values vary in size.
  if (requests[index]?.expected.contains !== undefined) return bytes;
  if (bytes < sizes.smallest * (1 - tolerance) || bytes > sizes.largest * (1 + tolerance))
    problems.add(`a response of ${bytes} bytes, where others have from ${sizes.smallest} to ${sizes.largest}`);
  return bytes;
}

async function measure(): Promise<Measured> {
  const known = Math.ceil(requests.length * (1 - newCallers));
  const checkSome = async (count: number): Promise<void> => {
    let left = count;
    await run(() => left-- > 0, check, known);
  };
  await checkSome(1);
  await checkSome(Math.min(checked.max, Math.round(checked.bytes / sizes.largest)));
  const warm = performance.now();
  await run(
    () => {
      const elapsed = performance.now() - warm;
      return elapsed < warmUp.minRequests || (elapsed < warmUp.maxDuration && next < known);
    },
    async (connection, index) => void (await glance(connection, index)),
    known,
  );

  next = known;
  let begun = 0;
  const latencies: number[] = [];
  let bytes = 0;
  await sleep(pause);
  resetPeaks(pids);
  const used = (): { cpu: number; cpuBehind: number; changes: number } => ({
    cpu: cpuTime(pids),
    cpuBehind: cpuTime(behind),
    changes: changesIn(changes),
  });
  const before = used();
  const loop = performance.eventLoopUtilization();
  const begin = performance.now();
  const end = begin + job.seconds * 1000;
  await run(
    () => begun < maxRequests && performance.now() < end && ++begun > 0,
    async (connection, index) => {
      const started = performance.now();
      const size = await glance(connection, index);
      // `bytes += await …` would lose the bytes that other connections add in the meantime.
      bytes += size;
      latencies.push(performance.now() - started);
    },
  );
  const seconds = (performance.now() - begin) / 1000;
  const generatorBusy = performance.eventLoopUtilization(loop).utilization;
  await sleep(pause);
  const after = { ...used(), ...memory(pids) };
  const observed = (performance.now() - begin) / 1000;

  await checkSome(1);
  const sorted = ascending(latencies);
  return {
    requests: latencies.length,
    seconds,
    ...after,
    cpu: after.cpu - before.cpu,
    cpuBehind: after.cpuBehind - before.cpuBehind,
    changes: after.changes - before.changes,
    changesPerSecond: (after.changes - before.changes) / observed,
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    bytes: bytes / latencies.length,
    generatorBusy,
    problems: [...problems],
  };
}

process.stdout.write(JSON.stringify(await measure()));
for (const connection of connections) connection.close();
