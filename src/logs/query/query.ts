/** The parameters of the log queries (docs/logs.md), judged as a whole: every problem is told at once. */
import { badRequest, type StatusCause } from '../../runtime/errors.ts';
import { demandFewBuckets, lengthOf } from './intervals.ts';
import { intervalUnits, type Interval, type LogPage } from '../stores/log-store.ts';
import { lastSecond } from './times.ts';

export const operations = ['query', 'statistics', 'histogram', 'export'] as const;

export type LogOperation = (typeof operations)[number];

/** What a query asks, before it is known what the caller may see and which pods a workload has. */
export interface LogQuery {
  readonly operation: LogOperation;
  readonly namespaces: readonly string[];
  readonly workloads: readonly string[];
  readonly pods: readonly string[];
  readonly containers: readonly string[];
  readonly keywords: {
    readonly namespace: readonly string[];
    readonly workload: readonly string[];
    readonly pod: readonly string[];
    readonly container: readonly string[];
    readonly log: readonly string[];
  };
  /** Whole seconds since the epoch; undefined: from the beginning. */
  readonly start: number | undefined;
  readonly end: number;
  readonly page: LogPage;
  readonly interval: Interval;
  readonly follow: boolean;
  readonly pretty: boolean;
}

export const limits = {
  size: 10_000,
  reach: 100_000,
  names: 5_000,
  workloads: 100,
  keywords: 100,
  nameLength: 253,
  keywordLength: 1_024,
} as const;

const known = [
  'operation',
  'namespaces',
  'workloads',
  'pods',
  'containers',
  'namespace_query',
  'workload_query',
  'pod_query',
  'container_query',
  'log_query',
  'start_time',
  'end_time',
  'interval',
  'sort',
  'from',
  'size',
  'follow',
  'pretty',
  'timeout',
];
/** Without meaning for what has no end. */
const notForFollow = ['start_time', 'end_time', 'interval', 'sort', 'from', 'size'];
const usual: { readonly page: LogPage; readonly interval: Interval } = {
  page: { order: 'desc', from: 0, size: 10 },
  interval: { count: 15, unit: 'm' },
};

/** From here on a time is no number of seconds that anybody means: the year 5138. */
const milliseconds = 1e11;
const microseconds = 1e14;
const nanoseconds = 1e17;
const second = 1_000;
const mostYears = 100;

/** Told at once: somebody's form may have so many. */
const mostProblems = 20;

/** What was found wrong. */
class Problems {
  readonly #causes: StatusCause[] = [];

  add(field: string, message: string): void {
    this.#causes.push({ reason: 'FieldValueInvalid', field, message });
  }

  has(...fields: readonly string[]): boolean {
    return this.#causes.some(({ field }) => fields.includes(field ?? ''));
  }

  /** Throws 400 if there are any. */
  throw(): void {
    if (this.#causes.length === 0) return;
    const causes = this.#causes.slice(0, mostProblems);
    const more = this.#causes.length - causes.length;
    const texts = causes.map(({ field, message }) => `${field}: ${message}`);
    throw badRequest([...texts, ...(more === 0 ? [] : [`and ${more} more`])].join('; '), { details: { causes } });
  }
}

/** Shown in a message, not at whatever length. */
const shown = (text: string): string => JSON.stringify(text.length > 64 ? `${text.slice(0, 64)}…` : text);

/** What is wrong with a time, and what would be right. */
function timeProblem(text: string): string | undefined {
  const must = 'must be whole seconds since 1970, such as 1700000000';
  if (text === '') return `is empty; it ${must}, or be left out`;
  if (/^\d{1,19}$/.test(text)) {
    const value = Number(text);
    const divisions = [
      [nanoseconds, 1e9, 'nanoseconds'],
      [microseconds, 1e6, 'microseconds'],
      [milliseconds, 1e3, 'milliseconds'],
    ] as const;
    const found = divisions.find(([from]) => value >= from);
    if (found === undefined) return undefined;
    const [, by, unit] = found;
    return `${text} is in ${unit}, and times are in whole seconds: send ${BigInt(text) / BigInt(by)}`;
  }
  if (/^[-+ ]\d+$/.test(text)) return `${must}, without a sign, not ${shown(text)}`;
  if (/^[-+]?\d+\.\d*$/.test(text)) return `${must}, without a fraction, not ${shown(text)}`;
  return `${must}, not ${shown(text)}`;
}

class Reader {
  readonly problems = new Problems();
  readonly #query: URLSearchParams;

  constructor(query: URLSearchParams) {
    this.#query = query;
    const seen = new Set<string>();
    for (const name of query.keys()) {
      if (seen.has(name)) continue;
      seen.add(name);
      if (!known.includes(name))
        this.problems.add(name.slice(0, 64), `is unknown; the known parameters are ${known.join(', ')}`);
      else if (query.getAll(name).length > 1) this.problems.add(name, 'is given more than once');
    }
  }

