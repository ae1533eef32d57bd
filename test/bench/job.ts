/** What the load generator is told and what it answers, as JSON. */
import type { Target } from './connection.ts';
import type { Request } from './requests.ts';

export interface Job {
  readonly target: Target;
  /** Sent in turn. */
  readonly requests: readonly Request[];
  /** The processes that serve them. */
  readonly pids: readonly number[];
}

export interface Measured {
  readonly requests: number;
  readonly seconds: number;
  /** Milliseconds of CPU that the serving processes used, over all requests. */
  readonly cpu: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Bytes of an answer's body, the mean. */
  readonly bytes: number;
  /** Megabytes after the last answer, and the most meanwhile. */
  readonly rss: number;
  readonly peak: number;
  /** Each answer that was not as expected; then the figures mean nothing. */
  readonly problems: readonly string[];
}
