/** Differences between versions of Elasticsearch and OpenSearch. */
import type { Interval } from '../log-store.ts';
import type { Clause } from './query.ts';

export interface Server {
  readonly distribution: 'elasticsearch' | 'opensearch';
  readonly major: number;
  readonly minor: number;
}

/** Parses the response to `GET /`; returns undefined if it has no version. */
export function serverOf(response: unknown): Server | undefined {
  const { version } = (response ?? {}) as {
    readonly version?: { readonly number?: unknown; readonly distribution?: unknown };
  };
  const match = typeof version?.number === 'string' ? /^(\d+)\.(\d+)\./.exec(version.number) : null;
  if (match === null) return undefined;
  return {
    distribution: version?.distribution === 'opensearch' ? 'opensearch' : 'elasticsearch',
    major: Number(match[1]),
    minor: Number(match[2]),
  };
}

const calendar: readonly Interval['unit'][] = ['w', 'M', 'q', 'y'];

/** Returns a histogram aggregation. Since Elasticsearch 7.2, calendar and fixed intervals have separate parameters. */
export function dateHistogram(
  { distribution, major, minor }: Server,
  field: string,
  { count, unit }: Interval,
): Clause {
  const isOld = distribution === 'elasticsearch' && (major < 7 || (major === 7 && minor < 2));
  const key = isOld ? 'interval' : calendar.includes(unit) ? 'calendar_interval' : 'fixed_interval';
  return { date_histogram: { field, [key]: `${count}${unit}`, min_doc_count: 1 } };
}
