import { pagesClient } from '../accounts/directory/clients.ts';
import type { Account } from '../accounts/directory/account.ts';
import { identityKey, normalizedLogin } from '../accounts/directory/account-index.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import type { PasswordProviders } from '../accounts/providers/password-providers.ts';
import type { Linking } from '../accounts/providers/linking.ts';
import { PersonRefused, type Person } from '../accounts/providers/person.ts';
import type { Identity, Session } from '../tokens/sessions/session.ts';
import { longestUserAgent, type LoginHistories, type LoginOutcome } from '../accounts/logins/history.ts';
import type { LoginAttempt, LoginLimiter } from '../accounts/logins/limit.ts';
import type { PasswordStore } from '../accounts/passwords/store.ts';
import { isPossible, type Passwords } from '../accounts/passwords/passwords.ts';
import type { Sessions } from '../tokens/sessions/sessions.ts';
import type { Subject } from '../tokens/subject.ts';
import { loggedIn } from '../accounts/directory/subjects.ts';
import { OAuthError, StatusError } from '../runtime/errors.ts';
import { annotations } from '../audit/annotations.ts';
import type { RequestContext } from '../http/route.ts';
import type { NotChanged } from '../accounts/passwords/own.ts';

/** Why a password was not changed, as our pages tell it. */
export function passwordRefusal(refused: NotChanged): OAuthError {
  const message = `${refused.why === 'unfit' ? 'the new password ' : ''}${refused.message}`;
  if (refused.why !== 'limited') return new OAuthError('invalid_request', message);
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
  /** The name of the OAuth client through which they come. */
  readonly client: string;
  readonly context: RequestContext;
}

/** Somebody who has shown who they are. */
export interface Verified {
  readonly account: Account;
  /** Who that is at the identity provider where they have. */
  readonly person?: Person;
}

/** Maximum characters of a username, here and at identity providers. */
const longestName = 256;

const refused = (): OAuthError => new OAuthError('invalid_grant', 'the username or the password is wrong');

/** The account that a login is for, and what its failures are counted by. */
interface Target {
  readonly account: Account | undefined;
  readonly attempt: LoginAttempt;
}

interface ProviderResult extends Target {
  /** Undefined if no provider that may get the password knows the name. */
  readonly identity?: Identity | undefined;
  /** Undefined for a wrong password. */
  readonly person?: Person | undefined;
  readonly outage?: StatusError;
}

const refusalOf = (account: Account | undefined, isElsewhere: boolean): LoginOutcome => {
  if (account?.active === false) return 'Disabled';
  return account?.passwordHash === undefined && !isElsewhere ? 'NoPassword' : 'WrongPassword';
};

/** Logging in with a password, the same for the grant and for our page. */
export class PasswordLogin {
  readonly #parts: PasswordLoginParts;

  constructor(parts: PasswordLoginParts) {
    this.#parts = parts;
  }

  /**
   * Unknown user, wrong password and disabled user get the same response after the same work: one verification of a hash, then the
   * same requests to every identity provider. The right password of a local user needs no provider. Concurrent guesses are limited like
   * consecutive ones.
   */
  async verify(typed: Credentials): Promise<Verified> {
    const { client, context } = typed;
    const { directory, limiter } = this.#parts;
    // A name that is too long is nobody's, like an empty one, and all such names count as one.
    const username = typed.username.length > longestName ? '' : typed.username;
    const credentials = { ...typed, username };
    const named = directory.named(username);
    // An address that nobody has is counted like one that somebody has: no username looks like it.
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
    this.#note(account, 'Limited', credentials);
    throw new OAuthError('invalid_grant', `too many failed logins; try again in ${seconds} s`, {
      status: 429,
      headers: { 'Retry-After': String(seconds) },
    });
  }

