/** Measures the time from the start of a server to its first responses. */
import { setTimeout as sleep } from 'node:timers/promises';
import { sendOnce, type Target } from './connection.ts';
import { paths } from './paths.ts';
import { cpuTime, memory } from './processes.ts';
import { problemOf, request, type Expected } from './requests.ts';
import { listedAt } from './site.ts';
import type { Stand } from './stand.ts';
import { mediansOf } from './statistics.ts';

/** Times in milliseconds since the start of the process, unless a property states another unit. */
export interface StartFigures {
  readonly ready: number;
  readonly firstList: number;
  /** Milliseconds from the log line that the list of kube-apiserver is complete to the first list. */
  readonly listAfterUpstream: number;
  /** CPU time until the first response with a list. */
  readonly cpu: number;
  /** Memory in megabytes after the first response with a list. */
  readonly rss: number;
}

const times = 3;
const interval = 5;
const timeout = 120_000;

/** Returns the median of each figure over several starts. */
export async function measureStarts(stand: Stand, signal: AbortSignal): Promise<StartFigures> {
  const all: StartFigures[] = [];
  for (let time = 0; time < times; time++) all.push(await measureStart(stand, `start-${time + 1}`, signal));
  return mediansOf(all);
}

async function measureStart({ site }: Stand, name: string, signal: AbortSignal): Promise<StartFigures> {
  const begin = Date.now();
  const server = await site.another(name);
  try {
    const token = site.ours.tokens.plain[0];
    const waitForResponse = (path: string, expected: Expected): Promise<number> =>
      firstResponse(server.faces.plain, request(path, expected, { token }).text, expected, signal);
    const [ready, firstList] = await Promise.all([
      waitForResponse('/readyz', {}),
      waitForResponse(paths.list, { items: site.size.nodes }),
    ]);
    return {
      ready: ready - begin,
      firstList: firstList - begin,
      listAfterUpstream: firstList - listedAt(server.log),
      cpu: cpuTime([server.pid]),
      rss: memory([server.pid]).rss,
    };
  } finally {
    await server.stop();
  }
}

/** Repeats a request until the response is as expected, and returns the time in milliseconds since the epoch. */
async function firstResponse(target: Target, text: string, expected: Expected, signal: AbortSignal): Promise<number> {
  let problem: string | undefined;
  for (const begin = Date.now(); Date.now() - begin < timeout; await sleep(interval, undefined, { signal })) {
    const response = await sendOnce(target, text).catch((error: unknown) => {
      problem = String(error);
    });
    if (response === undefined) continue;
    const time = Date.now(); // The time does not include the check of the response.
    problem = problemOf(response, expected);
    if (problem === undefined) return time;
  }
  throw new Error(`a started server does not respond: ${problem}`);
}
