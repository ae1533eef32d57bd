/**
 * Logins and refreshes at two servers in turns. A control program writes a session for each request, which is the lower
 * bound for a refresh.
 */
import { randomBytes } from 'node:crypto';
import { progress } from '../../hack/cluster/progress.ts';
import { release } from '../../hack/run/chart.ts';
import type { KubeClient } from '../../src/cluster/client/client.ts';
import { sessionsPath } from '../../src/config/names.ts';
import type { Session } from '../../src/tokens/sessions/session.ts';
import type { Connection } from './connection.ts';
import { paths } from './paths.ts';
import { cpuTime } from './processes.ts';
import { loginForm, type User } from './readers.ts';
import { problemOf, request } from './requests.ts';
import type { Site } from './site.ts';
import { mediansOf } from './statistics.ts';

/** Value for the server with few accounts and for the server with many. */
export type Both<T> = Readonly<Record<'few' | 'many', T>>;

/** Figures of a server. */
export interface Load {
  readonly loginsPerSecond: number;
  readonly refreshesPerSecond: number;
  /** CPU time of the server per request, in milliseconds. */
  readonly loginCPU: number;
  readonly refreshCPU: number;
}

export interface LoadFigures {
  readonly load: Both<Load>;
  /** Writes of the control program per second in the two clusters. */
  readonly writesPerSecond: Both<number>;
  /** Refreshes that did not return a new refresh token. */
  readonly lost: number;
}

/** Server under load, with a connection and the last refresh token of each worker. */
export interface Replica {
  readonly site: Site;
  readonly connections: readonly Connection[];
  readonly refreshTokens: string[];
}

const rounds = 3;
/** Duration of a part of a round, in seconds. */
const loadSeconds = 4;
/** Number of workers, each with a connection. */
export const concurrency = 16;
export const client = { client_id: 'platform', client_secret: 'platform' };

export async function measureLoad(
  { few, many }: Both<Replica>,
  kube: Both<KubeClient>,
  readers: readonly User[],
  problems: Set<string>,
  signal: AbortSignal,
): Promise<LoadFigures> {
  const all: Record<'few' | 'many', Load[]> = { few: [], many: [] };
  const writes: Both<number>[] = [];
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
    const perSecond = { few: await measureWrites(kube.few, few), many: await measureWrites(kube.many, many) };
    if (round > 0) writes.push(perSecond);
    step.end(true);
  }
  return {
    load: { few: mediansOf(all.few), many: mediansOf(all.many) },
    writesPerSecond: mediansOf(writes),
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
