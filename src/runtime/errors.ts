/**
 * The two error vocabularies of the API: metav1.Status reasons and OAuth error codes.
 * Each error carries what the caller may read (`message`, `details`) and what only the log may hold (`cause`).
 * `http/response/write-error.ts` is the one place that turns them into bytes.
 */

import { maxMessage, maxProblems, shortened } from './problems.ts';

/** metav1.StatusReason (k8s.io/apimachinery pkg/apis/meta/v1/types.go), those that this server gives. */
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

/** metav1.Status as it stands on the wire. */
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
  /** Only for the log. */
  readonly cause?: unknown;
  /** The token with which an expired paged list can go on (410). */
  readonly continueToken?: string;
  /** Extra response headers, such as Allow and WWW-Authenticate. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Characters of a name in `details`. */
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

/** An error that is answered as metav1.Status. Made by the constructors below, one a reason. */
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

/** A resource as errors name it: the plural and its group ('' for the core group). */
export interface GroupResource {
  readonly group: string;
  readonly resource: string;
}

const qualified = ({ group, resource }: GroupResource): string => (group === '' ? resource : `${resource}.${group}`);

const about = ({ group, resource }: GroupResource, name: string): StatusDetails => ({
  ...(name === '' ? {} : { name }),
  ...(group === '' ? {} : { group }),
  kind: resource,
});

export const badRequest = (message: string, options?: StatusOptions): StatusError =>
  new StatusError('BadRequest', 400, message, options);

/** RFC 6750 section 3: the challenge names the realm, and the error only when a token was presented. */
export const unauthorized = (options: { error?: 'invalid_token'; cause?: unknown } = {}): StatusError =>
  new StatusError('Unauthorized', 401, 'Unauthorized', {
    cause: options.cause,
    headers: {
      'WWW-Authenticate': `Bearer realm="platform"${options.error === undefined ? '' : `, error="${options.error}"`}`,
    },
  });

/** `why` follows the resource's name, as in kube-apiserver's own sentence. */
export const forbidden = (resource: GroupResource, name: string, why: string, options?: StatusOptions): StatusError =>
  new StatusError(
    'Forbidden',
    403,
    `${qualified(resource)}${name === '' ? '' : ` ${JSON.stringify(name)}`} is forbidden: ${why}`,
    { details: about(resource, name), ...options },
  );

export const alreadyExists = (resource: GroupResource, name: string): StatusError =>
  new StatusError('AlreadyExists', 409, `${qualified(resource)} ${JSON.stringify(name)} already exists`, {
    details: about(resource, name),
  });

/** A refused non-resource URL. */
export const forbiddenPath = (why: string): StatusError =>
  new StatusError('Forbidden', 403, `forbidden: ${why}`, { details: {} });

export const notFound = (resource: GroupResource, name: string): StatusError =>
  new StatusError('NotFound', 404, `${qualified(resource)} ${JSON.stringify(name)} not found`, {
    details: about(resource, name),
  });

/** A path that nothing serves. */
export const noSuchPath = (message = 'the server could not find the requested resource'): StatusError =>
  new StatusError('NotFound', 404, message);

export const methodNotAllowed = (allow: readonly string[]): StatusError =>
  new StatusError('MethodNotAllowed', 405, 'the server does not allow this method on the requested resource', {
    headers: { Allow: allow.join(', ') },
  });

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

/** 415 for Content-Encoding and for a charset. */
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
  new StatusError('RequestHeaderFieldsTooLarge', 431, 'the request headers are larger than 64 KiB together');

export const internalError = (auditID: string, cause: unknown): StatusError =>
  new StatusError('InternalError', 500, `Internal error occurred; the log has the cause under audit id ${auditID}`, {
    cause,
  });

export const badGateway = (message: string, options?: StatusOptions): StatusError =>
  new StatusError('BadGateway', 502, message, options);

export const serviceUnavailable = (message: string, retryAfterSeconds = 1, cause?: unknown): StatusError =>
  new StatusError('ServiceUnavailable', 503, message, { details: { retryAfterSeconds }, cause });

export const timeout = (message: string, details: StatusDetails = {}): StatusError =>
  new StatusError('Timeout', 504, message, { details });

/** The error codes of RFC 6749 section 5.2, RFC 6749 section 4.1.2.1 and RFC 6750 that this server gives. */
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

/** RFC 6749 section 5.2 for clients, RFC 6750 section 3 for bearers. */
const challenges: Partial<Record<OAuthErrorCode, string>> = {
  invalid_client: 'Basic realm="platform", charset="UTF-8"',
  invalid_token: 'Bearer realm="platform", error="invalid_token"',
  insufficient_scope: 'Bearer realm="platform", error="insufficient_scope", scope="openid"',
};

interface OAuthOptions {
  /** Another status than the code's own: 405, 413, 415 and 429 have no code in the RFC. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** RFC 6749 sections 4.1.2.1 and 5.2, what an error_description may hold: printable ASCII without quotation mark and backslash. */
export const describable = (text: string): string => text.replaceAll('"', "'").replace(/[^\x20-\x5b\x5d-\x7e]/g, '?');

/** One that was thrown to be told, and no fault of ours. */
export const isTold = (error: unknown): error is OAuthError | StatusError =>
  (error instanceof OAuthError || error instanceof StatusError) && error.code !== 500;

/** An error that is answered as RFC 6749 section 5.2 JSON. `message` is its error_description. */
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
