/**
 * The cluster's own pod logs, with nothing installed: what the nodes still keep of the pods that live, asked for at kube-apiserver as the
 * caller, so that RBAC holds. It cannot search, order or count, so that happens here, within a window and a memory that are bounded.
 */
import { serviceUnavailable } from '../../runtime/errors.ts';
import { Slots } from '../../runtime/slots.ts';
import { bucketOf, bucketsBetween } from '../query/intervals.ts';
import {
  intervalUnits,
  type Caller,
  type LogRecord,
  type LogStore,
  type LogPage,
  type Selection,
} from './log-store.ts';
import { Best } from './pods/entry.ts';
import { exportPieces } from './pods/export.ts';
import { followSources } from './pods/follow.ts';
import { Reasons, scan, type ScanOptions, type Window } from './pods/scan.ts';
import { isNarrow, sourcesOf, textWanted, type ListPods } from './pods/source.ts';
import { millisecondsOf, timeText } from '../query/times.ts';

export interface PodsLimits {
  /** Logs of one query that are read at once. */
  readonly atOnce: number;
  /** Containers of a query that says which pods it means, and of one that does not. */
  readonly narrow: number;
  readonly wide: number;
  /** Seconds before the end, where no start is given. */
  readonly window: number;
  /** The newest of one log. */
  readonly lines: number;
  /** Of one log. */
  readonly bytes: number;
  /** Of the records that one query holds, and that an export does, which may last as long as its reader likes. */
  readonly held: number;
  readonly exported: number;
  /** Milliseconds for a query. */
  readonly budget: number;
  /** Containers of one tail, of all tails of one user, and of all. */
  readonly followed: number;
  readonly followedPerUser: number;
  readonly allFollowed: number;
  /** Between two looks at which pods there are, in milliseconds. */
  readonly lookInterval: number;
}

export const podsLimits: PodsLimits = {
  atOnce: 10,
  narrow: 1_000,
  wide: 50,
  window: 3_600,
  lines: 100_000,
  bytes: 64 * 1024 * 1024,
  held: 32 * 1024 * 1024,
  exported: 8 * 1024 * 1024,
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
  `only the ${window / 60} minutes before the end were read: send start_time for more`;

/** Returns the store of a caller; all stores share the slots to follow containers. */
export function podsStore({ list, limits }: PodsOptions): (caller: Caller, holder: string) => LogStore {
  const slots = new Slots({ what: 'followed containers', total: limits.allFollowed, perUser: limits.followedPerUser });
  const ended = new AbortController();

  return (caller, holder) => {
    async function begin(
      selection: Selection,
      asked: AbortSignal,
    ): Promise<Omit<ScanOptions, 'tailLines' | 'budget'> & { readonly reasons: Reasons }> {
      const reasons = new Reasons();
      const { start, end, namespaces } = selection;
      const window: Window = {
        from: Math.max(start ?? end - limits.window, 0),
        to: end,
        last: timeText(end),
        since: (namespace) => namespaces?.get(namespace) ?? 0,
      };
      const signal = AbortSignal.any([asked, ended.signal]);
      const most = limits[isNarrow(selection) ? 'narrow' : 'wide'];
      const sources = await sourcesOf(list, selection, most, reasons, signal);
      // Who was not there before has nothing from before.
      if (start === undefined && sources.some(({ createdAt }) => createdAt < window.from * 1_000))
        reasons.add(noStart(limits));
      const wanted = textWanted(selection);
      return { caller, sources, window, wanted, atOnce: limits.atOnce, limitBytes: limits.bytes, reasons, signal };
    }
    const short = { tailLines: limits.lines, budget: limits.budget };

    return {
      name: 'pods',
      capabilities: { findsSigns: true, intervals: intervalUnits },
      async query(selection: Selection, { order, from, size }: LogPage, signal) {
        const scanned = await begin(selection, signal);
        const best = new Best(order, size === 0 ? 0 : from + size, limits.held);
        let total = 0;
        await scan({ ...scanned, ...short }, (_, time, entry) => {
          total += 1;
          if (best.mayHold(time)) best.add(entry());
        });
        const records = best.all().slice(from, from + size);
        if (best.isCut)
          scanned.reasons.add(`the records up to here are more than ${limits.held} bytes: ask for a shorter time`);
        return { total, records: records.map(({ record }): LogRecord => record), ...scanned.reasons.cut };
      },
      async statistics(selection, signal) {
        const scanned = await begin(selection, signal);
        const containers = new Set<string>();
        let logs = 0;
        await scan({ ...scanned, ...short }, ({ namespace, pod, container }) => {
          logs += 1;
          containers.add(`${namespace}/${pod}/${container}`);
        });
        return { containers: containers.size, logs, ...scanned.reasons.cut };
      },
      async histogram(selection, interval, signal) {
        const scanned = await begin(selection, signal);
        const counts = new Map<number, number>();
        let total = 0;
        await scan({ ...scanned, ...short }, (_, time) => {
          total += 1;
          const bucket = bucketOf(millisecondsOf(time), interval);
          counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
        });
        return { total, histograms: bucketsBetween(counts, interval), ...scanned.reasons.cut };
      },
      async *export(selection, order, signal) {
        const scanned = await begin(selection, signal);
        yield* exportPieces(scanned, order, limits.exported);
        return scanned.reasons.cut;
      },
      follow: (selection, signal) =>
        followSources({
          caller,
          list,
          selection,
          limits,
          takeSlot: () => slots.take(holder),
          signal: AbortSignal.any([signal, ended.signal]),
        }),
      check: async () => undefined,
      close: async () => ended.abort(serviceUnavailable('the log store was changed', 1)),
    };
  };
}