  #note(account: Account | undefined, reason: LoginOutcome, { client, context }: Credentials): void {
    const { sourceIP, userAgent, audit } = context;
    audit?.annotate(annotations.login, reason);
    if (account !== undefined) audit?.annotate(annotations.username, account.username);
    if (account !== undefined) this.#parts.loginHistories.add(account, { reason, client, sourceIP, userAgent });
  }

  /** Authenticates a counted attempt. */
  async #authenticate(credentials: Credentials, entered: Target): Promise<Verified> {
    const { password, client, context } = credentials;
    const { passwords, passwordStore, linking, limiter } = this.#parts;
    const { sourceIP } = context;
    const named = entered.account;
    const isRight = await passwords.verify(named?.passwordHash, password, { active: named?.active, source: sourceIP });
    const result: ProviderResult = isRight ? entered : await this.#authenticateElsewhere(credentials, entered);
    const { attempt, identity, person, outage } = result;
    // Other attempts may have failed meanwhile. Nothing is awaited between this check and `failed`.
    if (identity !== undefined) this.#checkLimit(result, credentials);
    const account = person === undefined ? result.account : await linking.accountOf(person).catch(asRefusal);
    // The person whom a provider knows by a username must be linked to that user.
    const isIn = person === undefined ? isRight : account?.active && [undefined, account.uid].includes(named?.uid);
    if (account === undefined || isIn !== true) {
      limiter.failed(attempt);
      // During an outage only the passwords of local users are known to be wrong.
      if (outage === undefined || account?.passwordHash !== undefined)
        this.#note(account, refusalOf(account, identity !== undefined), credentials);
      // An unknown name is not logged: it may be a password that was typed into the wrong field.
      context.log.info('login failed', { auditID: context.auditID, username: account?.username, client, sourceIP });
      throw outage ?? refused();
    }
    limiter.succeeded(attempt);
    this.#note(account, 'LoggedIn', credentials);
    if (person !== undefined) return { account, person };
    void passwordStore.refresh(account, password);
    return { account };
  }

  /**
   * Authenticates at the identity providers. The account that a provider finds may have other attempts under way, so its failures are
   * checked before the provider gets the password.
   */
  async #authenticateElsewhere(credentials: Credentials, entered: Target): Promise<ProviderResult> {
    const { username, password, context } = credentials;
    if (username === '' || !isPossible(password)) return entered;
    const may = this.#mayGetPassword(username, entered.account);
    const candidate = await this.#parts.passwordProviders.find(username, { source: context.sourceIP, may });
    try {
      const { identity } = candidate;
      const target = identity === undefined ? entered : this.#targetOf(identity, username, entered.attempt);
      if (identity !== undefined) this.#checkLimit(target, credentials);
      return await candidate.authenticate(password).then(
        (person) => ({ ...target, identity, person }),
        (error: unknown) => (error instanceof StatusError ? { ...target, identity, outage: error } : asRefusal(error)),
      );
    } finally {
      candidate.close();
    }
  }

  #checkLimit({ account, attempt }: Target, credentials: Credentials): void {
    const seconds = this.#parts.limiter.retryAfter(attempt);
    if (seconds > 0) this.#refuse(seconds, account, credentials);
  }

  #targetOf(identity: Identity, username: string, attempt: LoginAttempt): Target {
    const linked = this.#parts.directory.linked(identity);
    const account = linked === 'several' ? undefined : linked;
    const name = account?.username ?? identityKey(identity);
    return { account, attempt: name === normalizedLogin(username) ? attempt : { ...attempt, account: name } };
  }

  /** Returns which providers may get the password: none of a local user's, and only linked ones of any other user's. */
  #mayGetPassword(username: string, named: Account | undefined): (provider: string) => boolean {
    const { directory } = this.#parts;
    // Providers ignore case: a name that differs from that of a local user only by case is that user's.
    const meant = named ?? directory.account(username.toLowerCase());
    const isLocal = meant === undefined ? directory.withEmail(username).length > 0 : meant.passwordHash !== undefined;
    if (isLocal) return () => false;
    return (name) => meant === undefined || meant.identities.some(({ provider }) => provider === name);
  }

  /** The session of whom `verify` has found, after the end of their others where only one may be. */
  async begin(
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
    const begun = await sessions.create({
      userName: username,
      userUID: uid,
      clientID: client,
      sourceIP,
      userAgent: userAgent.slice(0, longestUserAgent),
      ...(scope === undefined ? {} : { scope }),
      ...(person === undefined ? { credentialID } : { identity: person.identity, groups: person.groups }),
    });
    if (!multipleLogin()) await this.#endOthers(begun.session);
    const { session } = begun;
    context.audit?.identify({ username, uid, groups: account.groups });
    context.audit?.annotate(annotations.session, session.metadata.name);
    const provider = person?.identity.provider;
    context.log.info('login', { auditID, username, client, provider, sid: session.metadata.name, sourceIP });
    return { ...begun, subject: loggedIn(account, session) };
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

/** They have shown who they are: they are told why that does not help them. */
function asRefusal(error: unknown): never {
  throw error instanceof PersonRefused ? new OAuthError('invalid_grant', error.message) : error;
}
