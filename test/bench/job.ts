/** What the load generator is told and what it answers, as JSON. */
import type { Target } from './connection.ts';
import type { Request } from './requests.ts';

export interface Job {
  readonly target: Target;
  /** Sent in turn. */
  readonly requests: readonly Request[];
  /** The processes that serve them. */
  readonly pids: readonly number[];
  /** The processes that those ask in their turn; for nginx and node:http kube-apiserver, which then has the changes alone to do. */
  readonly behind: readonly number[];
  /** The file with a record of each change. */
  readonly changes: string;
  /** How many are under way at a time. */
  readonly concurrency: number;
  readonly seconds: number;
}

/** One round. */
export interface Measured {
  readonly requests: number;
  readonly seconds: number;
  /** Milliseconds of CPU that the serving processes used, over all requests. */
  readonly cpu: number;
  readonly cpuBehind: number;
  /** Of nodes, that arrived meanwhile. */
  readonly changes: number;
  readonly changesPerSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Bytes of an answer's body, the mean. */
  readonly bytes: number;
  /** Megabytes after the last answer, and the most meanwhile. */
  readonly rss: number;
  readonly peak: number;
  /** The part of the time in which the generator had something to do: near 1, it is what was measured. */
  readonly generatorBusy: number;
  /** Each answer that was not as expected; then the figures mean nothing. */
  readonly problems: readonly string[];
}

/** How many requests are under way at a time, unless a job says otherwise. */
export const concurrency = 16;
/** How long a round lasts. */
export const roundSeconds = 1;
/** One of logins: in a second there are too few of them to tell their CPU from that of what else goes on. */
export const loginSeconds = 8;
