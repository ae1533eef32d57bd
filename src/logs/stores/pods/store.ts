/**
 * Reads the logs of existing pods from their nodes, without a log store in the cluster. Requests to kube-apiserver are
 * sent as the caller, so RBAC applies. kube-apiserver cannot search, sort or count logs. This store therefore searches,
 * sorts and counts them itself, within a limited time window and limited memory.
 */
import type { LogStoreSettings } from '../../../config/log-stores.ts';
import { serviceUnavailable } from '../../../runtime/errors.ts';
import { Slots } from '../../../runtime/slots.ts';
import { bucketOf, bucketsBetween } from '../../query/intervals.ts';
import {
  Reasons,
  type Caller,
  type Cut,
  type Found,
  type Histogram,
  type Interval,
  type LogPage,
  type LogRecord,
  type LogStore,
  type LogStoreType,
  type Selection,
  type Statistics,
  type StoreFor,
  type TimeOrder,
} from '../log-store.ts';
import { FirstEntries } from './entry.ts';
import { exportPieces } from './export.ts';
import { followSources } from './follow.ts';
import { scan, type ScanOptions, type Take, type Window } from './scan.ts';
import { isNarrow, sourcesOf, textWanted, type ListPods } from './source.ts';
import { millisecondsOf, timeText } from '../../query/times.ts';

export interface PodsLimits {
  /** Maximum logs of one query that are read concurrently. */
  readonly atOnce: number;
  /** Maximum containers of a query that is limited to certain pods (`isNarrow`), and of any other query. */
  readonly narrow: number;
  readonly wide: number;
  /** Length in seconds of the time range of a query without a start. */
  readonly window: number;
  /** Maximum number of lines per log, counted from the newest. */
  readonly lines: number;
  /** Maximum bytes per log. */
  readonly bytes: number;
  /**
   * Maximum bytes of records in memory, for a query and for an export. An export holds its records until the client has
   * read them.
   */
  readonly queryBytes: number;
  readonly exportBytes: number;
  /** Maximum milliseconds of a query. */
  readonly budget: number;
  /** Maximum containers of one tail, of all tails of one user, and of all tails. */
  readonly followed: number;
  readonly followedPerUser: number;
  readonly allFollowed: number;
  /** Milliseconds between two lookups of new containers. */
  readonly lookInterval: number;
}

export const podsLimits: Omit<PodsLimits, 'bytes'> = {
  atOnce: 10,
  narrow: 1_000,
  wide: 50,
  window: 3_600,
  lines: 100_000,
  queryBytes: 32 * 1024 * 1024,
  exportBytes: 8 * 1024 * 1024,
  budget: 25_000,
  followed: 50,
  followedPerUser: 100,
  allFollowed: 400,
  lookInterval: 3_000,
};

export interface PodsOptions {
  readonly list: ListPods;
  readonly limits: PodsLimits;
}

const noStart = ({ window }: PodsLimits): string =>
  `only the last ${window / 60} minutes before the end were read: set start_time to read more`;

/** Options, slots and abort signal that the stores of all callers share. */
interface Shared extends PodsOptions {
  readonly slots: Slots;
  readonly ended: AbortController;
}

class PodsStore implements LogStore {
  readonly name = 'pods';
  readonly #shared: Shared;
  readonly #caller: Caller;
  readonly #holder: string;

  constructor(shared: Shared, caller: Caller, holder: string) {
    this.#shared = shared;
    this.#caller = caller;
    this.#holder = holder;
  }

