/**
 * The media types that a caller accepts (RFC 9110 section 12.5, with the parameters of Kubernetes: k8s.io/apiserver
 * pkg/endpoints/handlers/negotiation). The library negotiator neither returns those parameters nor limits the number of clauses.
 */
import { notAcceptable } from '../../runtime/errors.ts';

/** One clause of an Accept header. Type and parameter names are in lower case. */
export interface AcceptClause {
  readonly type: string;
  readonly subtype: string;
  /** From 0 to 1. */
  readonly q: number;
  readonly parameters: Readonly<Record<string, string>>;
}

/** Clauses after these are ignored: 60 KiB of them took the event loop 14 ms. */
const maxClauses = 100;

const anything: AcceptClause = { type: '*', subtype: '*', q: 1, parameters: {} };
const json: AcceptClause = { type: 'application', subtype: 'json', q: 1, parameters: {} };

/** The acceptable clauses, the preferred ones first. Without a header: anything. A clause that cannot be read is left out. */
export function parseAccept(header: string | undefined): readonly AcceptClause[] {
  if (header === undefined || header.trim() === '') return [anything];
  if (header === 'application/json') return [json];
  return header
    .split(',', maxClauses)
    .map(parseClause)
    .filter((clause) => clause !== undefined)
    .filter(({ q }) => q > 0)
    .toSorted((a, b) => b.q - a.q || wildcards(a) - wildcards(b));
}

const wildcards = ({ type, subtype }: AcceptClause): number => Number(type === '*') + Number(subtype === '*');

function parseClause(text: string): AcceptClause | undefined {
  const [range = '', ...pairs] = text.split(';').map((part) => part.trim());
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

/** Does the clause take this media type, such as application/json? */
export function takes({ type, subtype }: AcceptClause, mediaType: string): boolean {
  const [offeredType, offeredSubtype] = mediaType.split('/');
  return (type === '*' && subtype === '*') || (type === offeredType && (subtype === '*' || subtype === offeredSubtype));
}

/**
 * The first answer that `choose` finds for the caller's clauses, in the order of the caller's preference and then of the offered
 * media types. Throws 406 with `words`, which name what is offered.
 */
export function negotiate<T>(
  header: string | undefined,
  offered: readonly string[],
  choose: (mediaType: string, parameters: Readonly<Record<string, string>>) => T | undefined,
  words = offered,
): T {
  for (const clause of parseAccept(header))
    for (const mediaType of offered) {
      const chosen = takes(clause, mediaType) ? choose(mediaType, clause.parameters) : undefined;
      if (chosen !== undefined) return chosen;
    }
  throw notAcceptable(words);
}

/** Throws 406 for who takes no JSON, where there is nothing else. */
export function demandJson({ accept }: { readonly accept?: string | undefined }): void {
  negotiate(accept, ['application/json'], (type) => type);
}

/** May the answer be compressed by gzip (RFC 9110 section 12.5.3)? */
export function acceptsGzip(header: string | undefined): boolean {
  if (header === undefined) return false;
  const codings = header.split(',').map((text) => {
    const [name = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
    return { name, refused: parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)) };
  });
  const coding = codings.find(({ name }) => name === 'gzip') ?? codings.find(({ name }) => name === '*');
  return coding !== undefined && !coding.refused;
}

/** RFC 9110 section 13.1.2; the comparison is weak. The library fresh would answer `Cache-Control: no-cache` by 200 instead of 304. */
export const isKnown = (ifNoneMatch: string | undefined, etag: string): boolean =>
  ifNoneMatch !== undefined &&
  ifNoneMatch
    .split(',')
    .map((text) => text.trim().replace(/^W\//, ''))
    .some((text) => text === etag || text === '*');
