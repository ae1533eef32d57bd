/**
 * Measures the latency and the rejected requests of twenty users or addresses. Meanwhile, another user or address uses
 * as much as possible of a shared resource.
 */
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { hog, others, password, reviewTime, slowTime, startBenchLab, type BenchLab } from './lab/lab.ts';
import { ascending, quantile } from './statistics.ts';

export interface Fairness {
  readonly name: string;
  /**
   * p99 latency of the other users in milliseconds: without the heavy user (`alone`) and with the heavy user
   * (`beside`).
   */
  readonly alone: number;
  readonly beside: number;
  /** Milliseconds that one unit of the contended work takes. */
  readonly unit: number;
  /** Number of requests of the other users while the heavy user is active. */
  readonly requests: number;
  /** Number of responses by status, of the other users and of the heavy user. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly hogStatuses: Readonly<Record<string, number>>;
}

interface Sent {
  readonly path: string;
  readonly form?: Readonly<Record<string, string>>;
  /** User of the bearer token; undefined for a request with a form. */
  readonly user?: string;
  readonly address: string;
  /** True if the latency ends at the first byte of the response. */
  readonly firstByte?: boolean;
}

interface FairnessCase {
  readonly name: string;
  readonly unit: number;
  /** Number of concurrent requests of the heavy user. */
  readonly hogs: number;
  readonly hog: (index: number) => Sent;
  readonly other: (user: string, index: number) => Sent;
  /** Pause of each other user between two requests, in milliseconds. */
  readonly pause?: number;
  /** Duration of each measurement in seconds. */
  readonly seconds?: number;
}

const usualSeconds = 10;
// Duration for logins. In ten seconds there would be so few logins that the p99 would be the slowest login.
const loginSeconds = 40;
/** Milliseconds between two reads. The reads sample the latency of one reader without adding load. */
const usualPause = 100;
/** Milliseconds between two logins. Each login computes a hash for 20 ms on one core. */
const loginPause = 2_000;
const resources = '/kapis/resources.platform.io/v1alpha3';
const logs = '/kapis/logging.platform.io/v1alpha2/logs';
const random = (): string => Math.random().toString(36).slice(2);
const addressOf = (user: string): string => `192.0.2.${1 + others.indexOf(user)}`;
const hogAddress = '198.51.100.1';

const logins = {
  other: (user: string): Sent => login(user, addressOf(user)),
  pause: loginPause,
  seconds: loginSeconds,
};
const login = (username: string, address: string): Sent => ({
  path: '/oauth/token',
  form: { grant_type: 'password', username, password, client_id: 'bench', client_secret: 'of-the-bench' },
  address,
});
const get = (user: string, path: string, more: Partial<Sent> = {}): Sent => ({
  path,
  user,
  address: user === hog ? hogAddress : addressOf(user),
  ...more,
});
const manyNamespaces = (): string =>
  `${logs}?operation=statistics&namespaces=${Array.from({ length: 200 }, random).join(',')}`;
const uncached = (namespace: string): string => `${resources}/namespaces/${namespace}/secrets`;
const watch = `${uncached('shop')}?watch=true`;

const cases: readonly FairnessCase[] = [
  {
    name: 'hash threads',
    unit: 40,
    hogs: 200,
    hog: () => login(hog, hogAddress),
    ...logins,
  },
  {
    name: 'access reviews',
    unit: reviewTime,
    hogs: 100,
    hog: () => get(hog, manyNamespaces()),
    other: (user) => get(user, `${logs}?operation=statistics&namespaces=${random()}`),
  },
  {
    name: 'access reviews (others log in)',
    unit: reviewTime,
    hogs: 100,
    hog: () => get(hog, manyNamespaces()),
    ...logins,
  },
  {
    name: 'connections to kube-apiserver',
    unit: slowTime,
    hogs: 200,
    hog: () => get(hog, uncached('shop')),
    other: (user) => get(user, uncached('shop')),
  },
  {
    name: 'connections to kube-apiserver (others log in)',
    unit: slowTime,
    hogs: 200,
    hog: () => get(hog, uncached('shop')),
    ...logins,
  },
  {
    name: 'log queries',
    unit: slowTime,
    hogs: 100,
    hog: () => get(hog, `${logs}?namespaces=slow`),
    other: (user) => get(user, `${logs}?namespaces=shop`),
  },
  {
    name: 'exports',
    unit: slowTime,
    hogs: 100,
    hog: () => get(hog, `${logs}?namespaces=slow&operation=export`),
    other: (user) => get(user, `${logs}?namespaces=shop&operation=export`),
  },
  {
    name: 'watches of uncached resources',
    unit: slowTime,
    hogs: 400,
    hog: () => get(hog, watch),
    other: (user) => get(user, watch, { firstByte: true }),
  },
  {
    name: 'token reviews',
    unit: reviewTime,
    hogs: 100,
    hog: () => get(`${hog}-${random()}`, '/kapis/iam.platform.io/v1alpha2/whoami', { address: hogAddress }),
    other: (user) => get(`${user}-${random()}`, '/kapis/iam.platform.io/v1alpha2/whoami', { address: addressOf(user) }),
  },
];

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const tokenOf = (name: string): string =>
  `${encoded({ alg: 'none' })}.${encoded({ iss: 'https://k', sub: name })}.none`;

