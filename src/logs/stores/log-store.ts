/**
 * Interface of log stores. A store only translates queries: its callers are responsible for rights, parameters, limits
 * and timeouts. A store throws its failures as StatusError without its address: 503 if it is down, 504 if it is slow,
 * 502 if its response is invalid. A store never returns an empty result instead of throwing.
 */
import type { KubeClient } from '../../cluster/client/client.ts';
import type { ListPods } from './pods/source.ts';
import type { SecretReader } from './remote/endpoint.ts';

/** Client of kube-apiserver with the identity of the caller. */
export type Caller = Pick<KubeClient, 'stream'>;

/** Log line of a container. */
export interface LogRecord {
  /** RFC 3339 in UTC with nanoseconds, so that the lexical order is the order in time. */
  readonly time: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /**
   * Line without its line break. Invalid UTF-8 is replaced by U+FFFD; color codes and other control characters are
   * kept.
   */
  readonly log: string;
}

/** Pods of a workload. */
export interface WorkloadPods {
  readonly workload: string;
  /** Regular expression for whole pod names, in the syntax that Lucene, RE2 and JavaScript share. */
  readonly pattern: string;
  /** Pods of the workload whose names do not match the pattern. */
  readonly alsoPods: readonly string[];
  /** Pods of other workloads whose names match the pattern. */
  readonly notPods: readonly string[];
}

/** Case-insensitive keywords. A record must contain at least one keyword of each list. An empty list has no effect. */
interface Keywords {
  readonly namespace: readonly string[];
  readonly workload: readonly WorkloadPods[];
  readonly pod: readonly string[];
  readonly container: readonly string[];
  readonly log: readonly string[];
}

/** Selects the records that meet all conditions. */
export interface Selection {
  /**
   * Whole seconds since the epoch. `start` is undefined if the range has no start. Selects start ≤ t ≤ end, so 100.001
   * s is after an end of 100.
   */
  readonly start: number | undefined;
  readonly end: number;
  /**
   * Second from which the records of each namespace are visible. This second can be before `start`. Undefined: all
   * namespaces of the store.
   */
  readonly namespaces: ReadonlyMap<string, number> | undefined;
  /** Workloads whose pods are selected; empty lists have no effect. */
  readonly workloads: readonly WorkloadPods[];
  readonly pods: readonly string[];
  readonly containers: readonly string[];
  readonly keywords: Keywords;
}

export type TimeOrder = 'asc' | 'desc';

export interface LogPage {
  /** Order by time; records with the same time have the same order on every page. */
  readonly order: TimeOrder;
  readonly from: number;
  readonly size: number;
}

export const intervalUnits = ['s', 'm', 'h', 'd', 'w', 'M', 'q', 'y'] as const;

export interface Interval {
  /** Number of units. The number can exceed 1 only for s, m, h and d. */
  readonly count: number;
  readonly unit: (typeof intervalUnits)[number];
}

/** Reason why a limit made the result incomplete. */
export interface Cut {
  readonly partial?: { readonly reason: string };
}

/** Collects the distinct reasons why a result is incomplete. */
export class Reasons {
  readonly #texts = new Set<string>();

  add(text: string): void {
    this.#texts.add(text);
  }

  get cut(): Cut {
    return this.#texts.size === 0 ? {} : { partial: { reason: [...this.#texts].join('; ') } };
  }
}

export interface Found extends Cut {
  /** Number of records on all pages. */
  readonly total: number;
  readonly records: readonly LogRecord[];
}

export interface Statistics extends Cut {
  /** Number of distinct containers, by namespace, pod and name. */
  readonly containers: number;
  readonly logs: number;
}

export interface Histogram extends Cut {
  readonly total: number;
  /**
   * Buckets from the first to the last bucket with records, including empty buckets between them. `time`: start of the
   * bucket in milliseconds since the epoch. In UTC, a start is a multiple of s, m, h or d since the epoch, a Monday, or
   * the first day of a month, quarter or year.
   */
  readonly histograms: readonly { readonly time: number; readonly count: number }[];
}

export interface LogStore {
  /** Value of `logging.store` in the configuration. */
  readonly name: string;
  query(selection: Selection, page: LogPage, signal: AbortSignal): Promise<Found>;
  statistics(selection: Selection, signal: AbortSignal): Promise<Statistics>;
  histogram(selection: Selection, interval: Interval, signal: AbortSignal): Promise<Histogram>;
  /**
   * Yields all records in pieces of bounded size. Each piece is fetched after the previous piece was read. Returning
   * early aborts the requests to the store.
   */
  export(selection: Selection, order: TimeOrder, signal: AbortSignal): AsyncGenerator<readonly LogRecord[], Cut>;
  /** Yields new records as they arrive. Stores without this method are polled (polling.ts). */
  follow?(selection: Selection, signal: AbortSignal): AsyncGenerator<readonly LogRecord[], Cut>;
  /** Throws if the store is unavailable. */
  check(signal: AbortSignal): Promise<void>;
  /** Closes the connections to the store. */
  close(): Promise<void>;
}

/**
 * Returns the store for a caller. The store either reads as the caller or is shared by all callers. `holder` identifies
 * the caller for limits.
 */
export type StoreFor = (caller: Caller, holder: string) => LogStore;

export interface StoreParts {
  readonly listPods: ListPods;
  readonly secrets: SecretReader;
}

/** Type of log store. `index.ts` registers it under the name of its configuration section. */
export interface LogStoreType<Settings> {
  open(this: void, settings: Settings, parts: StoreParts): StoreFor;
  /**
   * True if the store itself limits the duration of its queries, and then returns the records that it has read. Queries
   * of other stores get a timeout.
   */
  readonly limitsOwnTime?: true;
}
