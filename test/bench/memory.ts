/**
 * Measures the memory of our server: with an empty cluster, with all objects, with slow readers of full lists, and
 * under constant changes.
 */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { changesIn, changesPerSecond } from './changes.ts';
import { sendOnce } from './connection.ts';
import { paths } from './paths.ts';
import { memory, resetPeaks } from './processes.ts';
import { request } from './requests.ts';
import type { Stand } from './stand.ts';
import { median } from './statistics.ts';

/** Memory in megabytes, unless a property states another unit. */
export interface MemoryFigures {
  /** Memory of servers that have received no request. */
  readonly empty: number;
  readonly rest: number;
  /** Size of the JSON of all nodes that kube-apiserver returns. */
  readonly json: number;
  readonly slowLists: {
    readonly before: number;
    readonly peak: number;
    readonly after: number;
    /** Number of bytes that the readers received. */
    readonly read: number;
  };
  readonly churn: {
    readonly seconds: number;
    readonly changesPerSecond: number;
    readonly before: number;
    readonly after: number;
    readonly peak: number;
  };
  readonly problems: readonly string[];
}

/** Milliseconds to wait for the garbage collection. */
const settle = 5_000;

const slow = { readers: 50, bytesPerSecond: 1e6, seconds: 10 };
const churnPerSecond = 200;

export async function measureMemory(stand: Stand, churnSeconds: number, signal: AbortSignal): Promise<MemoryFigures> {
  const { site, small } = stand;
  const { kubeApiserver } = site;
  const list = request(`${paths.core}?resourceVersion=0`, {}, { token: kubeApiserver.tokens[0] });
  const { bytes } = await sendOnce(kubeApiserver.tls, list.text);
  const { problems, ...slowLists } = await measureSlowLists(stand, signal);
  const churn = await measureChurn(stand, churnSeconds, signal);
  return { empty: small.freshRss, rest: site.freshRss, json: bytes / 1e6, slowLists, churn, problems };
}

async function measureSlowLists(
  { site: { ours } }: Stand,
  signal: AbortSignal,
): Promise<MemoryFigures['slowLists'] & Pick<MemoryFigures, 'problems'>> {
  await sleep(settle, undefined, { signal });
  const { host, port } = ours.plain;
  const before = memory(ours.pids).rss;
  resetPeaks(ours.pids);
  const problems = new Set<string>();
  const readers = Array.from({ length: slow.readers }, (_, index) => {
    const { text } = request(paths.list, {}, { token: ours.tokens.plain[index % ours.tokens.plain.length] });
    return new SlowReader(connect({ host, port }), text, (what) => problems.add(what));
  });
  await sleep(slow.seconds * 1000, undefined, { signal });
  const { peak } = memory(ours.pids);
  const read = readers.reduce((sum, reader) => sum + reader.end(), 0) / 1e6;
  await sleep(settle, undefined, { signal });
  return { before, peak, after: memory(ours.pids).rss, read, problems: [...problems] };
}

/** Client that reads at the rate of `slow.bytesPerSecond`. */
class SlowReader {
  readonly #socket: Socket;
  readonly #timer: NodeJS.Timeout;
  #read = 0;

  constructor(socket: Socket, text: string, problem: (what: string) => void) {
    this.#socket = socket;
    const begin = performance.now();
    const allowed = (): number => ((performance.now() - begin) / 1000) * slow.bytesPerSecond;
    socket.on('data', (bytes: Buffer) => {
      if (this.#read === 0 && bytes.toString('latin1', 0, 13) !== 'HTTP/1.1 200 ')
        problem(`a slow reader received ${bytes.toString('latin1', 0, 100)}`);
      this.#read += bytes.length;
      if (this.#read > allowed()) socket.pause();
    });
    socket.on('error', (error: Error) => problem(error.message));
    this.#timer = setInterval(() => this.#read <= allowed() && socket.resume(), 50);
    socket.write(text);
  }

  /** Returns the number of bytes read. */
  end(): number {
    clearInterval(this.#timer);
    this.#socket.destroy();
    return this.#read;
  }
}

async function measureChurn(
  { site: { ours }, changes }: Stand,
  seconds: number,
  signal: AbortSignal,
): Promise<MemoryFigures['churn']> {
  const samples: number[] = [];
  await changes.setRate(churnPerSecond);
  resetPeaks(ours.pids);
  const first = changesIn(changes.file);
  const begin = performance.now();
  while (performance.now() - begin < seconds * 1000) {
    await sleep(1000, undefined, { signal });
    samples.push(memory(ours.pids).rss);
  }
  const elapsed = (performance.now() - begin) / 1000;
  const written = changesIn(changes.file) - first;
  const { peak } = memory(ours.pids);
  await changes.setRate(changesPerSecond);
  // Garbage collection makes memory fluctuate, so the median over a period is used.
  const part = Math.ceil(samples.length / 4);
  return {
    seconds: elapsed,
    changesPerSecond: written / elapsed,
    before: median(samples.slice(0, part)),
    after: median(samples.slice(-part)),
    peak,
  };
}
