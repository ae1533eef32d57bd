/** Measures the latency and the cost of changes for many watches. Checks that every watch receives every change. */
import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../hack/cluster/until.ts';
import { changesIn, changesPerSecond, changesSince, now } from './changes.ts';
import { sendOnce, type Target } from './connection.ts';
import { Histogram } from './histogram.ts';
import type { AtRest } from './measure.ts';
import { paths } from './paths.ts';
import { cpuTime, memory } from './processes.ts';
import { request } from './requests.ts';
import type { Stand } from './stand.ts';
import type { Inquiry, Progress, Tally, WatchersJob } from './watchers.ts';
import { labels, type Server } from './cases.ts';

export interface WatchFigures {
  readonly server: Server;
  readonly label: string;
  readonly watchers: number;
  readonly perSecond: number;
  readonly events: number;
  /**
   * Number of events that a watch did not receive within a minute of the last change, or because the watch was closed.
   */
  readonly lost: number;
  /** Milliseconds from the response to a write until the receipt of the event. */
  readonly p50: number;
  readonly p99: number;
  /** CPU time of the server per event, in microseconds. */
  readonly cpu: number;
  readonly eventsPerSecond: number;
  /** Memory in megabytes. */
  readonly rss: number;
  readonly problems: readonly string[];
}

/** Number of watching processes. The number is small, because these processes share the machine with the server. */
const processes = 2;
const observedSeconds = 10;
/** Milliseconds until the changes have reached their rate. */
const settle = 3_000;
const timeout = 60_000;

const program = fileURLToPath(import.meta.resolve('./watchers.ts'));

interface Watched {
  readonly server: Server;
  readonly label: string;
  readonly target: Target;
  readonly tokens: readonly string[];
  readonly pids: readonly number[];
  readonly path: (resourceVersion: string) => string;
  /**
   * CPU time of the server per change without watches, in milliseconds. This time is subtracted, because it is not
   * caused by watches.
   */
  readonly spared: number;
}

export async function measureWatches(
  stand: Stand,
  rest: readonly AtRest[],
  { watchers, perSecond, withTLS }: { watchers: number; perSecond: number; withTLS: boolean },
  signal: AbortSignal,
): Promise<WatchFigures[]> {
  const { ours, kubeApiserver } = stand.site;
  const subjects: Watched[] = [
    ...(withTLS ? (['plain', 'tls'] as const) : (['plain'] as const)).map((face) => ({
      server: 'ours' as const,
      label: labels[face],
      target: ours[face],
      tokens: ours.tokens[face],
      pids: ours.pids,
      path: paths.watch,
      spared: 0,
    })),
    {
      server: 'kube-apiserver',
      label: labels.latest,
      target: kubeApiserver.tls,
      tokens: kubeApiserver.tokens,
      pids: kubeApiserver.pids,
      path: paths.coreWatch,
      spared: rest.find(({ server }) => server === 'kube-apiserver')?.cpuPerChange ?? 0,
    },
  ];
  const all: WatchFigures[] = [];
  try {
    for (const subject of subjects) all.push(await measure(stand, subject, watchers, perSecond, signal));
  } finally {
    await stand.changes.setRate(changesPerSecond);
  }
  return all;
}

async function measure(
  { site, changes }: Stand,
  { server, label, target, tokens, pids, path, spared }: Watched,
  watchers: number,
  perSecond: number,
  signal: AbortSignal,
): Promise<WatchFigures> {
  const { kubeApiserver } = site;
  // Stops the changes. Otherwise each watch would start with the changes since its resourceVersion.
  await changes.setRate(0);
  const { text } = request(`${paths.core}?limit=1`, {}, { token: kubeApiserver.tokens[0] });
  const response = await sendOnce(kubeApiserver.tls, text);
  const { metadata } = JSON.parse(String(response.body)) as { metadata: { resourceVersion: string } };
  const { resourceVersion } = metadata;
  const requests = Array.from({ length: watchers }, (_, index) => {
    const token = tokens[index % tokens.length];
    return request(path(resourceVersion), {}, { token }).text;
  });
  const readers = Array.from({ length: processes }, (_, part) =>
    startReaders({
      target,
      requests: requests.filter((_request, index) => index % processes === part),
      resourceVersion: Number(resourceVersion),
    }),
  );
  const progress = (): Progress => ({
    open: readers.reduce((sum, reader) => sum + reader.progress.open, 0),
    reached: Math.min(...readers.map((reader) => reader.progress.reached)),
  });
  const check = async (): Promise<void> => {
    signal.throwIfAborted();
    for (const reader of readers) reader.check();
  };
  try {
    await until(`${watchers} watches are open`, check, async () => progress().open === watchers, timeout);
    await changes.setRate(perSecond);
    await sleep(settle, undefined, { signal });
    const first = changesIn(changes.file);
    const before = { cpu: cpuTime(pids), time: now() };
    await sleep(observedSeconds * 1000, undefined, { signal });
    const after = { cpu: cpuTime(pids), time: now() };
    const { rss } = memory(pids);
    const written = changesSince(changes.file, first).toSorted((a, b) => a.resourceVersion - b.resourceVersion);
    const last = written.at(-1)?.resourceVersion ?? 0;
    await changes.setRate(0); // No changes are written now, so watches on an overloaded machine can catch up.
    await until('all watches are up to date', check, async () => progress().reached >= last, timeout).catch(() =>
      check(),
    );
    const inquiry = { changes: written, from: before.time, to: after.time };
    const tallies = await Promise.all(readers.map((reader) => reader.query(inquiry)));
    const delays = new Histogram();
    for (const { tally } of tallies) delays.addPairs(tally.delays);
    const sum = (of: (tally: Tally['tally']) => number): number =>
      tallies.reduce((total, { tally }) => total + of(tally), 0);
    const events = sum((tally) => tally.events);
    const seconds = (after.time - before.time) / 1000;
    return {
      server,
      label,
      watchers,
      perSecond: written.length / seconds,
      events,
      lost: sum((tally) => tally.lost),
      p50: delays.quantile(0.5),
      p99: delays.quantile(0.99),
      cpu: ((after.cpu - before.cpu - spared * written.length) * 1000) / events,
      eventsPerSecond: events / seconds,
      rss,
      problems: [
        ...new Set(tallies.flatMap(({ problems }) => problems)),
        ...(written.length < perSecond ? ['hardly any changes came'] : []),
      ],
    };
  } finally {
    for (const reader of readers) reader.end();
  }
}

interface Readers {
  progress: Progress;
  check(): void;
  query(inquiry: Inquiry): Promise<Tally>;
  end(): void;
}

function startReaders(job: WatchersJob): Readers {
  const child: ChildProcess = fork(program, { serialization: 'advanced' });
  let resolveTally: ((tally: Tally) => void) | undefined;
  const readers: Readers = {
    progress: { open: 0, reached: 0 },
    check: () => {
      if (child.exitCode !== null) throw new Error(`the readers of watches have ended with ${child.exitCode}`);
    },
    query: (inquiry) =>
      new Promise((resolve) => {
        resolveTally = resolve;
        child.send(inquiry);
      }),
    end: () => child.kill('SIGKILL'),
  };
  child.on('message', (message: Progress | Tally) => {
    if ('tally' in message) resolveTally?.(message);
    else readers.progress = message;
  });
  child.send(job);
  return readers;
}
