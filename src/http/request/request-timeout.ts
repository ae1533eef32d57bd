import { parseDuration } from '../../runtime/duration.ts';
import { badRequest } from '../../runtime/errors.ts';

/** What `?timeout=32s` asks for, in milliseconds; 0 where it asks for nothing. Throws StatusError 400. */
export function requestTimeout(query: URLSearchParams): number {
  const asked = query.get('timeout') ?? '0';
  const parsed = parseDuration(asked);
  if (parsed === undefined)
    throw badRequest(
      `invalid timeout specified in the request URL: ${JSON.stringify(asked)} is no duration such as "32s"`,
    );
  return parsed;
}
