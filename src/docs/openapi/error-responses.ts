/** What may go wrong with a route, as it follows from the rest of it; nobody says it twice. */
import { needsIdentity, type Access } from '../../http/access.ts';
import type { ResponseDescription, ContentDescription, Route } from '../../http/route.ts';
import { oauthErrorSchema, statusSchema } from '../../http/meta.ts';
import { text } from '../../http/schema.ts';
import { contentOf, type JSONSchema } from './json-schema.ts';
import { speaksOAuth } from '../../http/response/write-error.ts';

/** Which words a refusal is in (http/write-error.ts). */
type Dialect = 'Status' | 'OAuth' | 'Page';

export interface ErrorResponse {
  /** Under which the descriptions have it once, such as NotFound and OAuthNotFound. */
  readonly name: string;
  readonly answer: ResponseDescription<JSONSchema>;
}

const why: Readonly<Record<number, readonly [name: string, description: string]>> = {
  400: ['BadRequest', 'The request is wrong; the answer says what would be right'],
  401: ['Unauthorized', 'No valid credentials were sent'],
  403: ['Forbidden', 'The caller may not do that'],
  404: ['NotFound', 'There is no such thing'],
  405: ['MethodNotAllowed', 'It cannot be done with this resource'],
  406: ['NotAcceptable', 'None of the media types of Accept can be had'],
  408: ['RequestTimeout', 'The body did not arrive in time'],
  410: ['Gone', 'What is asked for is too old: list again'],
  409: ['Conflict', 'There is one already, or it was changed meanwhile'],
  413: ['ContentTooLarge', 'The body is too large'],
  415: ['UnsupportedMediaType', 'The body is of another media type'],
  422: ['Invalid', 'The request can be read, but what it asks for cannot be done; details name the fields'],
  429: ['TooManyRequests', 'Too many requests, or failures: try again later'],
  500: ['InternalError', 'A fault of the server; its log has the cause under the Audit-Id'],
  502: ['BadGateway', 'A server behind this one, such as kube-apiserver or a log store, gave no sensible answer'],
  503: ['ServiceUnavailable', 'It cannot be told now: try again'],
  504: ['GatewayTimeout', 'It took too long'],
};

const retryAfter = { 'Retry-After': 'Seconds until it may be tried again' };
const headers: Readonly<Record<number, ResponseDescription['headers']>> = {
  401: { 'WWW-Authenticate': 'How to say who one is' },
  429: retryAfter,
  503: retryAfter,
};

/** For people. */
export const isPage = ({ answers }: Route): boolean => answers?.[200]?.content?.['text/html'] !== undefined;

const dialectOf = (route: Route): Dialect => {
  if (!speaksOAuth(route.path)) return 'Status';
  return isPage(route) ? 'Page' : 'OAuth';
};

const contents: Readonly<Record<Dialect, ContentDescription>> = {
  Status: { 'application/json': statusSchema },
  OAuth: { 'application/json': oauthErrorSchema },
  Page: { 'text/html': text, 'application/json': oauthErrorSchema },
};

function deniedBy(access: Access): readonly number[] {
  if (access.kind === 'client') return [401];
  // Valid credentials need the right to the path.
  if (access.kind === 'optional') return [403];
  return needsIdentity(access) ? [401, 403] : [];
}

function statusesOf({ method, path, access, body, refusals = [], removed }: Route, dialect: Dialect): number[] {
  return [
    400,
    ...deniedBy(access),
    // Pages are there over TLS alone, and their forms come from them alone.
    ...(dialect === 'Page' ? [403, 404] : []),
    ...(/[:*]/.test(path) || removed === true ? [404] : []),
    // What is read is had in a media type of several, or in JSON or not at all; what is written is answered in JSON whatever is accepted.
    ...(needsIdentity(access) && method === 'get' && path.startsWith('/kapis') && removed !== true ? [406] : []),
    ...(body === undefined ? [] : [408, 413, 415]),
    ...refusals,
    429,
    500,
    503,
    504,
  ];
}

/** `name`: of the part that says it. */
export function refusalOf(status: number, content: ContentDescription<JSONSchema>, part = ''): ErrorResponse {
  const [name, description] = why[status] as readonly [string, string];
  const more = headers[status];
  const answer = { description, content, ...(more === undefined ? {} : { headers: more }) };
  return { name: `${part}${name}`, answer };
}

/** By status. */
export function refusalsOf(route: Route): ReadonlyMap<number, ErrorResponse> {
  const dialect = dialectOf(route);
  const all = [...new Set(statusesOf(route, dialect))].toSorted((a, b) => a - b);
  const part = dialect === 'Status' ? '' : dialect;
  return new Map(
    all
      .filter((status) => route.answers?.[status] === undefined)
      .map((status) => [status, refusalOf(status, contentOf(contents[dialect]), part)]),
  );
}
