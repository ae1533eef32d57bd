/** Parameters of log queries (docs/guides/logs.md). query.ts validates their combinations. */
import { commonShape } from '../../apimachinery/common-parameters.ts';
import { flagParameter, integerParameter, queryParameters, shown } from '../../http/request/parameters.ts';
import { described, list, oneOf, text } from '../../http/schema.ts';
import type { Interval } from '../stores/log-store.ts';
import { lengthOf } from './intervals.ts';

export const limits = { size: 10_000, reach: 100_000 } as const;

/**
 * Pattern that allows all characters except control characters. Sources of logs that are not Kubernetes pods, such as
 * programs of a node, can have any name.
 */
const anyName = /^\P{Cc}*$/u;
const kubernetesName = /^[-a-z0-9.]+$/;
const kubernetesKeyword = /^[-a-z0-9.]+$/i;
/** Pattern that allows any characters: log lines contain tabs and color codes. */
const anyText = /^/;
const maxNameLength = 253;

interface Items {
  readonly max: number;
  readonly maxLength?: number;
  readonly pattern?: RegExp;
}

const names = { max: 5_000 };
const workloadNames = { max: 100, pattern: kubernetesName };
const keywords = { max: 100 };

/** Parses distinct items; an empty list if the parameter is missing or empty. */
const commaList = (what: string, { max, maxLength = maxNameLength, pattern = anyName }: Items) =>
  described(
    `${what}; comma-separated, at least one must match`,
    text
      .optional()
      .transform((given = '') => (given === '' ? [] : given.split(',')))
      .pipe(
        list(
          text
            .min(1, { error: 'contains an empty item', abort: true })
            .max(maxLength, {
              error: ({ input }) => `contains an item of more than ${maxLength} characters: ${shown(input as string)}`,
              abort: true,
            })
            .regex(pattern, {
              error: ({ input }) =>
                `contains an item with characters that are not allowed in names: ${shown(input as string)}`,
            }),
        ).max(max, { error: ({ input }) => `expected at most ${max} items, got ${(input as unknown[]).length}` }),
      )
      .transform((items) => [...new Set(items)]),
  );

const containing = (what: string): string => `Keywords in the ${what}, case-insensitive`;

/** Maximum time in seconds, which is in the year 5138. Larger numbers are likely milliseconds. */
const maxTime = 99_999_999_999;

function secondsHint(given: string): string {
  if (!/^\d{12,19}$/.test(given)) return '';
  const [unit, extraDigits] =
    given.length < 15
      ? (['milliseconds', 3] as const)
      : given.length < 18
        ? (['microseconds', 6] as const)
        : (['nanoseconds', 9] as const);
  return ` (${unit}? try ${given.slice(0, -extraDigits)})`;
}

const timeParameter = integerParameter(
  { min: 0, max: maxTime },
  'Unix seconds, such as 1700000000',
  secondsHint,
).optional();

const year = 365 * 86_400_000;
const maxYears = 100;

const intervalOf = (given: string): Interval => ({
  count: Number.parseInt(given),
  unit: given.slice(-1) as Interval['unit'],
});

const intervalParameter = text
  .regex(/^0*(?:[1-9]\d{0,11}[smhd]|1[wMqy])$/, {
    error: ({ input }) =>
      `expected a number from 1 with s, m, h or d, or 1 with w, M, q or y, such as 15m, got ${shown(input as string)}`,
    abort: true,
  })
  .refine((given) => lengthOf(intervalOf(given)) <= maxYears * year, {
    error: ({ input }) => `expected at most ${maxYears} years, got ${shown(input as string)}`,
  })
  .default('15m')
  .transform(intervalOf);

export const logParameters = queryParameters({
  operation: described('Type of the result', oneOf('query', 'statistics', 'histogram', 'export').default('query')),
  namespaces: commaList('Names of namespaces', names),
  workloads: commaList('Names of Deployments, StatefulSets, DaemonSets, Jobs and CronJobs', workloadNames),
  pods: commaList('Names of pods', names),
  containers: commaList('Names of containers', names),
  namespace_query: commaList(containing('name of the namespace'), keywords),
  workload_query: commaList(containing('name of the workload'), { ...keywords, pattern: kubernetesKeyword }),
  pod_query: commaList(containing('name of the pod'), keywords),
  container_query: commaList(containing('name of the container'), keywords),
  log_query: commaList(containing('text'), { ...keywords, maxLength: 1_024, pattern: anyText }),
  start_time: described(
    'Start in Unix seconds, inclusive; defaults to the oldest record, or to one hour before the end with the log store `pods`',
    timeParameter,
  ),
  end_time: described('End in Unix seconds, inclusive; defaults to now', timeParameter),
  interval: described(
    'Length of the buckets of a histogram: a number and `s`, `m`, `h` or `d`, or `1w`, `1M`, `1q` or `1y`; at most 10,000 buckets',
    intervalParameter,
  ),
  sort: described('Order by time', oneOf('desc', 'asc').default('desc')),
  from: described(
    'Number of records that a query skips; `from` and `size` together are at most 100,000',
    integerParameter({ min: 0, max: limits.reach }, `a whole number from 0 to ${limits.reach}`).default(0),
  ),
  size: described(
    'Maximum number of records of a query; exports contain all records',
    integerParameter(
      { min: 0, max: limits.size },
      `a whole number from 0 to ${limits.size}`,
      () => '; operation=export has no limit',
    ).default(10),
  ),
  follow: described(
    'Stream new records; only for `operation=query` without `start_time`, `end_time`, `interval`, `sort`, `from` and `size`',
    flagParameter.default(false),
  ),
  ...commonShape,
});

export type LogParameters = ReturnType<typeof logParameters.parse>;