  async query(selection: Selection, { order, from, size }: LogPage, signal: AbortSignal): Promise<Found> {
    const { queryBytes } = this.#shared.limits;
    const first = new FirstEntries(order, size === 0 ? 0 : from + size, queryBytes);
    let total = 0;
    const reasons = await this.#scan(selection, signal, (_, time, entry) => {
      total += 1;
      if (first.mayInclude(time)) first.add(entry());
    });
    const records = first.all().slice(from, from + size);
    if (first.isCut)
      reasons.add(`the records of this and all previous pages exceed ${queryBytes} bytes: use a shorter time range`);
    return { total, records: records.map(({ record }): LogRecord => record), ...reasons.cut };
  }

  async statistics(selection: Selection, signal: AbortSignal): Promise<Statistics> {
    const containers = new Set<string>();
    let logs = 0;
    const reasons = await this.#scan(selection, signal, ({ namespace, pod, container }) => {
      logs += 1;
      containers.add(`${namespace}/${pod}/${container}`);
    });
    return { containers: containers.size, logs, ...reasons.cut };
  }

  async histogram(selection: Selection, interval: Interval, signal: AbortSignal): Promise<Histogram> {
    const counts = new Map<number, number>();
    let total = 0;
    const reasons = await this.#scan(selection, signal, (_, time) => {
      total += 1;
      const bucket = bucketOf(millisecondsOf(time), interval);
      counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
    });
    return { total, histograms: bucketsBetween(counts, interval), ...reasons.cut };
  }

  async *export(
    selection: Selection,
    order: TimeOrder,
    signal: AbortSignal,
  ): AsyncGenerator<readonly LogRecord[], Cut> {
    const options = await this.#scanOptions(selection, signal);
    yield* exportPieces(options, order, this.#shared.limits.exportBytes);
    return options.reasons.cut;
  }

  follow(selection: Selection, signal: AbortSignal): AsyncGenerator<readonly LogRecord[], Cut> {
    const { list, limits, slots } = this.#shared;
    const takeSlot = (): (() => void) => slots.take(this.#holder);
    return followSources({ caller: this.#caller, list, selection, limits, takeSlot, signal: this.#until(signal) });
  }

  async check(): Promise<void> {
    // No check is needed here, because kube-apiserver has its own health check.
  }

  async close(): Promise<void> {
    this.#shared.ended.abort(serviceUnavailable('the log store configuration changed', 1));
  }

  #until(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([signal, this.#shared.ended.signal]);
  }

  /** Reads within the limits of a query. Returns the reasons why the result is incomplete. */
  async #scan(selection: Selection, signal: AbortSignal, take: Take): Promise<Reasons> {
    const { lines, budget } = this.#shared.limits;
    const options = await this.#scanOptions(selection, signal);
    await scan({ ...options, tailLines: lines, budget }, take);
    return options.reasons;
  }

  async #scanOptions(selection: Selection, requestSignal: AbortSignal): Promise<ScanOptions> {
    const { list, limits } = this.#shared;
    const { start, end, namespaces } = selection;
    const reasons = new Reasons();
    const window: Window = {
      from: Math.max(start ?? end - limits.window, 0),
      to: end,
      last: timeText(end),
      since: (namespace) => namespaces?.get(namespace) ?? 0,
    };
    const signal = this.#until(requestSignal);
    const max = limits[isNarrow(selection) ? 'narrow' : 'wide'];
    const sources = await sourcesOf(list, selection, max, reasons, signal);
    // Pods created within the window have no older records.
    if (start === undefined && sources.some(({ createdAt }) => createdAt < window.from * 1_000))
      reasons.add(noStart(limits));
    const wanted = textWanted(selection);
    const { atOnce, bytes: limitBytes } = limits;
    return { caller: this.#caller, sources, window, wanted, atOnce, limitBytes, reasons, signal };
  }
}

/**
 * Returns a function that creates the store of a caller. All of these stores share the slots for followed containers.
 */
export function podsStore(options: PodsOptions): StoreFor {
  const { allFollowed, followedPerUser } = options.limits;
  const slots = new Slots({ what: 'followed containers', total: allFollowed, perUser: followedPerUser });
  const shared = { ...options, slots, ended: new AbortController() };
  return (caller, holder) => new PodsStore(shared, caller, holder);
}

export const pods: LogStoreType<LogStoreSettings<'pods'>> = {
  open: ({ maxBytesPerContainer: bytes }, { listPods: list }) => podsStore({ list, limits: { ...podsLimits, bytes } }),
  limitsOwnTime: true,
};
