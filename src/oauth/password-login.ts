import { pagesClient } from '../accounts/directory/clients.ts';
import type { Account } from '../accounts/directory/account.ts';
import { identityKey, normalizedLogin } from '../accounts/directory/account-index.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import type { PasswordProviders } from '../accounts/providers/password-providers.ts';
import type { Linking } from '../accounts/providers/linking.ts';
import { PersonRefused, type Person } from '../accounts/providers/person.ts';
import type { Identity, Session } from '../tokens/sessions/session.ts';
import { longestUserAgent, type LoginHistories, type LoginOutcome } from '../accounts/logins/history.ts';
import type { LoginAttempt } from '../accounts/logins/attempt.ts';
import type { LoginLimiter } from '../accounts/logins/limit.ts';
import type { PasswordStore } from '../accounts/passwords/store.ts';
import { isPossible, type Passwords } from '../accounts/passwords/passwords.ts';
import type { Sessions } from '../tokens/sessions/sessions.ts';
import type { Subject } from '../tokens/subject.ts';
import { loggedIn } from '../accounts/directory/subjects.ts';
import { OAuthError, StatusError } from '../runtime/errors.ts';
import { annotations } from '../audit/annotations.ts';
import { durationText } from '../runtime/duration.ts';
import type { RequestContext } from '../http/route.ts';
import type { NotChanged } from '../accounts/passwords/own.ts';

/** Converts the reason why a password was not changed to an error for the pages. */
export function passwordRefusal(refused: NotChanged): OAuthError {
  const message = `${refused.reason === 'unfit' ? 'the new password ' : ''}${refused.message}`;
  if (refused.reason !== 'limited') return new OAuthError('invalid_request', message);
  return new OAuthError('invalid_request', message, {
    status: 429,
    headers: { 'Retry-After': String(refused.retryAfter) },
  });
}

export interface PasswordLoginParts {
  readonly directory: Directory;
  readonly passwords: Passwords;
  readonly passwordStore: PasswordStore;
  readonly passwordProviders: PasswordProviders;
  readonly linking: Linking;
  readonly limiter: LoginLimiter;
  readonly loginHistories: LoginHistories;
  readonly sessions: Sessions;
  readonly multipleLogin: () => boolean;
}

interface Credentials {
  readonly username: string;
  readonly password: string;
  /** Name of the OAuth client that sent the credentials. */
  readonly client: string;
  readonly context: RequestContext;
}

/** An authenticated user. */
export interface Verified {
  readonly account: Account;
  /** The person at the identity provider, if a provider authenticated the user. */
  readonly person?: Person;
}

/** Maximum characters of a username, here and at identity providers. */
const maxNameLength = 256;

const refused = (): OAuthError => new OAuthError('invalid_grant', 'incorrect username or password');

/** The account of a login, and the keys by which its failures are counted. */
interface Target {
  readonly account: Account | undefined;
  readonly attempt: LoginAttempt;
}

interface ProviderResult extends Target {
  /**
   * Identity at the provider; undefined if the name is unknown to every provider that is allowed to get the password.
   */
  readonly identity?: Identity | undefined;
  /** Person; undefined for a wrong password. */
  readonly person?: Person | undefined;
  readonly outage?: StatusError;
}

const refusalOf = (account: Account, isElsewhere: boolean): LoginOutcome => {
  if (!account.active) return 'Disabled';
  return account.passwordHash === undefined && !isElsewhere ? 'NoPassword' : 'WrongPassword';
};

/** Authenticates users by password, for the password grant and for the login page. */
export class PasswordLogin {
  readonly #parts: PasswordLoginParts;

  constructor(parts: PasswordLoginParts) {
    this.#parts = parts;
  }