  /** What `parse` makes of it, unless it is not given; undefined also if it says what is wrong. */
  read<T>(name: string, parse: (text: string, wrong: (message: string) => undefined) => T | undefined): T | undefined {
    const text = this.#query.get(name);
    if (text === null || this.#query.getAll(name).length > 1) return undefined;
    return parse(text, (message) => {
      this.problems.add(name, message);
      return undefined;
    });
  }

  one<T extends string>(name: string, values: readonly T[]): T | undefined {
    return this.read(
      name,
      (text, wrong) =>
        values.find((value) => value === text) ?? wrong(`must be one of ${values.join(', ')}, not ${shown(text)}`),
    );
  }

  flag(name: string): boolean {
    return (
      this.read(name, (text, wrong) =>
        text === 'true' || text === '1'
          ? true
          : text === 'false' || text === '0'
            ? false
            : wrong(`must be true (or 1) or false (or 0), not ${shown(text)}`),
      ) ?? false
    );
  }

  whole(name: string, most: number, more = ''): number | undefined {
    return this.read(name, (text, wrong) =>
      /^\d{1,15}$/.test(text) && Number(text) <= most
        ? Number(text)
        : wrong(`must be a whole number from 0 to ${most}, not ${shown(text)}${more}`),
    );
  }

  time(name: string): number | undefined {
    return this.read(name, (text, wrong) => {
      const problem = timeProblem(text);
      return problem === undefined ? Number(text) : wrong(problem);
    });
  }

  /** A comma list; an empty one is none. */
  list(name: string, { most, longest }: { most: number; longest: number }, isGood = anyText): readonly string[] {
    const found = this.read(name, (text, wrong) => {
      const items = text === '' ? [] : text.split(',');
      if (items.length > most) return wrong(`has ${items.length} items, more than ${most}`);
      if (items.includes('')) return wrong('has an item that is empty');
      const long = items.find((item) => item.length > longest);
      if (long !== undefined) return wrong(`has an item of more than ${longest} characters, ${shown(long)}`);
      const bad = items.find((item) => !isGood.test(item));
      if (bad !== undefined) return wrong(`has an item that can be in no name, ${shown(bad)}`);
      return [...new Set(items)];
    });
    return found ?? [];
  }
}

/** Of lines of logs: there may be tabs and colours in them. */
const anyText = /^/;
/** Of what a store may have beside names of Kubernetes. */
const anyName = /^\P{Cc}*$/u;
const names = { most: limits.names, longest: limits.nameLength };
const keywords = { most: limits.keywords, longest: limits.keywordLength };
const nameKeywords = { most: limits.keywords, longest: limits.nameLength };
const workloadNames = { most: limits.workloads, longest: limits.nameLength };
/** Kubernetes' own: only what is no object of it, such as a program of a node, has others. */
const kubernetesName = /^[-a-z0-9.]+$/;
const kubernetesKeyword = /^[-a-z0-9.]+$/i;

function readInterval(reader: Reader): Interval {
  const found = reader.read('interval', (text, wrong) => {
    const [, digits = '', letter = ''] = /^(\d{1,12})([smhdwMqy])$/.exec(text) ?? [];
    const unit = intervalUnits.find((candidate) => candidate === letter);
    const count = Number(digits);
    if (unit === undefined || count === 0)
      return wrong(`must be a number from 1 and one of ${intervalUnits.join(', ')}, such as 15m, not ${shown(text)}`);
    if (count > 1 && !['s', 'm', 'h', 'd'].includes(unit))
      return wrong(`there are no buckets of ${text}: take 1${unit}, or a number of days`);
    if (lengthOf({ count, unit }) > mostYears * 365 * 86_400_000)
      return wrong(`must be no longer than ${mostYears} years, not ${shown(text)}`);
    return { count, unit };
  });
  return found ?? usual.interval;
}

/** `now`: milliseconds since the epoch. Throws 400 naming every problem. */
export function parseQuestion(query: URLSearchParams, now: number): LogQuery {
  const reader = new Reader(query);
  const { problems } = reader;
  const operation = reader.one('operation', operations) ?? 'query';
  const start = reader.time('start_time');
  const endGiven = reader.time('end_time');
  // What was written in this second is meant too.
  const end = endGiven ?? Math.min(Math.ceil(now / second), lastSecond);
  if (start !== undefined && start > end && !problems.has('end_time'))
    problems.add(
      'start_time',
      `${start} is after ${endGiven === undefined ? `now, which is the end where end_time is left out (${end})` : `end_time, ${end}`}`,
    );
  const from = reader.whole('from', limits.reach) ?? usual.page.from;
  const size = reader.whole('size', limits.size, '; operation=export has no limit') ?? usual.page.size;
  const order = reader.one('sort', ['desc', 'asc']) ?? usual.page.order;
  const interval = readInterval(reader);
  const follow = reader.flag('follow');
  if (follow) {
    if (operation !== 'query') problems.add('follow', `is not for operation=${operation}`);
    // Forms send all their fields: what says no more than what is so by default is as if it were left out.
    const isUsual: Readonly<Record<string, boolean>> = {
      interval: interval.count === usual.interval.count && interval.unit === usual.interval.unit,
      sort: order === usual.page.order,
      from: from === usual.page.from,
      size: size === usual.page.size,
    };
    for (const name of notForFollow)
      if (query.has(name) && isUsual[name] !== true && !problems.has(name))
        problems.add(name, 'has no meaning with follow, which shows what is new as it comes');
  }
  if (from + size > limits.reach && !problems.has('from', 'size'))
    problems.add('from', `from and size together must not be more than ${limits.reach}: operation=export has no limit`);
  const question: LogQuery = {
    operation,
    namespaces: reader.list('namespaces', names, anyName),
    workloads: reader.list('workloads', workloadNames, kubernetesName),
    pods: reader.list('pods', names, anyName),
    containers: reader.list('containers', names, anyName),
    keywords: {
      namespace: reader.list('namespace_query', nameKeywords, anyName),
      workload: reader.list('workload_query', nameKeywords, kubernetesKeyword),
      pod: reader.list('pod_query', nameKeywords, anyName),
      container: reader.list('container_query', nameKeywords, anyName),
      log: reader.list('log_query', keywords),
    },
    start,
    end,
    page: { order, from, size },
    interval,
    follow,
    pretty: reader.flag('pretty'),
  };
  problems.throw();
  if (operation === 'histogram' && start !== undefined) demandFewBuckets(start * second, end * second, interval);
  return question;
}
