import type { Client } from '../../accounts/directory/clients.ts';
import type { Directory } from '../../accounts/directory/directory.ts';
import type { Session } from '../../tokens/sessions/session.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';
import type { Subject } from '../../tokens/subject.ts';
import type { AccessTokens } from '../../auth/authenticators/access-tokens.ts';
import type { TokenAuthenticator } from '../../auth/authenticators/index.ts';
import type { Shape, Values } from '../../http/request/parameters.ts';
import type { RequestContext } from '../../http/route.ts';
import { OAuthError } from '../../runtime/errors.ts';
import type { Form } from '../form.ts';
import { oauthParameters } from '../parameters.ts';
import type { PasswordLogin } from '../password-login.ts';

/** Throws unauthorized_client if the configuration does not allow the client to use the grant. */
export function assertGrantAllowed({ name, grantTypes }: Client, grantType: string): void {
  if (!grantTypes.includes(grantType))
    throw new OAuthError('unauthorized_client', `the client "${name}" is not allowed to use the grant ${grantType}`);
}

/** A token request. The client has authenticated and is allowed to use the grant. */
export interface GrantRequest {
  readonly form: Form;
  readonly client: Client;
  readonly context: RequestContext;
  /** Audience of the token. */
  readonly audience: string;
  /** True if another request changed the session that an earlier attempt found. */
  readonly isRetry: boolean;
}

/** A valid grant that has not been redeemed yet. */
export interface Candidate {
  readonly subject: Subject;
  /**
   * Redeems the grant and starts the session. Returns 'changed' if another request changed the session in the meantime.
   */
  redeem(): Promise<GrantResult | 'changed'>;
}

/** Result of a grant. The endpoint issues the tokens. */
export interface GrantResult {
  readonly session: Session;
  readonly subject: Subject;
  /** Refresh token; undefined for clients that authenticate with their own credentials each time. */
  readonly refreshToken?: string;
  /** Scope of this access token; undefined if none was requested. */
  readonly scope: string | undefined;
  /** Nonce for the id_token (OpenID Connect Core section 3.1.3.6). */
  readonly nonce?: string;
  /** Type of the issued token, for token exchange only (RFC 8693 section 2.2.1). */
  readonly issuedTokenType?: string;
}

/** A grant type with its own checks. The token endpoint performs the shared steps. */
export interface Grant {
  readonly grantType: string;
  /** Parameters that only this grant uses. */
  readonly parameters: Shape;
  /** Checks the request without redeeming anything. */
  find(request: GrantRequest): Promise<Candidate>;
}

interface GrantDefinition<S extends Shape> extends Omit<Grant, 'find'> {
  readonly parameters: S;
  readonly find: (request: GrantRequest & { readonly fields: Values<S> }) => Promise<Candidate>;
}

/** Defines a grant whose parameters are parsed from the form. */
export function defineGrant<const S extends Shape>({ grantType, parameters, find }: GrantDefinition<S>): Grant {
  const { parse } = oauthParameters(parameters);
  return { grantType, parameters, find: async (request) => find({ ...request, fields: parse(request.form) }) };
}

export interface GrantParts {
  readonly directory: Directory;
  readonly login: PasswordLogin;
  readonly sessions: Sessions;
  readonly accessTokens: AccessTokens;
  /** Authenticates a token by a TokenReview of kube-apiserver. */
  readonly reviewToken: TokenAuthenticator;
  readonly issuer: () => string;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
}
