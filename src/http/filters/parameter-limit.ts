import { badRequest } from '../../runtime/errors.ts';
import { maxParameters } from '../../runtime/redaction.ts';
import type { RequestFilter } from '../exchange.ts';

/** Comes before anything parses the query: 60 KiB of `a&` are 30,000 parameters, which took the event loop 16 ms. */
export const parameterLimit: RequestFilter = ({ search }) => {
  if (search.length > maxParameters && search.split('&', maxParameters + 1).length > maxParameters)
    throw badRequest(`the query has more than ${maxParameters} parameters`);
};
