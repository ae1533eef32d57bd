import { parseDuration } from '../../runtime/duration.ts';
import { badRequest } from '../../runtime/errors.ts';
import { shown } from './parameters.ts';

/** Returns the value of `?timeout=32s`. Throws StatusError 400 if it is invalid. */
export function validTimeout(given: string): string {
  if (parseDuration(given) === undefined)
    throw badRequest(`invalid timeout specified in the request URL: ${shown(given)} is not a duration such as "32s"`);
  return given;
}

/**
 * Returns the milliseconds of `?timeout=32s`; 0 if it is missing or invalid. The schema of the query reports an invalid
 * value after authorization.
 */
export const requestTimeout = (query: URLSearchParams): number => parseDuration(query.get('timeout') ?? '') ?? 0;
