/**
 * Finds the user of an identity at a provider (docs/guides/identity-providers.md). Only a link counts, never an equal
 * name or e-mail address. With the mapping `auto`, an identity without a user gets a new user.
 */
import type { LiveConfiguration } from '../../config/live.ts';
import { iamAPIVersion, usersPath } from '../../config/names.ts';
import { serviceUnavailable } from '../../runtime/errors.ts';
import type { KubeClient } from '../../cluster/client/client.ts';
import { isKubeError } from '../../cluster/client/kube-error.ts';
import type { Logger } from '../../runtime/logger.ts';
import type { Account } from '../directory/account.ts';
import type { Directory } from '../directory/directory.ts';
import type { User } from '../directory/users.ts';
import { PersonRefused, usernameOf, type Person } from './person.ts';
import type { Identity } from '../../tokens/sessions/session.ts';

const isSame = (one: Identity, { provider, subject }: Identity): boolean =>
  one.provider === provider && one.subject === subject;

const notWritten = (cause: unknown): Error =>
  serviceUnavailable('the user cannot be created in the cluster at the moment; try again', 1, cause);

export class Linking {
  readonly #config: LiveConfiguration;
  readonly #client: Pick<KubeClient, 'json'>;
  readonly #directory: Directory;
  readonly #log: Logger;

  constructor(options: {
    config: LiveConfiguration;
    client: Pick<KubeClient, 'json'>;
    directory: Directory;
    log: Logger;
  }) {
    this.#config = options.config;
    this.#client = options.client;
    this.#directory = options.directory;
    this.#log = options.log;
  }

  /**
   * Returns the account of a person. The account may be inactive. Throws PersonRefused, and 503 if users cannot be read
   * or written.
   */
  async accountOf(person: Person): Promise<Account> {
    const { identity } = person;
    const provider = this.#config.value.authentication.identityProviders.find(({ name }) => name === identity.provider);
    const isAuto = provider?.mapping === 'auto';
    const linked = this.#directory.linked(identity);
    if (linked === 'several') {
      this.#logRefusal(person, 'more than one user is linked to this identity');
      throw new PersonRefused(
        `more than one user is linked to your ${identity.provider} account; contact your administrator`,
      );
    }
    if (linked === undefined) {
      if (!isAuto) {
        this.#logRefusal(person, 'no user is linked to this identity');
        throw new PersonRefused(`no user is linked to your ${identity.provider} account; contact your administrator`);
      }
      return await this.#create(person);
    }
    if (linked.passwordChangeRequired)
      throw new PersonRefused('you must change your password first; log in with your password');
    return isAuto ? await this.#update(linked, person) : linked;
  }

  /** Logs a refusal with the subject, which an administrator needs to link a user. */
  #logRefusal({ identity, username }: Person, reason: string): void {
    this.#log.info('identity provider login refused', { ...identity, username, reason });
  }

  async #create(person: Person): Promise<Account> {
    const { identity, displayName } = person;
    const username = usernameOf(person.username);
    if (username === undefined)
      throw new PersonRefused(`your name at ${identity.provider} cannot be converted to a username`);
    const taken = (): PersonRefused => {
      const reason = `the username ${username} is already taken`;
      this.#logRefusal(person, reason);
      return new PersonRefused(`${reason}; an administrator can link this user to your ${identity.provider} account`);
    };
    if (this.#directory.configured(username) !== undefined) throw taken();
    const object = {
      apiVersion: iamAPIVersion,
      kind: 'User',
      metadata: { name: username },
      spec: { displayName, email: this.#emailOf(person, username) ?? undefined, identities: [identity] },
    };
    let user: User;
    try {
      user = await this.#client.json<User>(usersPath, { method: 'POST', body: object });
      this.#log.info('user created at first login', { user: username, ...identity });
    } catch (error) {
      if (!isKubeError(error, 409)) throw notWritten(error);
      // Another replica may have created the user.
      user = await this.#client.json<User>(`${usersPath}/${username}`).catch((cause: unknown) => {
        throw notWritten(cause);
      });
      if (user.spec?.identities?.some((one) => isSame(one, identity)) !== true) throw taken();
    }
    const found = (): Account | undefined => {
      const linked = this.#directory.linked(identity);
      return linked !== 'several' && linked?.uid === user.metadata.uid ? linked : undefined;
    };
    await this.#directory.waitUntil(() => found() !== undefined);
    const account = found();
    if (account === undefined) throw serviceUnavailable('the new user is not visible on this replica yet; try again');
    return account;
  }

  /** Updates the user from the provider. A failed write does not fail the login. */
  async #update(account: Account, person: Person): Promise<Account> {
    const { username, uid } = account;
    const { displayName } = person;
    const stated = this.#emailOf(person, username);
    const email = stated === undefined ? account.email : (stated ?? undefined);
    if (displayName === account.displayName && email === account.email) return account;
    try {
      await this.#client.json(`${usersPath}/${username}`, {
        method: 'PATCH',
        contentType: 'application/merge-patch+json',
        body: { metadata: { uid }, spec: { displayName: displayName ?? null, email: email ?? null } },
      });
    } catch (error) {
      this.#log.warn('user update from identity provider failed', { user: username, error });
      return account;
    }
    const now = (): Account | undefined => this.#directory.account(username);
    await this.#directory.waitUntil(() => now()?.displayName === displayName && now()?.email === email);
    return now() ?? account;
  }

  /**
   * Returns the e-mail address to store. Returns undefined for an address that another user has: otherwise neither user
   * could log in with the address.
   */
  #emailOf({ email }: Person, username: string): Person['email'] {
    const isTaken = typeof email === 'string' && this.#directory.withEmail(email).some((name) => name !== username);
    return isTaken ? undefined : email;
  }
}
