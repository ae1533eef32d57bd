/**
 * Writes the passwords: of a User into a Secret that belongs to it, of a configured user into the one that its passwordRef names.
 * Whoever watches these Secrets, every replica, ends the sessions that began with another password.
 */
import { randomUUID } from 'node:crypto';
import { iamAPIVersion, objectKeys, objectNames, usersPath } from '../../config/names.ts';
import { parametersOf, type HashParameters } from '../../config/hash-parameters.ts';
import { serviceUnavailable } from '../../runtime/errors.ts';
import type { KubeClient } from '../../cluster/client/client.ts';
import { rfc3339, type Clock } from '../../runtime/time.ts';
import { isKubeError, KubeError } from '../../cluster/client/kube-error.ts';
import type { Logger } from '../../runtime/logger.ts';
import type { Account } from '../directory/account.ts';
import { changedKey, credentialIDOf, rehashedKey, unlockedKey } from '../directory/credentials.ts';
import type { Directory } from '../directory/directory.ts';
import { isWeaker, type Passwords } from './passwords.ts';
import { secretValue, type Secret, type SecretKeyRef } from '../../cluster/secret-refs.ts';
import { passwordSecretType } from '../directory/users.ts';

/** Of the values of a Secret: null takes one away. */
type Values = Readonly<Record<string, string | null>>;

const merge = 'application/merge-patch+json';

/** One that can be changed here. */
export type Changeable = Account & { readonly passwordRef: SecretKeyRef };

export const isChangeable = (account: Account): account is Changeable => account.passwordRef !== undefined;

/** No answer, or none to the write: it may be done all the same, also later. */
const saysNothing = (error: unknown): boolean => error instanceof KubeError && (error.code === 0 || error.code >= 500);

const unknownOutcome = (cause: unknown): Error =>
  serviceUnavailable(
    'the cluster does not say whether the password was set: it may be the new one already, or in a moment; try that before you set it again',
    1,
    cause,
  );

/** bcrypt reads 72 bytes, so of what was typed behind them nobody knows whether it is right. */
const isReadWhole = (parameters: HashParameters | undefined, password: string): boolean =>
  parameters?.startsWith('bcrypt') !== true || Buffer.byteLength(password) <= 72;

export class PasswordStore {
  readonly #client: Pick<KubeClient, 'json'>;
  readonly #secrets: string;
  readonly #directory: Directory;
  readonly #passwords: Passwords;
  readonly #log: Logger;
  readonly #clock: Clock;

  constructor(options: {
    client: Pick<KubeClient, 'json'>;
    namespace: string;
    directory: Directory;
    passwords: Passwords;
    log: Logger;
    clock: Clock;
  }) {
    this.#client = options.client;
    this.#secrets = `/api/v1/namespaces/${options.namespace}/secrets`;
    this.#directory = options.directory;
    this.#passwords = options.passwords;
    this.#log = options.log;
    this.#clock = options.clock;
  }

  /**
   * Returns after the write, when this replica knows of it. `byUser`: the user has chosen it, so that a change that was required is
   * done. Throws KubeError; 503 where nobody knows whether it was written.
   */
  async change(account: Changeable, password: string, byUser: boolean): Promise<void> {
    const { username, uid, passwordRef } = account;
    const hash = await this.#passwords.hash(password, username);
    const isConfigured = this.#directory.configured(username) !== undefined;
    const { key } = passwordRef;
    const values: Values = {
      [key]: hash,
      [rehashedKey(key)]: null,
      // The password that the server made is not to be found any more once it is none.
      ...(passwordRef.name === objectNames.adminSecret ? { [objectKeys.password]: null } : {}),
      ...(isConfigured && byUser ? { [changedKey(key)]: rfc3339(this.#clock.now()) } : {}),
    };
    try {
      await this.#write(passwordRef.name, values, isConfigured ? undefined : { username, uid });
      if (!isConfigured && byUser && account.passwordChangeRequired)
        await this.#client.json(`${usersPath}/${username}`, {
          method: 'PATCH',
          contentType: merge,
          body: { metadata: { uid }, spec: { passwordChangeRequired: false } },
        });
    } catch (error) {
      throw saysNothing(error) ? unknownOutcome(error) : error;
    }
    await this.#directory.seen(() => {
      const now = this.#directory.account(username);
      return now?.passwordHash === hash && !(byUser && now.passwordChangeRequired);
    });
  }

  /** Has every replica forget the failed logins of a user; returns when this one has. Throws KubeError. */
  async unlock({ username, uid, passwordRef }: Changeable): Promise<void> {
    const unlocked = `${rfc3339(this.#clock.now())} ${randomUUID()}`;
    const isConfigured = this.#directory.configured(username) !== undefined;
    const values = { [unlockedKey(passwordRef.key)]: unlocked };
    await this.#write(passwordRef.name, values, isConfigured ? undefined : { username, uid });
    await this.#directory.seen(() => this.#directory.account(username)?.unlocked === unlocked);
  }

  /** Hashes a password that has just been verified anew if its hash is weaker than those made now. Never rejects. */
  async refresh(account: Account, password: string): Promise<void> {
    const parameters = parametersOf(account.passwordHash ?? '');
    if (!isChangeable(account) || !isWeaker(parameters) || !isReadWhole(parameters, password)) return;
    const { passwordRef, username, credentialID } = account;
    const { name, key } = passwordRef;
    try {
      const hash = await this.#passwords.hash(password, username);
      const secret = await this.#client.json<Secret>(`${this.#secrets}/${name}`);
      if (secretValue(secret, key) !== account.passwordHash) return;
      // The sessions go on: they are of the same password.
      const rehashed = `${credentialIDOf(hash)} ${credentialID}`;
      await this.#patch(name, { [key]: hash, [rehashedKey(key)]: rehashed }, secret.metadata.resourceVersion);
    } catch (error) {
      // Somebody else was faster, perhaps with another password.
      if (!isKubeError(error, 409))
        this.#log.warn('the password of a user could not be hashed anew', { user: username, error });
    }
  }

  async #write(
    name: string,
    values: Values,
    owner: { readonly username: string; readonly uid: string } | undefined,
  ): Promise<void> {
    try {
      return await this.#patch(name, values);
    } catch (error) {
      if (!isKubeError(error, 404)) throw error;
    }
    const stringData = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
    const ownerReferences = owner && [
      { apiVersion: iamAPIVersion, kind: 'User', name: owner.username, uid: owner.uid },
    ];
    const type = owner === undefined ? 'Opaque' : passwordSecretType;
    const metadata = { name, ...(ownerReferences === undefined ? {} : { ownerReferences }) };
    try {
      const body = { apiVersion: 'v1', kind: 'Secret', metadata, type, stringData };
      await this.#client.json(this.#secrets, { method: 'POST', body });
    } catch (error) {
      if (!isKubeError(error, 409)) throw error;
      await this.#patch(name, values);
    }
  }

  async #patch(name: string, values: Values, resourceVersion?: string): Promise<void> {
    const data = Object.fromEntries(
      Object.entries(values).map(([key, text]) => [key, text === null ? null : Buffer.from(text).toString('base64')]),
    );
    const metadata = resourceVersion === undefined ? {} : { metadata: { resourceVersion } };
    await this.#client.json(`${this.#secrets}/${name}`, {
      method: 'PATCH',
      contentType: merge,
      body: { ...metadata, data },
    });
  }
}
