import type { Directory } from '../../accounts/directory/directory.ts';
import type { Session } from '../../tokens/sessions/session.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';
import type { Subject } from '../../tokens/subject.ts';
import { subjectOf } from '../../accounts/directory/subjects.ts';
import type { AccessClaims, TokenClaims, Tokens } from '../../tokens/jwt.ts';

/** A valid token with its current session and subject. */
export interface ValidToken<Claims extends TokenClaims = AccessClaims> {
  readonly claims: Claims;
  readonly session: Session;
  readonly subject: Subject;
}

/**
 * Validates tokens of this server. A token only identifies its session: session, user, password and client are looked
 * up each time, so that revocations and group changes take effect at once.
 */
export class AccessTokens {
  readonly #tokens: Tokens;
  readonly #sessions: Sessions;
  readonly #directory: Directory;

  constructor(options: { tokens: Tokens; sessions: Sessions; directory: Directory }) {
    this.#tokens = options.tokens;
    this.#sessions = options.sessions;
    this.#directory = options.directory;
  }

  /**
   * Validates a token for this server. Returns undefined for any token that is not a valid access token for this
   * server, and for a user who must change their password first. Throws 503 if the token cannot be validated now.
   */
  validate(token: string): Promise<ValidToken | undefined> {
    return this.#validate(this.#tokens.verifyAccess(token));
  }

  /** Validates a token for this server or for kube-apiserver. */
  validateForCluster(token: string): Promise<ValidToken | undefined> {
    return this.#validate(this.#tokens.verifyForCluster(token));
  }

  /**
   * Validates a bearer token: an access token or an id_token. The token is also valid for a user who must change their
   * password first.
   */
  async validateBearer(token: string): Promise<ValidToken<TokenClaims> | undefined> {
    const claims = this.#tokens.verifyBearer(token);
    return claims && this.#find(claims, await this.#sessions.active(claims.sid));
  }

  /** Validates a bearer token by its fingerprint from caches alone. Returns undefined if that would need a request. */
  known(fingerprint: string): ValidToken<TokenClaims> | undefined {
    const claims = this.#tokens.known(fingerprint);
    return claims && withoutPasswordChange(this.#find(claims, this.#sessions.known(claims.sid)));
  }

  /** Describes why a refused bearer token is invalid; undefined for a token that this server did not sign. */
  problemOf(token: string): string | undefined {
    return this.#tokens.problemOf(token);
  }

  /**
   * Returns true if a token, valid or not, claims to be issued by this server. kube-apiserver then need not review the
   * token.
   */
  isOurs(token: string): boolean {
    return this.#tokens.isOurs(token);
  }

  async #validate(claims: AccessClaims | undefined): Promise<ValidToken | undefined> {
    return claims && withoutPasswordChange(this.#find(claims, await this.#sessions.active(claims.sid)));
  }

  #find<Claims extends TokenClaims>(claims: Claims, session: Session | undefined): ValidToken<Claims> | undefined {
    if (session === undefined || session.spec.clientID !== claims.clientID) return undefined;
    const subject = subjectOf(session, this.#directory);
    // An id_token names the user only if the scope has `profile`.
    const isSame = subject?.uid === claims.sub && (claims.type === 'identity' || subject.username === claims.username);
    return isSame ? { claims, session, subject } : undefined;
  }
}

const withoutPasswordChange = <Claims extends TokenClaims>(
  valid: ValidToken<Claims> | undefined,
): ValidToken<Claims> | undefined => (valid?.subject.passwordChangeRequired === true ? undefined : valid);
