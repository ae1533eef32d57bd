import type { Identity } from '../../tokens/sessions/session.ts';
import { NameIndex } from '../../runtime/name-index.ts';
import type { Account } from './account.ts';

/**
 * Returns the key of a name that a user typed. E-mail addresses and usernames of identity providers are compared
 * without regard to case.
 */
export const normalizedLogin = (login: string): string => login.toLowerCase();

/** Index keys of an account in addition to its username: one for the e-mail address and one for each identity. */
export const emailKey = (email: string): string => `e:${normalizedLogin(email)}`;
export const identityKey = ({ provider, subject }: Identity): string => `i:${provider}:${subject}`;
export const keysOf = ({ email, identities }: Account): string[] => [
  ...(email === undefined ? [] : [emailKey(email)]),
  ...identities.map(identityKey),
];

/** Index of accounts by username, and of usernames by e-mail address and identity. */
export class AccountIndex {
  readonly #all = new Map<string, Account>();
  readonly #names = new NameIndex();

  constructor(accounts: Iterable<Account> = []) {
    for (const account of accounts) this.set(account.username, account);
  }

  get(username: string): Account | undefined {
    return this.#all.get(username);
  }

  set(username: string, account: Account | undefined): void {
    const before = this.#all.get(username);
    for (const key of before === undefined ? [] : keysOf(before)) this.#names.delete(key, username);
    if (account === undefined) {
      this.#all.delete(username);
      return;
    }
    this.#all.set(username, account);
    for (const key of keysOf(account)) this.#names.add(key, username);
  }

  with(key: string): readonly string[] {
    return this.#names.get(key);
  }

  [Symbol.iterator](): IterableIterator<Account> {
    return this.#all.values();
  }
}
