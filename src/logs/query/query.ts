/** Validates combinations of the parameters of a log query. */
import { isDeepStrictEqual } from 'node:util';
import { badParameters, invalidParameter } from '../../http/request/parameters.ts';
import type { StatusCause } from '../../runtime/errors.ts';
import { assertFewBuckets } from './intervals.ts';
import { limits, logParameters, type LogParameters } from './parameters.ts';
import { lastSecond } from './times.ts';

export type LogQuery = LogParameters & { readonly end_time: number };

/** Parameters that have no meaning for a tail. */
const notForFollow = ['start_time', 'end_time', 'interval', 'sort', 'from', 'size'] as const;
const defaults = logParameters.parse(new URLSearchParams());

/**
 * Returns the query with an end, which defaults to the end of the current second. `now`: milliseconds since the epoch.
 * Throws 400 for an invalid combination of parameters.
 */
export function completeQuery(parameters: LogParameters, now: number): LogQuery {
  const end = parameters.end_time ?? Math.min(Math.ceil(now / 1_000), lastSecond);
  const problems = parameters.follow ? followProblems(parameters) : pageProblems(parameters, end);
  if (problems.length > 0) throw badParameters(problems);
  const { operation, start_time: start, interval } = parameters;
  if (operation === 'histogram' && start !== undefined) assertFewBuckets(start * 1_000, end * 1_000, interval);
  return { ...parameters, end_time: end };
}

/** Returns problems with the parameters of a tail. Default values are accepted, because forms send all their fields. */
const followProblems = (parameters: LogParameters): StatusCause[] => [
  ...(parameters.operation === 'query'
    ? []
    : [invalidParameter('follow', `is supported only for operation=query, not for ${parameters.operation}`)]),
  ...notForFollow
    .filter((name) => !isDeepStrictEqual(parameters[name], defaults[name]))
    .map((name) => invalidParameter(name, 'is not supported with follow, which streams new records')),
];

function pageProblems({ start_time: start, end_time: endTime, from, size }: LogParameters, end: number): StatusCause[] {
  const problems: StatusCause[] = [];
  const ofEnd = endTime === undefined ? `now (${end}), the default of end_time` : `end_time (${end})`;
  if (start !== undefined && start > end) problems.push(invalidParameter('start_time', `${start} is after ${ofEnd}`));
  if (from + size > limits.reach)
    problems.push(
      invalidParameter('from', `from and size together must be at most ${limits.reach}; operation=export has no limit`),
    );
  return problems;
}
