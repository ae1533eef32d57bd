/**
 * Compares our server with many users and sessions with our server in an almost empty cluster. Both servers take turns
 * in each round.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { build } from '../../hack/build.ts';
import { progress } from '../../hack/cluster/progress.ts';
import { createKubeClient } from '../../src/cluster/client/client.ts';
import { client, concurrency, measureLoad, type Both, type LoadFigures, type Replica } from './account-load.ts';
import { clientName, clients } from './account-objects.ts';
import { measureStarts, type Start } from './account-starts.ts';
import { Connection } from './connection.ts';
import { eventLoopDelay } from './flood.ts';
import { cpuTime } from './processes.ts';
import { makeUsers, type Users } from './readers.ts';
import { startSite } from './site.ts';
import { figure } from './table.ts';

export interface AccountSizes {
  readonly users: number;
  readonly sessions: number;
}

interface Rest {
  /** CPU time in percent of a core. */
  readonly cpu: number;
  /** Maximum delay of the event loop in milliseconds. */
  readonly delay: number;
}

export interface AccountFigures extends AccountSizes, LoadFigures {
  readonly start: Both<Start>;
  /** Milliseconds for the lists of the same users and sessions, requested at the same time. */
  readonly lists: number;
  readonly rest: Both<Rest>;
  readonly problems: readonly string[];
}

/** Seconds in which each server sweeps the sessions once. */
const restSeconds = 61;
const names = { few: 'accounts-few', many: 'accounts-many' } as const;

/** Names of the state folders. */
export const accountFolders: readonly string[] = Object.values(names);

export async function measureAccounts(dir: string, sizes: AccountSizes, signal: AbortSignal): Promise<AccountFigures> {
  await build();
  const users = withClients(await makeUsers());
  const problems = new Set<string>();
  const replicas: Replica[] = [];
  const open = async (name: string, size: Partial<AccountSizes>): Promise<Replica> => {
    const site = await startSite(join(dir, name), { nodes: 0, pods: 0, ...size }, users);
    const connections = Array.from({ length: concurrency }, () => new Connection(site.ours.plain));
    const replica = { site, connections, refreshTokens: [] };
    replicas.push(replica);
    return replica;
  };
  try {
    const few = await open(names.few, {});
    const many = await open(names.many, sizes);
    const kube = {
      few: await createKubeClient({ kubeconfig: few.site.kubeconfig }),
      many: await createKubeClient({ kubeconfig: many.site.kubeconfig }),
    };
    try {
      const step = progress('accounts: start');
      const [started, lists] = await measureStarts({ few, many }, kube.many, signal);
      step.end(true);
      const load = await measureLoad({ few, many }, kube, users.readers, problems, signal);
      const resting = progress('accounts: at rest');
      const rest = await measureRest({ few, many }, signal);
      resting.end(true);
      return { ...sizes, start: started, lists, ...load, rest, problems: [...problems] };
    } finally {
      await Promise.all([kube.few.close(), kube.many.close()]);
    }
  } finally {
    for (const { site, connections } of replicas) {
      for (const connection of connections) connection.close();
      await site.close();
    }
  }
}

function withClients(users: Users): Users {
  const { config } = users.values as { readonly config: { readonly authentication: object } };
  const all = [
    { name: client.client_id, secret: client.client_secret },
    ...Array.from({ length: clients }, (_, index) => ({ name: clientName(index), secret: `of ${clientName(index)}` })),
  ];
  const authentication = { ...config.authentication, clients: all };
  return { ...users, values: { ...users.values, config: { ...config, authentication } } };
}

async function measureRest({ few, many }: Both<Replica>, signal: AbortSignal): Promise<Both<Rest>> {
  const all = [few, many].map(({ site: { ours } }) => ours);
  for (const { plain, tokens } of all) await eventLoopDelay(plain, tokens.plain[0], 'max');
  const before = all.map(({ pids }) => cpuTime(pids));
  await sleep(restSeconds * 1_000, undefined, { signal });
  const [one, other] = await Promise.all(
    all.map(async ({ pids, plain, tokens }, index) => ({
      cpu: (cpuTime(pids) - (before[index] ?? 0)) / (restSeconds * 10),
      delay: await eventLoopDelay(plain, tokens.plain[0], 'max'),
    })),
  );
  return { few: one as Rest, many: other as Rest };
}

/** Returns the figures that have goals. */
export const accountFindings = ({ start, lists, load, writesPerSecond, lost, rest }: AccountFigures) => ({
  'accounts: start ÷ lists': start.many.ready / lists,
  'accounts: MB': start.many.rss - start.few.rss,
  'accounts: logins ÷ few': load.many.loginsPerSecond / load.few.loginsPerSecond,
  'accounts: refreshes ÷ few': load.many.refreshesPerSecond / load.few.refreshesPerSecond,
  'accounts: refreshes ÷ writes': load.many.refreshesPerSecond / writesPerSecond.many,
  'accounts: lost': lost,
  'accounts: sweep %': rest.many.cpu - rest.few.cpu,
  'accounts: loop ms': rest.many.delay - rest.few.delay,
});

export function describeAccounts(all: AccountFigures): string {
  const { users, sessions, start, lists, load, writesPerSecond, rest, problems } = all;
  const row = (name: 'few' | 'many'): string => {
    const { ready, cpu, rss } = start[name];
    const { loginsPerSecond, loginCPU, refreshesPerSecond, refreshCPU } = load[name];
    return [
      `  ${name.padEnd(5)} ready after ${figure(ready)} ms (${figure(cpu)} ms of CPU), ${figure(rss)} MB`,
      `${figure(loginsPerSecond)} logins per second (${figure(loginCPU)} ms of CPU each)`,
      `${figure(refreshesPerSecond)} refreshes per second (${figure(refreshCPU)} ms)`,
      `at rest ${figure(rest[name].cpu)} % of a core, event loop delayed by at most ${figure(rest[name].delay)} ms`,
    ].join('; ');
  };
  return [
    `accounts: ${users} users and ${sessions} sessions, and almost none`,
    row('few'),
    row('many'),
    `  lists of the users and sessions ${figure(lists)} ms; bare writes per second: ${figure(writesPerSecond.few)} with few, ${figure(writesPerSecond.many)} with many`,
    ...problems.map((problem) => `  WRONG: ${problem}`),
  ].join('\n');
}