  /**
   * Authenticates a user. An unknown user, a wrong password and a disabled user cause the same response and the same
   * work. The work is one verification of a hash, then the same requests to every identity provider. The correct
   * password of a local user causes no requests to providers. Concurrent guesses are limited like consecutive ones.
   */
  async verify(typed: Credentials): Promise<Verified> {
    const { client, context } = typed;
    const { directory, limiter } = this.#parts;
    // The annotation has this value until the outcome is known.
    context.annotate(annotations.login, 'Unavailable');
    // No user has a name longer than `maxNameLength`. All longer names are counted together with the empty name.
    const username = typed.username.length > maxNameLength ? '' : typed.username;
    const credentials = { ...typed, username };
    const named = directory.named(username);
    // Unknown e-mail addresses are counted like known addresses. No username contains a space, so the key is unique.
    const account = username.includes('@') ? (named?.username ?? `unknown ${normalizedLogin(username)}`) : undefined;
    const attempt: LoginAttempt = {
      guesses: 'password',
      username,
      ...(account === undefined ? {} : { account }),
      address: context.sourceIP,
      client,
    };
    const refuse = (seconds: number): never => this.#refuse(seconds, named, credentials);
    return await limiter.during(attempt, refuse, () => this.#authenticate(credentials, { account: named, attempt }));
  }

  #refuse(seconds: number, account: Account | undefined, credentials: Credentials): never {
    if (account === undefined) credentials.context.annotate(annotations.login, 'Limited');
    else this.#note(account, 'Limited', credentials);
    throw new OAuthError('invalid_grant', `too many failed logins; try again in ${durationText(seconds)}`, {
      status: 429,
      headers: { 'Retry-After': String(seconds) },
    });
  }

