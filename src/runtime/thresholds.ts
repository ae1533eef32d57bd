const day = 86_400;

/**
 * Values at which alerts, dashboards and `platform-apiserver doctor` report a problem. A test checks that the alerts in
 * charts/platform-apiserver/monitoring/rules.yaml have the same values.
 */
export const thresholds = {
  /** Fraction of requests with a 5xx status that the objective allows in 30 days. */
  errors: 0.005,
  /** Fraction of `get` and `list` requests that the objective allows to take longer than one second in 30 days. */
  slowReads: 0.01,
  /** Seconds without data after which the cache of a resource is stale. */
  cacheAge: 120,
  /** Fraction of cache.maxBytes above which a further resource may not fit. */
  cacheSize: 0.9,
  /** 99th percentile of the event-loop lag, in seconds, above which a replica is overloaded. */
  eventLoopLag: 0.1,
  /** Seconds before the expiry of the serving certificate from which on the problem has this severity. */
  certificateExpiry: { warning: 14 * day, critical: 2 * day },
} as const;

/** Returns a fraction as text, such as `0.5 %`. */
export const percent = (fraction: number): string => `${Number((100 * fraction).toFixed(3))} %`;
