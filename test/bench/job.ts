/** Messages to and from the load generator, as JSON. */
import type { Target } from './connection.ts';
import type { Request } from './requests.ts';

export interface Job {
  readonly target: Target;
  /** Requests that are sent in turn. */
  readonly requests: readonly Request[];
  /** PIDs of the server. */
  readonly pids: readonly number[];
  /**
   * PIDs of the servers behind the measured server. For nginx and node:http, these are the PIDs of kube-apiserver,
   * which then handles only the changes.
   */
  readonly behind: readonly number[];
  /** File that contains a record of each change. */
  readonly changes: string;
  /** Number of concurrent requests. */
  readonly concurrency: number;
  readonly seconds: number;
}

/** Result of one round. */
export interface Measured {
  readonly requests: number;
  readonly seconds: number;
  /** CPU time of the server over all requests, in milliseconds. */
  readonly cpu: number;
  readonly cpuBehind: number;
  /** Number of changes of nodes during the round. */
  readonly changes: number;
  readonly changesPerSecond: number;
  /** Latencies in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Mean size of a response body in bytes. */
  readonly bytes: number;
  /** Memory in megabytes after the last response, and its peak during the round. */
  readonly rss: number;
  readonly peak: number;
  /**
   * Share of time in which the load generator was busy. Near 1, the figures show the limit of the load generator, not
   * of the server.
   */
  readonly generatorBusy: number;
  /** Unexpected responses. The figures are meaningless unless this list is empty. */
  readonly problems: readonly string[];
}

/** Default number of concurrent requests. */
export const concurrency = 16;
/** Duration of a round in seconds. */
export const roundSeconds = 1;
/**
 * Duration of a round of logins in seconds. In one second there are too few logins to distinguish their CPU time from
 * the CPU time of other work.
 */
export const loginSeconds = 8;
