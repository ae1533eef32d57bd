/**
 * Both kinds of API errors: metav1.Status and OAuth errors. The caller receives `message` and `details`; `cause` is
 * only for the log. `http/response/write-error.ts` is the only file that serializes errors.
 */

import { qualifiedName, type GroupResource } from './group-resource.ts';
import { maxMessage, maxProblems, shortened } from './problems.ts';

/** Values of metav1.StatusReason (k8s.io/apimachinery pkg/apis/meta/v1/types.go) that this server returns. */
export type StatusReason =
  | 'BadRequest'
  | 'Expired'
  | 'Forbidden'
  | 'InternalError'
  | 'Invalid'
  | 'MethodNotAllowed'
  | 'NotAcceptable'
  | 'NotFound'
  | 'RequestEntityTooLarge'
  | 'ServiceUnavailable'
  | 'Timeout'
  | 'TooManyRequests'
  | 'Unauthorized'
  | 'UnsupportedMediaType'
  | 'BadGateway'
  | 'RequestHeaderFieldsTooLarge'
  | 'AlreadyExists';

/** metav1.StatusCause. */
export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/** metav1.StatusDetails. */
export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

/** metav1.Status. */
export interface Status {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  readonly metadata: { readonly continue?: string };
  readonly status: 'Failure';
  readonly message: string;
  readonly reason: StatusReason;
  readonly details?: StatusDetails;
  readonly code: number;
}

interface StatusOptions {
  readonly details?: StatusDetails;
  /** Cause, only for the log. */
  readonly cause?: unknown;
  /** Token that continues an expired paged list (410). */
  readonly continueToken?: string;
  /** Additional response headers, such as Allow and WWW-Authenticate. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Maximum characters of a name in `details`. */
const maxName = 256;

function shortenedDetails(details: StatusDetails): StatusDetails {
  const { name, causes } = details;
  let left = maxMessage;
  const fits = ({ field = '', message = '' }: StatusCause): boolean => (left -= field.length + message.length) >= 0;
  return {
    ...details,
    ...(name === undefined ? {} : { name: shortened(name, maxName) }),
    ...(causes === undefined ? {} : { causes: causes.slice(0, maxProblems).map(shortenedCause).filter(fits) }),
  };
}

const shortenedCause = ({ field, message, ...cause }: StatusCause): StatusCause => ({
  ...cause,
  ...(field === undefined ? {} : { field: shortened(field, maxName) }),
  ...(message === undefined ? {} : { message: shortened(message, maxMessage / 2) }),
});

/** Error that is returned as a metav1.Status. The functions below create the errors, one function for each reason. */
export class StatusError extends Error {
  readonly reason: StatusReason;
  readonly code: number;
  readonly details: StatusDetails | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly #continueToken: string | undefined;

