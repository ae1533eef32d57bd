import { pagesClient } from '../accounts/built-in-clients.ts';
import type { Account, Directory } from '../accounts/directory.ts';
import type { LoginHistories, LoginOutcome } from '../accounts/login-history.ts';
import type { LoginLimiter } from '../accounts/login-limit.ts';
import type { PasswordStore } from '../accounts/password-store.ts';
import type { Passwords } from '../accounts/passwords.ts';
import type { Session, Sessions } from '../accounts/sessions.ts';
import { OAuthError } from '../errors.ts';
import type { RequestContext } from '../http/route.ts';

export interface PasswordLoginParts {
  readonly directory: Directory;
  readonly passwords: Passwords;
  readonly passwordStore: PasswordStore;
  readonly limiter: LoginLimiter;
  readonly loginHistories: LoginHistories;
  readonly sessions: Sessions;
  readonly multipleLogin: () => boolean;
}

export interface Credentials {
  readonly username: string;
  readonly password: string;
  /** The name of the OAuth client through which they come. */
  readonly client: string;
  readonly context: RequestContext;
}

const refused = (): OAuthError => new OAuthError('invalid_grant', 'the username or the password is wrong');

const limited = (seconds: number): OAuthError =>
  new OAuthError('invalid_grant', `too many failed logins; try again in ${seconds} s`, {
    status: 429,
    headers: { 'Retry-After': String(seconds) },
  });

const refusalOf = (account: Account | undefined): LoginOutcome => {
  if (account?.active === false) return 'Disabled';
  return account?.passwordHash === undefined ? 'NoPassword' : 'WrongPassword';
};

/** Logging in with a password, the same for the grant and for our page. */
export class PasswordLogin {
  readonly #parts: PasswordLoginParts;

  constructor(parts: PasswordLoginParts) {
    this.#parts = parts;
  }

  /**
   * Unknown user, wrong password and disabled user are one answer after the same work: exactly one verification. The limit is asked
   * before it, and again after: of guesses made at once no more are answered than of guesses made one after another.
   */
  async verify({ username, password, client, context }: Credentials): Promise<Account> {
    const { directory, passwords, passwordStore, limiter, loginHistories } = this.#parts;
    const account = directory.named(username);
    const { sourceIP, userAgent } = context;
    // By whichever name: guesses at one user count together.
    const attempt = {
      username: account?.username ?? username.slice(0, 253),
      address: sourceIP,
      client,
    };
    const note = (reason: LoginOutcome): void => {
      if (account !== undefined) loginHistories.add(account, { reason, client, sourceIP, userAgent });
    };
    const demandTime = (): void => {
      const seconds = limiter.retryAfter(attempt);
      if (seconds === 0) return;
      note('Limited');
      throw limited(seconds);
    };
    demandTime();
    const right = await passwords.verify(account?.passwordHash, password, account?.active);
    demandTime();
    if (!right || account === undefined) {
      limiter.failed(attempt);
      note(refusalOf(account));
      context.log.info('login failed', { auditID: context.auditID, username, client, sourceIP });
      throw refused();
    }
    limiter.succeeded(attempt);
    note('LoggedIn');
    void passwordStore.refresh(account, password);
    return account;
  }

  /** The session of whom `verify` has found, after the end of their others where only one may be. */
  async begin(
    { username, uid, credentialID }: Account,
    {
      client = pagesClient.name,
      scope,
      context,
    }: { client?: string; scope?: string | undefined; context: RequestContext },
  ): Promise<{ session: Session; refreshToken: string }> {
    const { sessions, multipleLogin } = this.#parts;
    const begun = await sessions.create({
      userName: username,
      userUID: uid,
      clientID: client,
      ...(scope === undefined ? {} : { scope }),
      credentialID,
    });
    if (!multipleLogin()) await this.#endOthers(begun.session);
    const { auditID, sourceIP } = context;
    context.log.info('login', { auditID, username, client, sid: begun.session.metadata.name, sourceIP });
    return begun;
  }

  /** Where that fails nobody is told of the new session: it must not stay beside the others. */
  async #endOthers(session: Session): Promise<void> {
    const { sessions } = this.#parts;
    try {
      await sessions.endOthers(session);
    } catch (error) {
      sessions.revoke(session.metadata.name).catch(() => undefined);
      throw error;
    }
  }
}
