const day = 86_400;

/**
 * Values at which alerts, dashboards and `platform-apiserver doctor` report a problem. The alerts in
 * charts/platform-apiserver/monitoring/rules.yaml contain the same values, which a test compares.
 */
export const thresholds = {
  /** Fraction of requests with a 5xx status that the objective allows in 30 days. */
  errors: 0.005,
  /** Fraction of `get` and `list` requests longer than one second that the objective allows in 30 days. */
  slowReads: 0.01,
  /** Seconds without data after which the cache of a resource is stale. */
  cacheAge: 120,
  /** Fraction of cache.maxBytes above which a further resource may not fit. */
  cacheSize: 0.9,
  /** Seconds that one of a hundred requests waits for the event loop. */
  eventLoopLag: 0.1,
  /** Seconds until the serving certificate expires. */
  certificateExpiry: { warning: 14 * day, critical: 2 * day },
} as const;

/** Returns a fraction as text, such as `0.5 %`. */
export const percent = (fraction: number): string => `${Number((100 * fraction).toFixed(3))} %`;
