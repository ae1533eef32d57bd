/** Starts of a server with many accounts, of a server with few, and of a program that only reads the same lists. */
import { setTimeout as sleep } from 'node:timers/promises';
import { largeClusterTimeout } from '../../hack/cluster/control-plane.ts';
import { until } from '../../hack/cluster/until.ts';
import { release } from '../../hack/run/chart.ts';
import type { KubeClient } from '../../src/cluster/client/client.ts';
import { sessionsPath, usersPath } from '../../src/config/names.ts';
import type { Both } from './account-load.ts';
import { cpuTime, memory } from './processes.ts';
import type { Site } from './site.ts';

export interface Start {
  /** Milliseconds from the start of the process. */
  readonly ready: number;
  readonly cpu: number;
  /** Megabytes some seconds later. */
  readonly rss: number;
}

const starts = 2;
/** Milliseconds to wait until the garbage of the start has been collected. */
const settle = 5_000;

export async function measureStarts(
  { few, many }: Both<{ readonly site: Site }>,
  kube: KubeClient,
  signal: AbortSignal,
): Promise<[Both<Start>, lists: number]> {
  const all: { few: Start; many: Start; lists: number }[] = [];
  for (let time = 0; time < starts; time += 1)
    all.push({
      few: await measureStart(few, `start-${time}`, signal),
      lists: await measureLists(kube),
      many: await measureStart(many, `start-${time}`, signal),
    });
  const least = (name: 'few' | 'many'): Start => {
    const of = (key: keyof Start): number => Math.min(...all.map((one) => one[name][key]));
    return { ready: of('ready'), cpu: of('cpu'), rss: of('rss') };
  };
  return [{ few: least('few'), many: least('many') }, Math.min(...all.map(({ lists }) => lists))];
}

async function measureStart({ site }: { readonly site: Site }, name: string, signal: AbortSignal): Promise<Start> {
  const begin = performance.now();
  const server = await site.another(name);
  try {
    const isReady = async (): Promise<boolean> => (await fetch(`${server.baseURL}/readyz`)).ok;
    await until('the server is ready', server.check, isReady, largeClusterTimeout);
    const ready = performance.now() - begin;
    const cpu = cpuTime([server.pid]);
    await sleep(settle, undefined, { signal });
    return { ready, cpu, rss: memory([server.pid]).rss };
  } finally {
    await server.stop();
  }
}

/** Returns the milliseconds in which a program that does nothing else reads the lists. */
async function measureLists(kube: KubeClient): Promise<number> {
  const begin = performance.now();
  const read = async (path: string): Promise<void> => {
    const { body } = await kube.stream(path, { query: { resourceVersion: '0' }, timeout: 60_000 });
    for await (const _ of body);
  };
  await Promise.all([usersPath, sessionsPath(release.namespace)].map(read));
  return performance.now() - begin;
}
