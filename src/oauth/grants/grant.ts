import type { Client } from '../../accounts/directory/clients.ts';
import type { Directory } from '../../accounts/directory/directory.ts';
import type { Session } from '../../tokens/sessions/session.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';
import type { Subject } from '../../tokens/subject.ts';
import type { AccessTokens } from '../../auth/authenticators/access-tokens.ts';
import type { TokenAuthenticator } from '../../auth/authenticators/index.ts';
import type { RequestContext } from '../../http/route.ts';
import type { PasswordLogin } from '../password-login.ts';

/** What a grant is handed: the client has authenticated and may use this grant. */
export interface GrantRequest {
  readonly form: ReadonlyMap<string, string>;
  readonly client: Client;
  readonly context: RequestContext;
  /** Whom the token will be for. */
  readonly audience: string;
  /** Throws if this subject may not have such a token now; for a grant to ask before it begins or spends anything. */
  readonly demandAudience: (subject: Subject) => void;
}

/** What a grant yields; the endpoint makes the tokens. */
export interface GrantResult {
  readonly session: Session;
  readonly subject: Subject;
  /** None for who comes with credentials of its own each time. */
  readonly refreshToken?: string;
  /** Of this access token; undefined if none was asked for. */
  readonly scope: string | undefined;
  /** For the id_token (OpenID Connect Core section 3.1.3.6). */
  readonly nonce?: string;
  /** RFC 8693 section 2.2.1: of a token that was exchanged for another. */
  readonly issuedTokenType?: string;
}

/** One way to a token: its own checks only, the shared steps are the endpoint's. */
export interface Grant {
  readonly grantType: string;
  /** Its own parameters, for the description; `required` ones are missing-checked by the grant. */
  readonly parameters: readonly { readonly name: string; readonly required: boolean; readonly description: string }[];
  grant(request: GrantRequest): Promise<GrantResult>;
}

export interface GrantParts {
  readonly directory: Directory;
  readonly login: PasswordLogin;
  readonly sessions: Sessions;
  readonly accessTokens: AccessTokens;
  /** kube-apiserver's word on a token. */
  readonly reviewToken: TokenAuthenticator;
  readonly issuer: () => string;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
}
