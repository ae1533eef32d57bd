/** How long a server takes from its start until it answers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, type Target } from './connection.ts';
import { paths } from './paths.ts';
import { cpuTime, memory } from './processes.ts';
import { problemOf, request, type Expected } from './requests.ts';
import { listedAt } from './site.ts';
import type { Stand } from './stand.ts';
import { median } from './statistics.ts';

/** Milliseconds from the start of the process, unless stated. */
export interface StartFigures {
  readonly ready: number;
  readonly firstList: number;
  /** From the moment at which the server logs that the upstream list is complete. */
  readonly listAfterUpstream: number;
  /** CPU until the first list was answered. */
  readonly cpu: number;
  /** Megabytes, then. */
  readonly rss: number;
}

const times = 3;
const interval = 5;
const patience = 120_000;

/** The median of each over several starts. */
export async function measureStarts(stand: Stand, signal: AbortSignal): Promise<StartFigures> {
  const all: StartFigures[] = [];
  for (let time = 0; time < times; time++) all.push(await measureStart(stand, `start-${time + 1}`, signal));
  const medianOf = (key: keyof StartFigures): number => median(all.map((one) => one[key]));
  return {
    ready: medianOf('ready'),
    firstList: medianOf('firstList'),
    listAfterUpstream: medianOf('listAfterUpstream'),
    cpu: medianOf('cpu'),
    rss: medianOf('rss'),
  };
}

async function measureStart({ site }: Stand, name: string, signal: AbortSignal): Promise<StartFigures> {
  const begin = Date.now();
  const server = await site.another(name);
  try {
    const token = site.ours.tokens.plain[0];
    const answered = (path: string, expected: Expected): Promise<number> =>
      firstAnswer(server.faces.plain, request(path, expected, { token }).text, expected, signal);
    const [ready, firstList] = await Promise.all([
      answered('/readyz', {}),
      answered(paths.list, { items: site.size.nodes }),
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

/** When what is asked again and again is answered as expected, in milliseconds since the epoch. */
async function firstAnswer(target: Target, text: string, expected: Expected, signal: AbortSignal): Promise<number> {
  let problem: string | undefined;
  for (const begin = Date.now(); Date.now() - begin < patience; await sleep(interval, undefined, { signal })) {
    const answer = await ask(target, text).catch((error: unknown) => {
      problem = String(error);
    });
    if (answer === undefined) continue;
    const time = Date.now(); // what follows looks at all that came
    problem = problemOf(answer, expected);
    if (problem === undefined) return time;
  }
  throw new Error(`a server that was started does not answer: ${problem}`);
}