  /** Records a failure and its reason. */
  #note(account: Account, reason: LoginOutcome, credentials: Credentials): void {
    credentials.context.annotate(annotations.login, reason);
    this.#record(account, reason, credentials);
  }

  #record(account: Account, reason: LoginOutcome, { client, context }: Credentials): void {
    const { sourceIP, userAgent } = context;
    context.annotate(annotations.username, account.username);
    this.#parts.loginHistories.add(account, { reason, client, sourceIP, userAgent });
  }

  #noteFailure({ identity, outage }: ProviderResult, account: Account | undefined, credentials: Credentials): void {
    // During an outage of a provider, only the passwords of local users are known to be wrong.
    if (outage !== undefined && account?.passwordHash === undefined) return;
    if (account !== undefined) this.#note(account, refusalOf(account, identity !== undefined), credentials);
    else credentials.context.annotate(annotations.login, identity === undefined ? 'UnknownUser' : 'WrongPassword');
  }

  /** Authenticates an attempt that is counted by the limiter. */
  async #authenticate(credentials: Credentials, entered: Target): Promise<Verified> {
    const { password, client, context } = credentials;
    const { passwords, passwordStore, linking, limiter } = this.#parts;
    const { sourceIP } = context;
    const named = entered.account;
    const isRight = await passwords.verify(named?.passwordHash, password, { active: named?.active, source: sourceIP });
    const result: ProviderResult = isRight ? entered : await this.#authenticateElsewhere(credentials, entered);
    const { attempt, identity, person, outage } = result;
    // Other attempts may have failed in the meantime. For a wrong password, no other code runs between this check and
    // `failed`.
    if (identity !== undefined) this.#checkLimit(result, credentials);
    const account = person === undefined ? result.account : await linking.accountOf(person).catch(asRefusal(context));
    // If the username exists here, the identity at the provider must be linked to that user.
    const isAllowed = person === undefined ? isRight : account?.active && [undefined, account.uid].includes(named?.uid);
    if (account === undefined || isAllowed !== true) {
      limiter.failed(attempt);
      this.#noteFailure(result, account, credentials);
      // Unknown names are not logged: they may be passwords that were typed into the wrong field.
      context.log.info('login failed', { auditID: context.auditID, username: account?.username, client, sourceIP });
      throw outage ?? refused();
    }
    limiter.succeeded(attempt);
    this.#record(account, 'LoggedIn', credentials);
    if (person !== undefined) return { account, person };
    void passwordStore.refresh(account, password);
    return { account };
  }

  /**
   * Authenticates at the identity providers. The account that a provider finds may have other attempts in progress, so
   * the limit of that account is checked before the provider gets the password.
   */
  async #authenticateElsewhere(credentials: Credentials, entered: Target): Promise<ProviderResult> {
    const { username, password, context } = credentials;
    if (username === '' || !isPossible(password)) return entered;
    const isAllowed = this.#allowedProviders(username, entered.account);
    const candidate = await this.#parts.passwordProviders.find(username, { source: context.sourceIP, isAllowed });
    try {
      const { identity } = candidate;
      const target = identity === undefined ? entered : this.#targetOf(identity, username, entered.attempt);
      if (identity !== undefined) this.#checkLimit(target, credentials);
      return await candidate.authenticate(password).then(
        (person) => ({ ...target, identity, person }),
        (error: unknown) =>
          error instanceof StatusError ? { ...target, identity, outage: error } : asRefusal(context)(error),
      );
    } finally {
      candidate.close();
    }
  }

  #checkLimit({ account, attempt }: Target, credentials: Credentials): void {
    this.#parts.limiter.check(attempt, (seconds) => this.#refuse(seconds, account, credentials));
  }

  #targetOf(identity: Identity, username: string, attempt: LoginAttempt): Target {
    const linked = this.#parts.directory.linked(identity);
    const account = linked === 'several' ? undefined : linked;
    const name = account?.username ?? identityKey(identity);
    return { account, attempt: name === normalizedLogin(username) ? attempt : { ...attempt, account: name } };
  }

  /**
   * Returns a function that decides whether a provider is allowed to get the password: no provider for a local user,
   * only linked providers for any other user.
   */
  #allowedProviders(username: string, named: Account | undefined): (provider: string) => boolean {
    const { directory } = this.#parts;
    // Providers ignore case, so a name that differs from the name of a local user only in case belongs to that user.
    const owner = named ?? directory.account(username.toLowerCase());
    const isLocal = owner === undefined ? directory.withEmail(username).length > 0 : owner.passwordHash !== undefined;
    if (isLocal) return () => false;
    return (name) => owner === undefined || owner.identities.some(({ provider }) => provider === name);
  }

  /**
   * Starts a session for a verified user. If the configuration allows only one session per user, revokes the user's
   * other sessions before it returns.
   */
  async startSession(
    { account, person }: Verified,
    {
      client = pagesClient.name,
      scope,
      context,
    }: { client?: string; scope?: string | undefined; context: RequestContext },
  ): Promise<{ session: Session; subject: Subject; refreshToken: string }> {
    const { sessions, multipleLogin } = this.#parts;
    const { username, uid, credentialID } = account;
    const { auditID, sourceIP, userAgent } = context;
    const created = await sessions.create({
      userName: username,
      userUID: uid,
      clientID: client,
      sourceIP,
      userAgent: userAgent.slice(0, longestUserAgent),
      ...(scope === undefined ? {} : { scope }),
      ...(person === undefined ? { credentialID } : { identity: person.identity, groups: person.groups }),
    });
    if (!multipleLogin()) await this.#revokeOthers(created.session);
    const { session } = created;
    context.audit?.identify({ username, uid, groups: account.groups });
    context.annotate(annotations.login, 'LoggedIn');
    context.annotate(annotations.session, session.metadata.name);
    const provider = person?.identity.provider;
    context.log.info('login', { auditID, username, client, provider, sid: session.metadata.name, sourceIP });
    return { ...created, subject: loggedIn(account, session) };
  }

  /**
   * Revokes the user's other sessions. If this fails, revokes the new session too, because the client gets no tokens.
   */
  async #revokeOthers(session: Session): Promise<void> {
    const { sessions } = this.#parts;
    try {
      await sessions.revokeOthers(session);
    } catch (error) {
      sessions.revoke(session.metadata.name).catch(() => undefined);
      throw error;
    }
  }
}

/**
 * Returns a function that records a `PersonRefused` and converts it to an `OAuthError`. The `OAuthError` discloses the
 * reason, because the person has authenticated. The function rethrows any other error.
 */
const asRefusal =
  (context: RequestContext) =>
  (error: unknown): never => {
    if (!(error instanceof PersonRefused)) throw error;
    context.annotate(annotations.login, 'Refused');
    throw new OAuthError('invalid_grant', error.message);
  };