function send(
  { port }: BenchLab,
  agent: http.Agent,
  { path, form, user, address, firstByte }: Sent,
  signal: AbortSignal,
): Promise<number> {
  const body = form === undefined ? undefined : new URLSearchParams(form).toString();
  return new Promise((resolve, reject) => {
    const request = http.request({
      host: '127.0.0.1',
      port,
      path,
      method: body === undefined ? 'GET' : 'POST',
      agent,
      signal,
      headers: {
        'x-forwarded-for': address,
        ...(user === undefined ? {} : { authorization: `Bearer ${tokenOf(user)}` }),
        ...(body === undefined
          ? {}
          : { 'content-type': 'application/x-www-form-urlencoded', 'content-length': Buffer.byteLength(body) }),
      },
    });
    request.once('error', reject);
    request.once('response', (response) => {
      const { statusCode = 0 } = response;
      response.on('error', reject);
      if (firstByte === true) {
        resolve(statusCode);
        response.on('error', () => undefined);
        response.destroy();
      } else response.resume().once('end', () => resolve(statusCode));
    });
    request.end(body);
  });
}

/** Sends sequential requests until the signal is aborted. */
async function repeat(
  lab: BenchLab,
  next: (index: number) => Sent,
  signal: AbortSignal,
  statuses: Record<string, number>,
  { pause = 0, times = [] }: { readonly pause?: number; readonly times?: number[] } = {},
): Promise<void> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  for (let index = 0; !signal.aborted; index += 1) {
    const started = performance.now();
    try {
      const status = await send(lab, agent, next(index), signal);
      // The first request is not counted, because it opens the connection.
      if (index > 0) times.push(performance.now() - started);
      statuses[status] = (statuses[status] ?? 0) + 1;
      // Obeys Retry-After, so that the limit of the resource is measured and not the machine's CPU.
      await sleep(status === 429 ? 1_000 : pause, undefined, { signal }).catch(() => undefined);
    } catch (error) {
      if (!signal.aborted) statuses[(error as Error).message] = (statuses[(error as Error).message] ?? 0) + 1;
    }
  }
  agent.destroy();
}

async function measure(
  lab: BenchLab,
  { other, pause = usualPause, seconds = usualSeconds }: FairnessCase,
): Promise<{ p99: number; requests: number; statuses: Record<string, number> }> {
  const statuses: Record<string, number> = {};
  const times: number[] = [];
  const signal = AbortSignal.timeout(seconds * 1_000);
  await Promise.all(
    others.map((user) => repeat(lab, (index) => other(user, index), signal, statuses, { pause, times })),
  );
  return { p99: quantile(ascending(times), 0.99), requests: times.length, statuses };
}

async function run(lab: BenchLab, one: FairnessCase): Promise<Fairness> {
  await measure(lab, one);
  const alone = await measure(lab, one);
  const over = new AbortController();
  const hogStatuses: Record<string, number> = {};
  const taking = Array.from({ length: one.hogs }, () => repeat(lab, one.hog, over.signal, hogStatuses));
  const beside = await measure(lab, one);
  over.abort();
  await Promise.all(taking);
  const { name, unit } = one;
  return {
    name,
    alone: alone.p99,
    beside: beside.p99,
    unit,
    requests: beside.requests,
    statuses: beside.statuses,
    hogStatuses,
  };
}

export async function measureFairness(): Promise<Fairness[]> {
  const results: Fairness[] = [];
  for (const one of cases) {
    // Each case gets a new server, so that no case affects the next case.
    const lab = await startBenchLab();
    try {
      results.push(await run(lab, one));
    } finally {
      await lab.stop();
    }
  }
  return results;
}

/** Statuses that the other users should get. */
const served = new Set(['200']);

export const isRefused = ({ statuses }: Fairness): boolean =>
  Object.keys(statuses).some((status) => !served.has(status));

/**
 * Compares the figures with the goals: the other users have no rejected requests, and the heavy user at most doubles
 * their latency or adds one unit of the contended work.
 */
export function describeFairness(all: readonly Fairness[]): string {
  const lines = all.map((one) => {
    const { name, alone, beside, unit, requests, statuses } = one;
    const figures = `p99 ${alone.toFixed(0)} ms alone, ${beside.toFixed(0)} ms with the heavy user (unit ${unit} ms) of ${requests}`;
    const slow = beside <= Math.max(2 * alone, alone + unit) ? '' : ' SLOW';
    return `  ${name.padEnd(46)} ${figures}${slow}${isRefused(one) ? ` REFUSED ${JSON.stringify(statuses)}` : ''}`;
  });
  return ['fairness: twenty others while one user or address uses as much as possible', ...lines].join('\n');
}
