/**
 * Compares our server with many users and sessions with our server in an almost empty cluster. Both servers take turns
 * in each round. A control program writes a session for each request, which is the lower bound for a refresh.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { build } from '../../hack/build.ts';
import { largeClusterTimeout } from '../../hack/cluster/control-plane.ts';
import { progress } from '../../hack/cluster/progress.ts';
import { until } from '../../hack/cluster/until.ts';
import { release } from '../../hack/run/chart.ts';
import { createKubeClient, type KubeClient } from '../../src/cluster/client/client.ts';
import { sessionsPath, usersPath } from '../../src/config/names.ts';
import type { Session } from '../../src/tokens/sessions/session.ts';
import { clientName, clients } from './account-objects.ts';
import { Connection } from './connection.ts';
import { paths } from './paths.ts';
import { eventLoopDelay } from './flood.ts';
import { cpuTime, memory } from './processes.ts';
import { loginForm, makeUsers, type User, type Users } from './readers.ts';
import { problemOf, request } from './requests.ts';
import { startSite, type Site } from './site.ts';
import { median, mediansOf } from './statistics.ts';
import { figure } from './table.ts';

export interface AccountSizes {
  readonly users: number;
  readonly sessions: number;
}

/** Figures of a server. */
interface Load {
  readonly loginsPerSecond: number;
  readonly refreshesPerSecond: number;
  /** CPU time of the server per request, in milliseconds. */
  readonly loginCPU: number;
  readonly refreshCPU: number;
}

interface Start {
  /** Milliseconds from the start of the process. */
  readonly ready: number;
  readonly cpu: number;
  /** Megabytes some seconds later. */
  readonly rss: number;
}

interface Rest {
  /** CPU time in percent of a core. */
  readonly cpu: number;
  /** Maximum delay of the event loop in milliseconds. */
  readonly delay: number;
}

type Both<T> = Readonly<Record<'few' | 'many', T>>;

export interface AccountFigures extends AccountSizes {
  readonly start: Both<Start>;
  /** Milliseconds for the lists of the same users and sessions, requested at the same time. */
  readonly lists: number;
  readonly load: Both<Load>;
  /** Writes of the control program per second, in the cluster with many sessions. */
  readonly writesPerSecond: number;
  /** Refreshes that did not return a new refresh token. */
  readonly lost: number;
  readonly rest: Both<Rest>;
  readonly problems: readonly string[];
}

const rounds = 3;
const starts = 2;
/** Duration of a part of a round, in seconds. */
const loadSeconds = 4;
const concurrency = 16;
/** Seconds in which each server sweeps the sessions once. */
const restSeconds = 61;
/** Milliseconds to wait until the garbage of the start has been collected. */
const settle = 5_000;
const client = { client_id: 'platform', client_secret: 'platform' };
const names = { few: 'accounts-few', many: 'accounts-many' } as const;

/** Names of the state folders. */
export const accountFolders: readonly string[] = Object.values(names);

