/** The load generator, a process of its own: a Job on standard input, a Measured on standard output. It ends by itself. */
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from './connection.ts';
import type { Job, Measured } from './job.ts';
import { cpuTime, memory, resetPeaks } from './processes.ts';
import { problemOf, statusIsRight } from './requests.ts';
import { quantile } from './statistics.ts';

const concurrency = 16;
const seconds = 2.5;
/** Where a request takes long, at least so many; where it is short, at most. */
const fewest = 2 * concurrency;
const most = 1_000_000;
/** Every request once, but no longer than this. */
const warmUp = { least: 400, longest: 2_000 };
const checked = 4;
/** Processes finish what follows an answer (logs, garbage) before their CPU is read. */
const pause = 100;
const longest = 120_000;

setTimeout(() => process.exit(1), longest).unref();

const { target, requests, pids } = JSON.parse(await text(process.stdin)) as Job;
const wire = requests.map((one) => Buffer.from(one.text, 'latin1'));
const connections = Array.from({ length: concurrency }, () => new Connection(target));
const problems = new Set<string>();
let next = 0;

/** Each connection sends one request after the other while `goOn` holds; after a wrong answer none sends more. */
async function run(goOn: () => boolean, sent: (connection: Connection, index: number) => Promise<void>): Promise<void> {
  await Promise.all(
    connections.map(async (connection) => {
      while (problems.size === 0 && goOn()) {
        const index = next++ % requests.length;
        try {
          await sent(connection, index);
        } catch (error) {
          problems.add((error as Error).message);
        }
      }
    }),
  );
}

let smallest = Infinity;

/** Sends a request and looks at the whole answer. */
async function check(connection: Connection, index: number): Promise<void> {
  const answer = await connection.send(wire[index] as Buffer, true);
  const problem = problemOf(answer, requests[index]?.expected ?? {});
  if (problem !== undefined) problems.add(problem.trim());
  smallest = Math.min(smallest, answer.bytes);
}

/** Sends a request and looks at status and size only. */
async function exchange(connection: Connection, index: number): Promise<number> {
  const answer = await connection.send(wire[index] as Buffer);
  if (!statusIsRight(answer, requests[index]?.expected ?? {})) problems.add(`status ${answer.status}`);
  if (answer.bytes < smallest / 2) problems.add(`an answer of ${answer.bytes} bytes`);
  return answer.bytes;
}

async function measure(): Promise<Measured> {
  let left = checked;
  await run(() => left-- > 0, check);
  const warm = performance.now();
  await run(
    () => {
      const elapsed = performance.now() - warm;
      return elapsed < warmUp.least || (elapsed < warmUp.longest && next < requests.length);
    },
    async (connection, index) => void (await exchange(connection, index)),
  );

  await sleep(pause);
  const latencies: number[] = [];
  let bytes = 0;
  let begun = 0;
  resetPeaks(pids);
  const before = cpuTime(pids);
  const begin = performance.now();
  const end = begin + seconds * 1000;
  await run(
    () => begun < most && (performance.now() < end || begun < fewest) && ++begun > 0,
    async (connection, index) => {
      const started = performance.now();
      const size = await exchange(connection, index);
      bytes += size;
      latencies.push(performance.now() - started);
    },
  );
  const elapsed = (performance.now() - begin) / 1000;
  await sleep(pause);
  const cpu = cpuTime(pids) - before;
  const after = memory(pids);

  left = 1;
  await run(() => left-- > 0, check);
  latencies.sort((a, b) => a - b);
  return {
    requests: latencies.length,
    seconds: elapsed,
    cpu,
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
    bytes: bytes / latencies.length,
    ...after,
    problems: [...problems],
  };
}

process.stdout.write(JSON.stringify(await measure()));
for (const connection of connections) connection.close();
