/**
 * Content negotiation (RFC 9110 section 12.5, with the parameters of Kubernetes: k8s.io/apiserver
 * pkg/endpoints/handlers/negotiation). The library negotiator is not used, because it neither returns those parameters
 * nor limits the number of clauses.
 */
import { notAcceptable } from '../../runtime/errors.ts';

/** One clause of an Accept header. Type and parameter names are in lower case. */
export interface AcceptClause {
  readonly type: string;
  readonly subtype: string;
  /** Quality from 0 to 1. */
  readonly q: number;
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * Maximum elements of a list in a header. Further elements are ignored. Parsing 60 KiB of clauses blocked the event
 * loop for 14 ms.
 */
const maxElements = 100;
/**
 * Maximum parameters of an element. Further parameters are ignored. Parsing 60 KiB of semicolons blocked the event loop
 * for 7 ms.
 */
const maxParameters = 20;

const anything: AcceptClause = { type: '*', subtype: '*', q: 1, parameters: {} };
const json: AcceptClause = { type: 'application', subtype: 'json', q: 1, parameters: {} };

/**
 * Returns the acceptable clauses in order of preference. Without an Accept header, every media type is acceptable.
 * Malformed clauses are ignored.
 */
export function parseAccept(header: string | undefined): readonly AcceptClause[] {
  if (header === undefined || header.trim() === '') return [anything];
  if (header === 'application/json') return [json];
  return header
    .split(',', maxElements)
    .map(parseClause)
    .filter((clause) => clause !== undefined)
    .filter(({ q }) => q > 0)
    .toSorted((a, b) => b.q - a.q || wildcards(a) - wildcards(b));
}

const wildcards = ({ type, subtype }: AcceptClause): number => Number(type === '*') + Number(subtype === '*');

function parseClause(text: string): AcceptClause | undefined {
  const [range = '', ...pairs] = text.split(';', 1 + maxParameters).map((part) => part.trim());
  const [type = '', subtype = '', ...more] = range.toLowerCase().split('/');
  if (type === '' || subtype === '' || more.length > 0) return undefined;
  const parameters: Record<string, string> = {};
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at > 0)
      parameters[pair.slice(0, at).trim().toLowerCase()] = pair
        .slice(at + 1)
        .trim()
        .replace(/^"(.*)"$/, '$1');
  }
  const q = parameters['q'] === undefined ? 1 : Number(parameters['q']);
  return { type, subtype, q: Number.isNaN(q) ? 1 : Math.min(Math.max(q, 0), 1), parameters };
}

/** Returns true if the clause accepts this media type, such as application/json. */
export function acceptsMediaType({ type, subtype }: AcceptClause, mediaType: string): boolean {
  const [offeredType, offeredSubtype] = mediaType.split('/');
  return (type === '*' && subtype === '*') || (type === offeredType && (subtype === '*' || subtype === offeredSubtype));
}

/**
 * Returns the first result of `choose`, in the order of the caller's preference and then of the offered media types.
 * Throws a StatusError 406 that lists `accepted`.
 */
export function negotiate<T>(
  header: string | undefined,
  offered: readonly string[],
  choose: (mediaType: string, parameters: Readonly<Record<string, string>>) => T | undefined,
  accepted = offered,
): T {
  for (const clause of parseAccept(header))
    for (const mediaType of offered) {
      const chosen = acceptsMediaType(clause, mediaType) ? choose(mediaType, clause.parameters) : undefined;
      if (chosen !== undefined) return chosen;
    }
  throw notAcceptable(accepted);
}

/**
 * Returns true if the caller prefers YAML to JSON. Other representations of an object, such as
 * `application/yaml;as=Table`, are not available as YAML. For speed, the header is parsed only if it contains the text
 * `yaml`.
 */
export const prefersYAML = (header: string | undefined): boolean =>
  header !== undefined &&
  /yaml/i.test(header) &&
  parseAccept(header)
    .filter(({ subtype, parameters: { as } }) => subtype !== 'yaml' || as === undefined)
    .flatMap((clause) => ['application/json', 'application/yaml'].filter((type) => acceptsMediaType(clause, type)))
    .at(0) === 'application/yaml';

/** Returns true if the client accepts a response compressed by gzip (RFC 9110 section 12.5.3). */
export function acceptsGzip(header: string | undefined): boolean {
  if (header === undefined) return false;
  const codings = header.split(',', maxElements).map((text) => {
    const [name = '', ...parameters] = text.split(';', 1 + maxParameters).map((part) => part.trim().toLowerCase());
    return { name, refused: parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)) };
  });
  const coding = codings.find(({ name }) => name === 'gzip') ?? codings.find(({ name }) => name === '*');
  return coding !== undefined && !coding.refused;
}

/**
 * Returns true if the client has the representation with this ETag (RFC 9110 section 13.1.2, weak comparison). The
 * library fresh is not used, because requests with `Cache-Control: no-cache` would get 200 instead of 304.
 */
export const isKnown = (ifNoneMatch: string | undefined, etag: string): boolean =>
  ifNoneMatch !== undefined &&
  ifNoneMatch
    .split(',', maxElements)
    .map((text) => text.trim().replace(/^W\//, ''))
    .some((text) => text === etag || text === '*');
