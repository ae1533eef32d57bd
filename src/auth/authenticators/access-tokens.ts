import type { Directory } from '../../accounts/directory/directory.ts';
import type { Session } from '../../tokens/sessions/session.ts';
import type { Sessions } from '../../tokens/sessions/sessions.ts';
import type { Subject } from '../../tokens/subject.ts';
import { subjectOf } from '../../accounts/directory/subjects.ts';
import type { AccessClaims, Tokens } from '../../tokens/jwt.ts';

/** A token for which all stands that it was made for, and what that is now. */
export interface StandingToken {
  readonly claims: AccessClaims;
  readonly session: Session;
  readonly subject: Subject;
}

/**
 * Our own access tokens. One only says for whom it was made: session, user, password and client are looked up each time, so that a
 * revocation or a changed group counts at once.
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
   * Undefined for whatever is no token of ours that is good now; one of somebody who must change the password first is not. Throws 503
   * when that cannot be told.
   */
  judge(token: string): Promise<StandingToken | undefined> {
    return this.#judge(this.#tokens.verifyAccess(token));
  }

  /** The same for a token that is for us or for kube-apiserver. */
  judgeForAny(token: string): Promise<StandingToken | undefined> {
    return this.#judge(this.#tokens.verifyForAny(token));
  }

  /** A token that is good for a change of the password, which is required, and for nothing else. */
  judgeForPasswordChange(token: string): Promise<StandingToken | undefined> {
    return this.#judge(this.#tokens.verifyAccess(token), true);
  }

  /** The same as `judge` by the fingerprint of one that was judged before, without asking anybody; undefined too if there is anything to ask. */
  known(fingerprint: string): StandingToken | undefined {
    const claims = this.#tokens.known(fingerprint);
    return claims && this.#standing(claims, this.#sessions.known(claims.sid));
  }

  /** True if a token says that it is ours, good or not: then nobody else is asked about it. */
  isOurs(token: string): boolean {
    return this.#tokens.isOurs(token);
  }

  async #judge(claims: AccessClaims | undefined, passwordChangeRequired?: boolean): Promise<StandingToken | undefined> {
    return claims && this.#standing(claims, await this.#sessions.active(claims.sid), passwordChangeRequired);
  }

  #standing(
    claims: AccessClaims,
    session: Session | undefined,
    passwordChangeRequired = false,
  ): StandingToken | undefined {
    if (session === undefined || session.spec.clientID !== claims.clientID) return undefined;
    const subject = subjectOf(session, this.#directory);
    const isSame =
      subject?.uid === claims.sub &&
      subject.username === claims.username &&
      (subject.passwordChangeRequired ?? false) === passwordChangeRequired;
    return isSame ? { claims, session, subject } : undefined;
  }
}
