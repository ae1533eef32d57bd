const day = 86_400;

/**
 * Values at which alerts, dashboards and `platform-apiserver doctor` report a problem. A test checks that the alerts in
 * charts/platform-apiserver/monitoring/rules.yaml have the same values.
 */
export const thresholds = {
  /** Objective for 30 days: the maximum fraction of requests with a 5xx status. */
  errors: 0.005,
  /** Objective for 30 days: the maximum fraction of `get` and `list` requests that take longer than one second. */
  slowReads: 0.01,
  /** Seconds without data after which the cache of a resource is stale. */
  cacheAge: 120,
  /** Fraction of cache.maxBytes above which the cache may have no room for a further resource. */
  cacheSize: 0.9,
  /** 99th percentile of the event-loop lag, in seconds, above which a replica is overloaded. */
  eventLoopLag: 0.1,
  /** Remaining validity of the serving certificate, in seconds, below which a problem of this severity is reported. */
  certificateExpiry: { warning: 14 * day, critical: 2 * day },
} as const;

/** Returns a fraction as text, such as `0.5 %`. */
export const percent = (fraction: number): string => `${Number((100 * fraction).toFixed(3))} %`;
