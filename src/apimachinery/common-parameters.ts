/** Parameters that all requests below /kapis accept. */
import { durationPattern, maxDurationLength } from '../runtime/duration.ts';
import { flagParameter, integerParameter, queryParameters } from '../http/request/parameters.ts';
import { validTimeout } from '../http/request/request-timeout.ts';
import { described, text } from '../http/schema.ts';

export const commonShape = {
  pretty: described('Return indented JSON', flagParameter.default(false)),
  // http/filters/deadline.ts applies this parameter.
  timeout: described(
    'Duration, such as "32s", after which the request is aborted',
    text.meta({ pattern: durationPattern, maxLength: maxDurationLength }).transform(validTimeout).optional(),
  ),
};

export const commonParameters = queryParameters(commonShape);

/** Maximum number of items of a list; -1 for all. */
export const limitParameter = integerParameter({ min: -1 }, 'an integer of at least 0, or -1 for all').default(-1);
