/** Messages to and from the load generator, as JSON. */
import type { Target } from './connection.ts';
import type { Request } from './requests.ts';

export interface Job {
  readonly target: Target;
  /** Requests, sent in turn. */
  readonly requests: readonly Request[];
  /** PIDs of the server. */
  readonly pids: readonly number[];
  /**
   * PIDs of the servers behind it. For nginx and node:http, these are the PIDs of kube-apiserver, which then handles
   * only the changes.
   */
  readonly behind: readonly number[];
  /** File with a record of each change. */
  readonly changes: string;
  /** Number of concurrent requests. */
  readonly concurrency: number;
  readonly seconds: number;
}

/** Result of one round. */
export interface Measured {
  readonly requests: number;
  readonly seconds: number;
  /** Milliseconds of CPU of the server over all requests. */
  readonly cpu: number;
  readonly cpuBehind: number;
  /** Changes of nodes during the round. */
  readonly changes: number;
  readonly changesPerSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Mean size of a response body in bytes. */
  readonly bytes: number;
  /** Megabytes after the last response, and the peak during the round. */
  readonly rss: number;
  readonly peak: number;
  /**
   * Share of time in which the load generator was busy. Near 1, the figures show the limit of the load generator, not
   * of the server.
   */
  readonly generatorBusy: number;
  /** Unexpected responses; if there are any, the figures are meaningless. */
  readonly problems: readonly string[];
}

/** Default number of concurrent requests. */
export const concurrency = 16;
/** Duration of a round in seconds. */
export const roundSeconds = 1;
/** Duration of a round of logins: a second has too few logins to distinguish their CPU time from that of other work. */
export const loginSeconds = 8;