  constructor(reason: StatusReason, code: number, message: string, options: StatusOptions = {}) {
    super(shortened(message, maxMessage), options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'StatusError';
    this.reason = reason;
    this.code = code;
    this.details = options.details && shortenedDetails(options.details);
    this.#continueToken = options.continueToken;
    const retry = options.details?.retryAfterSeconds;
    this.headers = { ...(retry === undefined ? {} : { 'Retry-After': String(retry) }), ...options.headers };
  }

  toStatus(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: this.#continueToken === undefined ? {} : { continue: this.#continueToken },
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    };
  }
}

const about = ({ group, resource }: GroupResource, name: string): StatusDetails => ({
  ...(name === '' ? {} : { name }),
  ...(group === '' ? {} : { group }),
  kind: resource,
});

export const badRequest = (message: string, options?: StatusOptions): StatusError =>
  new StatusError('BadRequest', 400, message, options);

const issuer = 'POST /oauth/token of this server issues access tokens';
const usage = `send "Authorization: Bearer <access token>"; ${issuer}`;

/** Returns 401 for malformed or missing credentials. `problem` describes the credentials without quoting them. */
export const unauthorized = (problem = 'the request has no credentials'): StatusError =>
  new StatusError('Unauthorized', 401, `${problem}: ${usage}`, {
    headers: { 'WWW-Authenticate': 'Bearer realm="platform"' },
  });

/** Returns 401 for a bad token. The challenge names the error only if the request has a token (RFC 6750 section 3). */
const tokenError = (message: string, problem?: string): StatusError => {
  const description = problem === undefined ? '' : `, error_description="${describable(problem)}"`;
  const challenge = `Bearer realm="platform", error="invalid_token"${description}`;
  return new StatusError('Unauthorized', 401, message, { headers: { 'WWW-Authenticate': challenge } });
};

/**
 * Returns 401 for a malformed Authorization header. `problem` describes why the header, or the token in it, is
 * malformed.
 */
export const malformedCredentials = (problem: string): StatusError => tokenError(`${problem}: ${usage}`, problem);

/**
 * Returns 401 for an invalid token. `problem` describes why a token that this server signed is invalid. Every other
 * token gets the same message.
 */
export const invalidToken = (problem?: string): StatusError =>
  tokenError(`${problem ?? 'the access token is not valid'}; ${issuer}`, problem);

/** Returns 403. `detail` follows the resource name, as in messages of kube-apiserver. */
export const forbidden = (
  resource: GroupResource,
  name: string,
  detail: string,
  options?: StatusOptions,
): StatusError =>
  new StatusError(
    'Forbidden',
    403,
    `${qualifiedName(resource)}${name === '' ? '' : ` ${JSON.stringify(name)}`} is forbidden: ${detail}`,
    { details: about(resource, name), ...options },
  );

export const alreadyExists = (resource: GroupResource, name: string): StatusError =>
  new StatusError('AlreadyExists', 409, `${qualifiedName(resource)} ${JSON.stringify(name)} already exists`, {
    details: about(resource, name),
  });

/** Returns 403 for a non-resource URL that the caller is not allowed to access. */
export const forbiddenPath = (detail: string): StatusError =>
  new StatusError('Forbidden', 403, `forbidden: ${detail}`, { details: {} });

export const notFound = (resource: GroupResource, name: string): StatusError =>
  new StatusError('NotFound', 404, `${qualifiedName(resource)} ${JSON.stringify(name)} not found`, {
    details: about(resource, name),
  });

/** Returns 404 for a path that no route serves. */
export const noSuchPath = (message: string): StatusError => new StatusError('NotFound', 404, message);

/** Returns 404 for a path that does not exist. `hint` names the nearest path. */
export const pathNotFound = (hint = ''): StatusError =>
  noSuchPath(`the server could not find the requested resource${hint}`);

/** Returns 405 for a method that the path does not support. `hint` names the path that accepts the method. */
export const methodNotAllowed = (allow: readonly string[], hint = ''): StatusError =>
  new StatusError(
    'MethodNotAllowed',
    405,
    `the server does not allow this method on the requested resource, only ${allow.join(', ')}${hint}`,
    { headers: { Allow: allow.join(', ') } },
  );

export const notAcceptable = (offered: readonly string[]): StatusError =>
  new StatusError('NotAcceptable', 406, `only the following media types are accepted: ${offered.join(', ')}`);

export const expired = (message: string, continueToken?: string): StatusError =>
  new StatusError('Expired', 410, message, continueToken === undefined ? {} : { continueToken });

export const tooLarge = (message: string): StatusError => new StatusError('RequestEntityTooLarge', 413, message);

export const unsupportedMediaType = (offered: readonly string[]): StatusError =>
  new StatusError(
    'UnsupportedMediaType',
    415,
    `the body of the request was in an unknown format - accepted media types include: ${offered.join(', ')}`,
  );

/** Returns 415 for an unsupported Content-Encoding or charset. */
export const unsupportedEncoding = (message: string): StatusError =>
  new StatusError('UnsupportedMediaType', 415, message);

export const invalid = (
  kind: { group: string; kind: string },
  name: string,
  causes: readonly StatusCause[],
): StatusError => {
  const problems = causes.map((cause) => `${cause.field ?? ''}: ${cause.message ?? ''}`).join(', ');
  return new StatusError(
    'Invalid',
    422,
    `${kind.kind}${kind.group === '' ? '' : `.${kind.group}`} ${JSON.stringify(name)} is invalid: ${causes.length > 1 ? `[${problems}]` : problems}`,
    { details: { ...(name === '' ? {} : { name }), group: kind.group, kind: kind.kind, causes } },
  );
};

export const tooManyRequests = (message: string, retryAfterSeconds: number): StatusError =>
  new StatusError('TooManyRequests', 429, message, { details: { retryAfterSeconds } });

export const headersTooLarge = (): StatusError =>
  new StatusError('RequestHeaderFieldsTooLarge', 431, 'the request headers exceed 64 KiB in total');

export const internalError = (auditID: string, cause: unknown): StatusError =>
  new StatusError('InternalError', 500, `Internal error occurred; see the server log for audit ID ${auditID}`, {
    cause,
  });

export const badGateway = (message: string, options?: StatusOptions): StatusError =>
  new StatusError('BadGateway', 502, message, options);

export const serviceUnavailable = (message: string, retryAfterSeconds = 1, cause?: unknown): StatusError =>
  new StatusError('ServiceUnavailable', 503, message, { details: { retryAfterSeconds }, cause });

export const timeout = (message: string, details: StatusDetails = {}): StatusError =>
  new StatusError('Timeout', 504, message, { details });

/** OAuth error codes that this server returns: RFC 6749 sections 4.1.2.1 and 5.2, RFC 6750 and extensions. */
export type OAuthErrorCode = keyof typeof oauthStatus;

const oauthStatus = {
  invalid_request: 400,
  invalid_client: 401,
  invalid_grant: 400,
  unauthorized_client: 400,
  unsupported_grant_type: 400,
  invalid_scope: 400,
  invalid_target: 400,
  invalid_token: 401,
  access_denied: 400,
  unsupported_response_type: 400,
  login_required: 400,
  consent_required: 400,
  request_not_supported: 400,
  request_uri_not_supported: 400,
  authorization_pending: 400,
  slow_down: 400,
  expired_token: 400,
  insufficient_scope: 403,
  server_error: 500,
  temporarily_unavailable: 503,
} as const satisfies Readonly<Record<string, number>>;

export const oauthErrorCodes = Object.keys(oauthStatus) as readonly OAuthErrorCode[];

/** Values of WWW-Authenticate: RFC 6749 section 5.2 for clients, RFC 6750 section 3 for bearer tokens. */
const challenges: Partial<Record<OAuthErrorCode, string>> = {
  invalid_client: 'Basic realm="platform", charset="UTF-8"',
  invalid_token: 'Bearer realm="platform", error="invalid_token"',
  insufficient_scope: 'Bearer realm="platform", error="insufficient_scope", scope="openid"',
};

interface OAuthOptions {
  /** Overrides the HTTP status of the error code: the RFC has no error code for 405, 413, 415 and 429. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/**
 * Replaces the characters that RFC 6749 sections 4.1.2.1 and 5.2 do not allow in error_description: only printable
 * ASCII without quotation mark and backslash is allowed.
 */
export const describable = (text: string): string => text.replaceAll('"', "'").replace(/[^\x20-\x5b\x5d-\x7e]/g, '?');

/** Returns true for an error whose message is meant for the caller, and false for an internal error. */
export const isReportable = (error: unknown): error is OAuthError | StatusError =>
  (error instanceof OAuthError || error instanceof StatusError) && error.code !== 500;

/** Error that is returned as JSON of RFC 6749 section 5.2. `message` is its error_description. */
export class OAuthError extends Error {
  readonly error: OAuthErrorCode;
  readonly code: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(error: OAuthErrorCode, description: string, options: OAuthOptions = {}) {
    super(shortened(description, maxMessage), options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'OAuthError';
    this.error = error;
    this.code = options.status ?? oauthStatus[error];
    const challenge = challenges[error];
    this.headers = { ...(challenge === undefined ? {} : { 'WWW-Authenticate': challenge }), ...options.headers };
  }
}
