/** Error responses of a route, derived from the rest of its definition. */
import { needsIdentity, type Access } from '../../http/access.ts';
import type { ResponseDescription, ContentDescription, Route } from '../../http/route.ts';
import { oauthErrorSchema, statusSchema } from '../../http/meta-schemas.ts';
import { text } from '../../http/schema.ts';
import { contentOf, type JSONSchema } from './json-schema.ts';
import { usesOAuthErrors } from '../../http/response/write-error.ts';

/** Format of an error (http/response/write-error.ts). */
type Dialect = 'Status' | 'OAuth' | 'Page';

export interface ErrorResponse {
  /** Name of the shared response in the descriptions, such as NotFound and OAuthNotFound. */
  readonly name: string;
  readonly response: ResponseDescription<JSONSchema>;
}

const errorsByStatus: Readonly<Record<number, readonly [name: string, description: string]>> = {
  400: ['BadRequest', 'The request is invalid; the response names the problem'],
  401: ['Unauthorized', 'The credentials are missing or invalid'],
  403: ['Forbidden', 'The caller is not allowed to do this'],
  404: ['NotFound', 'The object or the path does not exist'],
  405: ['MethodNotAllowed', 'The resource does not support this operation'],
  406: ['NotAcceptable', 'None of the media types in Accept is available'],
  408: ['RequestTimeout', 'The body of the request did not arrive in time'],
  410: ['Gone', 'The resourceVersion or continue token has expired; list again'],
  409: ['Conflict', 'The object already exists, or another request has changed it'],
  413: ['ContentTooLarge', 'The body of the request is too large'],
  415: ['UnsupportedMediaType', 'The media type of the body is not supported'],
  422: ['Invalid', 'The request is well-formed but invalid; `details` names the fields'],
  429: ['TooManyRequests', 'Too many requests or failed attempts; try again after Retry-After'],
  500: ['InternalError', 'Internal error; find its cause in the server log by the Audit-Id'],
  502: ['BadGateway', 'A dependency, such as kube-apiserver or the log store, sent no valid response'],
  503: ['ServiceUnavailable', 'A dependency is unavailable or the server is overloaded; try again'],
  504: ['GatewayTimeout', 'The request did not complete in time'],
};

const retryAfter = { 'Retry-After': 'Seconds to wait before the next attempt' };
const headers: Readonly<Record<number, ResponseDescription['headers']>> = {
  401: { 'WWW-Authenticate': 'Accepted authentication schemes' },
  429: retryAfter,
  503: retryAfter,
};

/** Returns whether the route serves a page for people. */
export const isPage = ({ responses }: Route): boolean => responses?.[200]?.content?.['text/html'] !== undefined;

const dialectOf = (route: Route): Dialect => {
  if (!usesOAuthErrors(route.path)) return 'Status';
  return isPage(route) ? 'Page' : 'OAuth';
};

const contents: Readonly<Record<Dialect, ContentDescription>> = {
  Status: { 'application/json': statusSchema },
  OAuth: { 'application/json': oauthErrorSchema },
  Page: { 'text/html': text, 'application/json': oauthErrorSchema },
};

function deniedBy(access: Access): readonly number[] {
  if (access.kind === 'client') return [401];
  // Authenticated callers need permission for the path.
  if (access.kind === 'optional') return [403];
  return needsIdentity(access) ? [401, 403] : [];
}

function statusesOf({ method, path, access, body, errors = [], removed }: Route, dialect: Dialect): number[] {
  return [
    400,
    ...deniedBy(access),
    // Pages are served over TLS only, and accept only their own forms.
    ...(dialect === 'Page' ? [403, 404] : []),
    ...(/[:*]/.test(path) || removed === true ? [404] : []),
    // Reads negotiate the media type; writes return JSON regardless of Accept.
    ...(needsIdentity(access) && method === 'get' && path.startsWith('/kapis') && removed !== true ? [406] : []),
    ...(body === undefined ? [] : [408, 413, 415]),
    ...errors,
    429,
    500,
    503,
    504,
  ];
}

/** Describes the error response for a status. `prefix`: prefix of the name. */
export function errorResponse(status: number, content: ContentDescription<JSONSchema>, prefix = ''): ErrorResponse {
  const [name, description] = errorsByStatus[status] as readonly [string, string];
  const more = headers[status];
  const response = { description, content, ...(more === undefined ? {} : { headers: more }) };
  return { name: `${prefix}${name}`, response };
}

/** Returns the errors of the route by status. */
export function errorResponsesOf(route: Route): ReadonlyMap<number, ErrorResponse> {
  const dialect = dialectOf(route);
  const all = [...new Set(statusesOf(route, dialect))].toSorted((a, b) => a - b);
  const prefix = dialect === 'Status' ? '' : dialect;
  return new Map(
    all
      .filter((status) => route.responses?.[status] === undefined)
      .map((status) => [status, errorResponse(status, contentOf(contents[dialect]), prefix)]),
  );
}