/** Server under load, with a connection and the last refresh token of each worker. */
interface Replica {
  readonly site: Site;
  readonly connections: readonly Connection[];
  readonly refreshTokens: string[];
}

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
    const kube = await createKubeClient({ kubeconfig: many.site.kubeconfig });
    try {
      const step = progress('accounts: start');
      const [started, lists] = await measureStarts({ few, many }, kube, signal);
      step.end(true);
      const load = await measureLoad({ few, many }, kube, users.readers, problems, signal);
      const resting = progress('accounts: at rest');
      const rest = await measureRest({ few, many }, signal);
      resting.end(true);
      return { ...sizes, start: started, lists, ...load, rest, problems: [...problems] };
    } finally {
      await kube.close();
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

async function measureStarts(
  { few, many }: Both<Replica>,
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

async function measureStart({ site }: Replica, name: string, signal: AbortSignal): Promise<Start> {
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

async function measureLoad(
  { few, many }: Both<Replica>,
  kube: KubeClient,
  readers: readonly User[],
  problems: Set<string>,
  signal: AbortSignal,
): Promise<Pick<AccountFigures, 'load' | 'writesPerSecond' | 'lost'>> {
  const all: Record<'few' | 'many', Load[]> = { few: [], many: [] };
  const writes: number[] = [];
  let lost = 0;
  // The first round is not counted, because V8 compiles the code in it.
  for (let round = 0; round <= rounds; round += 1) {
    const step = progress(`accounts: round ${round}`);
    for (const [name, replica] of Object.entries({ few, many }) as ['few' | 'many', Replica][]) {
      signal.throwIfAborted();
      const login = await repeat(replica, async (worker, time) => {
        const user = readers[(worker + concurrency * time) % readers.length] as User;
        const problem = await requestToken(replica, worker, loginForm(user));
        if (problem !== undefined) problems.add(`login: ${problem}`);
      });
      const refresh = await repeat(replica, async (worker) => {
        const form = { grant_type: 'refresh_token', refresh_token: replica.refreshTokens[worker] ?? '', ...client };
        const problem = await requestToken(replica, worker, form);
        if (problem === undefined) return;
        lost += 1;
        problems.add(`refresh: ${problem}`);
      });
      if (round > 0)
        all[name].push({
          loginsPerSecond: login.perSecond,
          loginCPU: login.cpu,
          refreshesPerSecond: refresh.perSecond,
          refreshCPU: refresh.cpu,
        });
    }
    const perSecond = await measureWrites(kube, many);
    if (round > 0) writes.push(perSecond);
    step.end(true);
  }
  return {
    load: { few: mediansOf(all.few), many: mediansOf(all.many) },
    writesPerSecond: median(writes),
    lost,
  };
}

/** Sends requests for `loadSeconds`, one after the other in each worker. */
async function repeat(
  { site }: Replica,
  send: (worker: number, time: number) => Promise<void>,
): Promise<{ perSecond: number; cpu: number }> {
  const { pids } = site.ours;
  const begin = performance.now();
  const before = cpuTime(pids);
  let count = 0;
  await Promise.all(
    Array.from({ length: concurrency }, async (_, worker) => {
      for (let time = 0; performance.now() - begin < loadSeconds * 1_000; time += 1) {
        await send(worker, time);
        count += 1;
      }
    }),
  );
  return { perSecond: (count * 1_000) / (performance.now() - begin), cpu: (cpuTime(pids) - before) / count };
}

/** Requests a refresh token and keeps it for the worker. Returns the problem of the response, if there is one. */
async function requestToken(
  { connections, refreshTokens }: Replica,
  worker: number,
  form: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const { text, expected } = request(paths.token, { text: '"refresh_token"' }, { form });
  const response = await (connections[worker] as Connection).send(Buffer.from(text), true);
  const problem = problemOf(response, expected);
  if (problem === undefined)
    refreshTokens[worker] = (JSON.parse(String(response.body)) as { refresh_token: string }).refresh_token;
  return problem;
}

/** Returns the writes per second of a program that only writes sessions. */
async function measureWrites(kube: KubeClient, replica: Replica): Promise<number> {
  const path = sessionsPath(release.namespace);
  const { items } = await kube.json<{ items: Session[] }>(path, { query: { limit: concurrency } });
  const { perSecond } = await repeat(replica, async (worker) => {
    const { metadata, ...session } = items[worker] as Session;
    items[worker] = await kube.json<Session>(`${path}/${metadata.name}`, {
      method: 'PUT',
      body: { metadata, ...session, status: { ...session.status, currentHash: randomBytes(32).toString('hex') } },
    });
  });
  return perSecond;
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
  'accounts: refreshes ÷ writes': load.many.refreshesPerSecond / writesPerSecond,
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
    `  lists of the users and sessions ${figure(lists)} ms; ${figure(writesPerSecond)} bare writes per second`,
    ...problems.map((problem) => `  WRONG: ${problem}`),
  ].join('\n');
}
