import type { Directory } from '../../accounts/directory/directory.ts';
import type { Session } from '../../tokens/sessions/session.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';
import type { Subject } from '../../tokens/subject.ts';
import { subjectOf } from '../../accounts/directory/subjects.ts';
import type { AccessClaims, Tokens } from '../../tokens/jwt.ts';

/** A valid access token with its current session and subject. */
export interface ValidToken {
  readonly claims: AccessClaims;
  readonly session: Session;
  readonly subject: Subject;
}

/**
 * Validates access tokens of this server. A token only identifies its session: session, user, password and client are looked up each time,
 * so that revocations and group changes take effect at once.
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
   * Validates a token for this server. Returns undefined for any other or invalid token, and for a user who must change their password
   * first. Throws 503 if the token cannot be validated now.
   */
  validate(token: string): Promise<ValidToken | undefined> {
    return this.#validate(this.#tokens.verifyAccess(token));
  }

  /** Validates a token for this server or for kube-apiserver. */
  validateForAny(token: string): Promise<ValidToken | undefined> {
    return this.#validate(this.#tokens.verifyForAny(token));
  }

  /** Validates a token that is valid only for the required change of the password. */
  validateForPasswordChange(token: string): Promise<ValidToken | undefined> {
    return this.#validate(this.#tokens.verifyAccess(token), true);
  }

  /** Validates a token by its fingerprint from caches alone. Returns undefined also if that needs any request. */
  known(fingerprint: string): ValidToken | undefined {
    const claims = this.#tokens.known(fingerprint);
    return claims && this.#check(claims, this.#sessions.known(claims.sid));
  }

  /** Returns true if a token claims to be issued by this server, valid or not, so that kube-apiserver need not review it. */
  isOurs(token: string): boolean {
    return this.#tokens.isOurs(token);
  }

  async #validate(claims: AccessClaims | undefined, passwordChangeRequired?: boolean): Promise<ValidToken | undefined> {
    return claims && this.#check(claims, await this.#sessions.active(claims.sid), passwordChangeRequired);
  }

  #check(claims: AccessClaims, session: Session | undefined, passwordChangeRequired = false): ValidToken | undefined {
    if (session === undefined || session.spec.clientID !== claims.clientID) return undefined;
    const subject = subjectOf(session, this.#directory);
    const isSame =
      subject?.uid === claims.sub &&
      subject.username === claims.username &&
      (subject.passwordChangeRequired ?? false) === passwordChangeRequired;
    return isSame ? { claims, session, subject } : undefined;
  }
}
