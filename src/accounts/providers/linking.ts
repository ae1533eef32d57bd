/**
 * Finds the user of an identity at a provider (docs/identity-providers.md): the one that is linked to this identity, never one of the
 * same name or e-mail address. With the mapping `auto` an identity without a user gets a new one.
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
  serviceUnavailable('users cannot be made in the cluster now; try again', 1, cause);

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
   * The account, which need not be active. Throws PersonRefused; 503 while the users cannot be read or written.
   */
  async accountOf(person: Person): Promise<Account> {
    const { identity } = person;
    const provider = this.#config.value.authentication.identityProviders.find(({ name }) => name === identity.provider);
    const isAuto = provider?.mapping === 'auto';
    const linked = this.#directory.linked(identity);
    if (linked === 'several') {
      this.#logRefusal(person, 'more than one user is linked to this identity');
      throw new PersonRefused('more than one user is linked to who you are there');
    }
    if (linked === undefined) {
      if (!isAuto) {
        this.#logRefusal(person, 'no user is linked to this identity');
        throw new PersonRefused(`no user is linked to who you are at ${identity.provider}; ask an administrator`);
      }
      return await this.#make(person);
    }
    if (linked.passwordChangeRequired)
      throw new PersonRefused('the password of this user must be changed first; log in with it');
    return isAuto ? await this.#follow(linked, person) : linked;
  }

  /** For the administrator who shall link a user to them: it takes the subject, which nobody knows by heart. */
  #logRefusal({ identity, username }: Person, why: string): void {
    this.#log.info('somebody who logged in is not to be found here', { ...identity, username, why });
  }

  async #make(person: Person): Promise<Account> {
    const { identity, displayName } = person;
    const username = usernameOf(person.username);
    if (username === undefined) throw new PersonRefused(`of your name at ${identity.provider} no username can be made`);
    const taken = (): PersonRefused => {
      const why = `the username ${username} belongs to somebody already`;
      this.#logRefusal(person, why);
      return new PersonRefused(`${why}; an administrator can link it to who you are at ${identity.provider}`);
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
      this.#log.info('a user was made for somebody who logged in', { user: username, ...identity });
    } catch (error) {
      if (!isKubeError(error, 409)) throw notWritten(error);
      // Perhaps another replica was faster.
      user = await this.#client.json<User>(`${usersPath}/${username}`).catch((reason: unknown) => {
        throw notWritten(reason);
      });
      if (user.spec?.identities?.some((one) => isSame(one, identity)) !== true) throw taken();
    }
    const found = (): Account | undefined => {
      const linked = this.#directory.linked(identity);
      return linked !== 'several' && linked?.uid === user.metadata.uid ? linked : undefined;
    };
    await this.#directory.seen(() => found() !== undefined);
    const account = found();
    if (account === undefined) throw serviceUnavailable('the user that was made is not seen yet; try again');
    return account;
  }

  /** Keeps up what the provider says; that it could not be written is no reason to refuse the login. */
  async #follow(account: Account, person: Person): Promise<Account> {
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
      this.#log.warn('what an identity provider says of a user could not be written', { user: username, error });
      return account;
    }
    const now = (): Account | undefined => this.#directory.account(username);
    await this.#directory.seen(() => now()?.displayName === displayName && now()?.email === email);
    return now() ?? account;
  }

  /** An e-mail address that somebody else has is not taken over: with it neither could log in any more. */
  #emailOf({ email }: Person, username: string): Person['email'] {
    const isTaken = typeof email === 'string' && this.#directory.withEmail(email).some((name) => name !== username);
    return isTaken ? undefined : email;
  }
}
