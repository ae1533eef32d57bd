/** Functions that write parts of the dashboards' queries. */

/**
 * Selects the time series of a metric that match the variables of the dashboard and `matchers`, such as `code=~"5.."`.
 */
export const series = (metric: string, ...matchers: readonly string[]): string =>
  `${metric}{${['namespace=~"$namespace"', 'job=~"$job"', ...matchers].join(', ')}}`;

/** Selects the time series of one of the server's own metrics. */
export const own = (metric: string, ...matchers: readonly string[]): string =>
  series(`platform_apiserver_${metric}`, ...matchers);

/** Returns the increase per second of each time series. */
export const rate = (selector: string): string => `rate(${selector}[$__rate_interval])`;

/** Returns the sum of an expression by labels. */
export const sumBy = (labels: string, expression: string): string => `sum by (${labels}) (${expression})`;

/** Returns a quantile of a histogram of the server, such as `request_duration_seconds`, by labels. */
export function quantile(q: number, histogram: string, labels = '', ...matchers: readonly string[]): string {
  const by = ['le', ...(labels === '' ? [] : [labels])].join(', ');
  return `histogram_quantile(${q}, ${sumBy(by, rate(own(`${histogram}_bucket`, ...matchers)))})`;
}

/** Returns queries for the 50th, 90th and 99th percentile of a histogram of the server, by legend. */
export const percentiles = (histogram: string, ...matchers: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries([0.5, 0.9, 0.99].map((q) => [`p${q * 100}`, quantile(q, histogram, '', ...matchers)]));
