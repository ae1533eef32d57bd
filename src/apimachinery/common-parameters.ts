/** Parameters that all requests below /kapis may have. */
import { durationPattern, longestDuration } from '../runtime/duration.ts';
import { flagParameter, integerParameter, queryParameters } from '../http/request/parameters.ts';
import { validTimeout } from '../http/request/request-timeout.ts';
import { described, text } from '../http/schema.ts';

export const commonShape = {
  pretty: described('Indented JSON', flagParameter.default(false)),
  // The filter for deadlines applies it (http/filters/deadline.ts).
  timeout: described(
    'A duration such as "32s" after which the request is given up',
    text.meta({ pattern: durationPattern, maxLength: longestDuration }).transform(validTimeout).optional(),
  ),
};

export const commonParameters = queryParameters(commonShape);

/** Items of a list; -1 for all. */
export const limitParameter = integerParameter({ min: -1 }, 'a whole number from 0, or -1 for all').default(-1);
