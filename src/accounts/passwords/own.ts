/**
 * Changes a user's own password. Every change requires the current password: a stolen token or cookie is not enough.
 */
import { durationText } from '../../runtime/duration.ts';
import type { Logger } from '../../runtime/logger.ts';
import type { Account } from '../directory/account.ts';
import type { Directory } from '../directory/directory.ts';
import type { LoginLimiter } from '../logins/limit.ts';
import { problemWith } from './rules.ts';
import { isChangeable, type Changeable, type PasswordStore } from './store.ts';
import type { Passwords } from './passwords.ts';

/**
 * Reason why a password was not changed, with a message for the user. 'unchangeable': the password cannot be changed
 * here. 'unfit': the new password breaks a rule. 'wrong': the current password is wrong. 'limited': too many attempts
 * failed; the next attempt is allowed after `retryAfter` seconds.
 */
export type NotChanged = { readonly message: string } & (
  { readonly reason: 'unchangeable' | 'unfit' | 'wrong' } | { readonly reason: 'limited'; readonly retryAfter: number }
);

/** Origin of a request to change a password. Failures of the request count like failed logins. */
export interface PasswordChangeOrigin {
  readonly client: string;
  readonly sourceIP: string;
  readonly auditID: string;
  readonly log: Logger;
}

export interface OwnPasswordParts {
  readonly directory: Directory;
  readonly passwords: Passwords;
  readonly passwordStore: PasswordStore;
  readonly limiter: LoginLimiter;
}

const limited = (seconds: number): NotChanged => ({
  reason: 'limited',
  message: `too many failed logins; try again in ${durationText(seconds)}`,
  retryAfter: seconds,
});

/** Returns the account if its password can be changed here. Otherwise returns the reason as a message for the user. */
export function changeableHere(account: Account, directory: Directory): Changeable | string {
  if (!isChangeable(account))
    return 'the hash of your password is in the cluster configuration object; change it there';
  const providers = directory.passwordProvidersOf(account);
  if (providers.length === 0) return account;
  return `your password is managed by the identity provider ${providers.join(' or ')}; change it there`;
}

export class OwnPassword {
  readonly #parts: OwnPasswordParts;

  constructor(parts: OwnPasswordParts) {
    this.#parts = parts;
  }

  /**
   * Changes the password if `current` is correct. Returns undefined once this replica has seen the change. Throws like
   * `PasswordStore.change`.
   */
  async change(
    account: Account,
    current: string,
    next: string,
    from: PasswordChangeOrigin,
  ): Promise<NotChanged | undefined> {
    return await this.#change(account, current, next, from, () => this.#verifyCurrent(account, current, from));
  }

  /** Changes the password of a user who has just logged in with the current password. */
  async replace(
    account: Account,
    current: string,
    next: string,
    from: PasswordChangeOrigin,
  ): Promise<NotChanged | undefined> {
    return await this.#change(account, current, next, from, async () => undefined);
  }

  async #change(
    account: Account,
    current: string,
    next: string,
    { auditID, log }: PasswordChangeOrigin,
    authenticate: () => Promise<NotChanged | undefined>,
  ): Promise<NotChanged | undefined> {
    const { directory, passwordStore } = this.#parts;
    const changeable = changeableHere(account, directory);
    if (typeof changeable === 'string') return { reason: 'unchangeable', message: changeable };
    const problem = await problemWith(next, account, current);
    if (problem !== undefined) return { reason: 'unfit', message: problem };
    const refused = await authenticate();
    if (refused !== undefined) return refused;
    await passwordStore.change(changeable, next, true);
    log.info('password changed', { auditID, user: account.username, by: account.username });
    return undefined;
  }

  /** Verifies the current password with the same limits, work and time as a login. */
  async #verifyCurrent(account: Account, current: string, from: PasswordChangeOrigin): Promise<NotChanged | undefined> {
    const { passwords, limiter } = this.#parts;
    const { username, passwordHash, active } = account;
    const { client, sourceIP, auditID, log } = from;
    const attempt = { guesses: 'password', username, address: sourceIP, client } as const;
    return await limiter.during<NotChanged | undefined>(attempt, limited, async () => {
      if (await passwords.verify(passwordHash, current, { active, source: sourceIP })) {
        limiter.succeeded(attempt);
        return undefined;
      }
      limiter.failed(attempt);
      log.info('password change failed', { auditID, user: username, sourceIP });
      return { reason: 'wrong', message: 'the current password is wrong' };
    });
  }
}
