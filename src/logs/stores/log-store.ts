/**
 * What a store of logs is asked, and what it says that it cannot do. A store translates, and no more: rights, parameters, limits and
 * deadlines are looked after by those who ask it. What is wrong with it is thrown as a StatusError without its address: 503 it is down,
 * 504 it is slow, 502 it answers what makes no sense; never an empty answer in the place of one of these.
 */
import type { KubeClient } from '../../cluster/client/client.ts';
import type { ListPods } from './pods/source.ts';
import type { SecretReader } from './remote/endpoint.ts';

/** Who asks, towards kube-apiserver. */
export type Caller = Pick<KubeClient, 'stream'>;

/** One line of a container. */
export interface LogRecord {
  /** RFC 3339 in UTC with nine digits of a second: times compare as texts do. */
  readonly time: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** Without the end of the line. What is no UTF-8 is U+FFFD; colours and other controls are as they were written. */
  readonly log: string;
}

/** The pods of a workload. */
export interface WorkloadPods {
  readonly workload: string;
  /** What the name of such a pod matches as a whole, in what Lucene, RE2 and JavaScript have in common. */
  readonly pattern: string;
  /** Pods that it owns, and whose names do not match. */
  readonly alsoPods: readonly string[];
  /** Pods of others whose names match. */
  readonly notPods: readonly string[];
}

/** Each list: one of these must be contained, whatever the case of its letters; an empty list asks for nothing. */
interface Keywords {
  readonly namespace: readonly string[];
  readonly workload: readonly WorkloadPods[];
  readonly pod: readonly string[];
  readonly container: readonly string[];
  readonly log: readonly string[];
}

/** Which records are meant; all that is stated holds for them. */
export interface Selection {
  /** Whole seconds since the epoch; undefined: from the beginning. A record is meant if start ≤ t ≤ end: 100.001 s is after 100. */
  readonly start: number | undefined;
  readonly end: number;
  /** By name, each from its own second on, which may be before `start`. Undefined: all that the store has. */
  readonly namespaces: ReadonlyMap<string, number> | undefined;
  /** Empty lists ask for nothing. */
  readonly workloads: readonly WorkloadPods[];
  readonly pods: readonly string[];
  readonly containers: readonly string[];
  readonly keywords: Keywords;
}

export type TimeOrder = 'asc' | 'desc';

export interface LogPage {
  /** By time; records of one time come in an order that is the same on every page. */
  readonly order: TimeOrder;
  readonly from: number;
  readonly size: number;
}

export const intervalUnits = ['s', 'm', 'h', 'd', 'w', 'M', 'q', 'y'] as const;

export interface Interval {
  /** Of more than one: s, m, h and d only. */
  readonly count: number;
  readonly unit: (typeof intervalUnits)[number];
}

/** A cap cut the result short, and why, for people. */
export interface Cut {
  readonly partial?: { readonly reason: string };
}

/** Collects why a result is incomplete, each reason once. */
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
  /** Of all pages. */
  readonly total: number;
  readonly records: readonly LogRecord[];
}

export interface Statistics extends Cut {
  /** Different containers, by namespace, pod and name. */
  readonly containers: number;
  readonly logs: number;
}

export interface Histogram extends Cut {
  readonly total: number;
  /**
   * From the first that has records to the last, those between without any too. `time`: milliseconds since the epoch at which a bucket
   * begins: a multiple of s, m, h or d since the epoch; Mondays, and first days of months, quarters and years, in UTC.
   */
  readonly histograms: readonly { readonly time: number; readonly count: number }[];
}

export interface LogStore {
  /** As `logging.store` of the configuration has it. */
  readonly name: string;
  query(selection: Selection, page: LogPage, signal: AbortSignal): Promise<Found>;
  statistics(selection: Selection, signal: AbortSignal): Promise<Statistics>;
  histogram(selection: Selection, interval: Interval, signal: AbortSignal): Promise<Histogram>;
  /** Everything, in pieces of bounded size, each fetched when the one before was taken; returns what cut it short. Who stops ends it upstream. */
  export(selection: Selection, order: TimeOrder, signal: AbortSignal): AsyncGenerator<readonly LogRecord[], Cut>;
  /** What is written from now on, as it comes. Without it new records are asked for again and again (polling.ts). */
  follow?(selection: Selection, signal: AbortSignal): AsyncGenerator<readonly LogRecord[], Cut>;
  /** Throws if it cannot be asked now. */
  check(signal: AbortSignal): Promise<void>;
  /** Ends what it holds open. */
  close(): Promise<void>;
}

/** Returns the store for a caller: one that reads as the caller, or the same for all, within the limits that holders share. */
export type StoreFor = (caller: Caller, holder: string) => LogStore;

export interface StoreParts {
  readonly listPods: ListPods;
  readonly secrets: SecretReader;
}

/** A kind of log store. `index.ts` registers it under the name of its section of the configuration. */
export interface LogStoreType<Settings> {
  open(this: void, settings: Settings, parts: StoreParts): StoreFor;
  /** Its queries return in time with the part that they have read. Other stores get a timeout. */
  readonly limitsOwnTime?: true;
}
