/** Changing one's own password, the same wherever one asks for it: a token or a cookie alone, perhaps a stolen one, locks nobody out. */
import type { Logger } from '../../runtime/logger.ts';
import type { Account } from '../directory/account.ts';
import type { Directory } from '../directory/directory.ts';
import type { LoginLimiter } from '../logins/limit.ts';
import { problemWith } from './rules.ts';
import { isChangeable, type Changeable, type PasswordStore } from './store.ts';
import type { Passwords } from './passwords.ts';

/**
 * Why it was not changed, in words for the user. 'unchangeable': not here; 'unfit': the new one may be no password; 'wrong': the current
 * one is; 'limited': too many were, until so many seconds from now.
 */
export type NotChanged = { readonly message: string } & (
  { readonly why: 'unchangeable' | 'unfit' | 'wrong' } | { readonly why: 'limited'; readonly retryAfter: number }
);

/** Who asks: counted as with a login. */
export interface AskedFrom {
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
  why: 'limited',
  message: `too many failed logins; try again in ${seconds} s`,
  retryAfter: seconds,
});

/** The account if its password is changed here; else why it is not, in words for its user. */
export function changeableHere(account: Account, directory: Directory): Changeable | string {
  if (!isChangeable(account))
    return 'the hash of your password stands in the cluster configuration object, and is changed there';
  const keepers = directory.passwordKeepers(account);
  if (keepers.length === 0) return account;
  return `your password is kept by the identity provider ${keepers.join(' or ')}, and is changed there`;
}

export class OwnPassword {
  readonly #parts: OwnPasswordParts;

  constructor(parts: OwnPasswordParts) {
    this.#parts = parts;
  }

  /** Undefined when it is changed, and this replica knows that. Throws as `PasswordStore.change`. */
  async change(account: Account, current: string, next: string, from: AskedFrom): Promise<NotChanged | undefined> {
    return await this.#change(account, current, next, from, () => this.#demandCurrent(account, current, from));
  }

  /** The same for somebody who has just logged in with the current one. */
  async replace(account: Account, current: string, next: string, from: AskedFrom): Promise<NotChanged | undefined> {
    return await this.#change(account, current, next, from, async () => undefined);
  }

  async #change(
    account: Account,
    current: string,
    next: string,
    { auditID, log }: AskedFrom,
    demand: () => Promise<NotChanged | undefined>,
  ): Promise<NotChanged | undefined> {
    const { directory, passwordStore } = this.#parts;
    const changeable = changeableHere(account, directory);
    if (typeof changeable === 'string') return { why: 'unchangeable', message: changeable };
    const problem = await problemWith(next, account, current);
    if (problem !== undefined) return { why: 'unfit', message: problem };
    const refused = await demand();
    if (refused !== undefined) return refused;
    await passwordStore.change(changeable, next, true);
    log.info('a password was changed', { auditID, user: account.username, by: account.username });
    return undefined;
  }

  /** The same limits, work and time as for a login. */
  async #demandCurrent(account: Account, current: string, from: AskedFrom): Promise<NotChanged | undefined> {
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
      log.info('change of a password failed', { auditID, user: username, sourceIP });
      return { why: 'wrong', message: 'the current password is wrong' };
    });
  }
}
