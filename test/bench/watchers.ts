/**
 * A process that holds watches, started by fork. The process receives a `WatchersJob`, and later an `Inquiry` for the
 * final count. The process sends `Progress` repeatedly, and finally a `Tally`.
 */
import { connect, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTLS } from 'node:tls';
import { setTimeout as sleep } from 'node:timers/promises';
import { now, type Change } from './changes.ts';
import type { Target } from './connection.ts';
import { Histogram } from './histogram.ts';
import { WatchReader } from './watch-reader.ts';

export interface WatchersJob {
  readonly target: Target;
  /** One request per watch. */
  readonly requests: readonly string[];
  /** The resourceVersion at which the watches start. */
  readonly resourceVersion: number;
}

export interface Inquiry {
  /** Changes sorted by resourceVersion. Every watch must have received each change once. */
  readonly changes: readonly Change[];
  /** Start and end of the CPU measurement, in milliseconds of the machine's monotonic clock. */
  readonly from: number;
  readonly to: number;
}

export interface Progress {
  readonly open: number;
  /** The resourceVersion that all watches have reached. */
  readonly reached: number;
}

export interface Tally {
  readonly tally: {
    /** Number of missing changes over all watches. */
    readonly lost: number;
    /** Number of events received between `from` and `to`. */
    readonly events: number;
    readonly delays: readonly (readonly [bin: number, count: number])[];
  };
  readonly problems: readonly string[];
}

const openingAtOnce = 16;
/** Milliseconds before a retry after status 429. */
const pause = 1000;
const progressInterval = 200;
const growth = 2 ** 20;

const problems = new Set<string>();
/** The resourceVersion of every event, with its time of receipt. */
let versions = new Uint32Array(growth);
let times = new Float64Array(growth);
let received = 0;
/** Time of receipt of the bytes that are being parsed. */
let time = 0;
/** Last resourceVersion of each watch. */
let last: Float64Array = new Float64Array(0);
let open = 0;
let base = 0;
/** Buffer shared by all sockets: each read is parsed before the next. */
const buffer = Buffer.allocUnsafe(256 * 1024);

process.on('message', (message: WatchersJob | Inquiry) => {
  if ('changes' in message) process.send?.(tallied(message), () => process.exit(0));
  else void begin(message);
});
process.on('disconnect', () => process.exit(1));

async function begin({ target, requests, resourceVersion }: WatchersJob): Promise<void> {
  base = resourceVersion;
  last = new Float64Array(requests.length).fill(resourceVersion);
  setInterval(() => {
    process.send?.({ open, reached: last.reduce((a, b) => Math.min(a, b)) } satisfies Progress);
  }, progressInterval);
  const queue = [...requests.entries()];
  const opener = async (): Promise<void> => {
    for (let entry = queue.shift(); entry !== undefined; entry = queue.shift()) await watch(target, ...entry);
  };
  await Promise.all(Array.from({ length: openingAtOnce }, opener));
}

/** Opens a watch and resolves when it is open. Retries while the server is overloaded, as other clients do. */
async function watch(target: Target, index: number, request: string): Promise<void> {
  const reader = new WatchReader({
    event: (resourceVersion) => note(index, resourceVersion),
    problem: (what) => problems.add(what),
  });
  let refused = false;
  const socket = dial(target, (bytes) => {
    time = now();
    reader.read(bytes);
  });
  socket.on('error', (error: Error) => problems.add(error.message));
  socket.on('close', () => {
    if (!refused) problems.add('the connection of a watch was closed');
  });
  socket.write(request);
  while (reader.status === 0 && problems.size === 0) await sleep(5);
  if (reader.status === 429) {
    refused = true;
    socket.destroy();
    await sleep(pause);
    return watch(target, index, request);
  }
  if (reader.status === 200) open++;
  else problems.add(`a watch received ${reader.status}`);
}

function dial({ host, port, tls }: Target, callback: (bytes: Buffer) => void): Socket {
  const onread: OnReadOpts = {
    buffer,
    callback: (length) => {
      callback(buffer.subarray(0, length));
      return true;
    },
  };
  const options = { host, port, noDelay: true, onread };
  return tls === undefined ? connect(options) : connectTLS({ ...options, ...tls, ALPNProtocols: ['http/1.1'] });
}

function note(index: number, resourceVersion: number): void {
  if (resourceVersion <= (last[index] ?? 0)) problems.add('an event came twice, or out of order');
  last[index] = resourceVersion;
  if (received === versions.length) {
    versions = grown(versions, new Uint32Array(received + growth));
    times = grown(times, new Float64Array(received + growth));
  }
  versions[received] = resourceVersion - base;
  times[received++] = time;
}

function grown<T extends Uint32Array | Float64Array>(old: T, bigger: T): T {
  bigger.set(old);
  return bigger;
}

function tallied({ changes, from, to }: Inquiry): Tally {
  const delays = new Histogram();
  const written = new Map(changes.map((change) => [change.resourceVersion - base, change.time]));
  const counts = new Map([...written.keys()].map((version) => [version, 0]));
  const [first = 0, final = 0] = [changes[0]?.resourceVersion, changes.at(-1)?.resourceVersion];
  let events = 0;
  for (let index = 0; index < received; index++) {
    const [version, receivedAt] = [versions[index] ?? 0, times[index] ?? 0];
    if (receivedAt >= from && receivedAt < to) events++;
    const writtenAt = written.get(version);
    if (writtenAt !== undefined) delays.add(receivedAt - writtenAt);
    // Every watch must also receive the events of other writers.
    if (version + base >= first && version + base <= final) counts.set(version, (counts.get(version) ?? 0) + 1);
  }
  let lost = 0;
  for (const count of counts.values()) lost += last.length - count;
  return { tally: { lost, events, delays: delays.toPairs() }, problems: [...problems] };
}
