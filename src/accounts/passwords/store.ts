/**
 * Writes passwords: for a User to a Secret that the User owns, for a configured user to the Secret that its passwordRef
 * names. Every replica watches these Secrets and revokes the sessions that were created with another password.
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
import { passwordSecretOf, passwordSecretType } from '../directory/users.ts';

/** Values of a Secret to set. Null removes a value. */
type Values = Readonly<Record<string, string | null>>;

const merge = 'application/merge-patch+json';

/** Account whose password can be changed here. */
export type Changeable = Account & { readonly passwordRef: SecretKeyRef | 'owned' };

export const isChangeable = (account: Account): account is Changeable => account.passwordRef !== undefined;

/** Returns the Secret and the key in which the hash of the account is or will be stored. */
const secretOf = ({ uid, passwordRef }: Changeable): SecretKeyRef =>
  passwordRef === 'owned' ? passwordSecretOf(uid) : passwordRef;

/** Returns whether the outcome of a write is unknown: the cluster may have applied the write, or may still apply it. */
const hasUnknownOutcome = (error: unknown): boolean =>
  error instanceof KubeError && (error.code === 0 || error.code >= 500);

const unknownOutcome = (cause: unknown): Error =>
  serviceUnavailable(
    'the cluster did not confirm the change: the new password may be active now or soon; try to log in with it before you set it again',
    1,
    cause,
  );

/** Returns whether a verification covers the whole password. bcrypt verifies only the first 72 bytes. */
const isReadWhole = (parameters: HashParameters | undefined, password: string): boolean =>
  parameters?.startsWith('bcrypt') !== true || Buffer.byteLength(password) <= 72;

/** Returns the metadata and the type of the Secret of an account. A User owns its Secret. */
function headOfSecret({ passwordRef, username, uid }: Changeable, name: string): object {
  if (passwordRef !== 'owned') return { metadata: { name }, type: 'Opaque' };
  const ownerReferences = [{ apiVersion: iamAPIVersion, kind: 'User', name: username, uid }];
  return { metadata: { name, ownerReferences }, type: passwordSecretType };
}

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
   * Resolves when this replica has seen the write. `byUser` is true if the user chose the password. The choice
   * completes a required change. Throws KubeError, and 503 if the outcome of the write is unknown.
   */
  async change(account: Changeable, password: string, byUser: boolean): Promise<void> {
    const { username, uid } = account;
    const hash = await this.#passwords.hash(password, username);
    const isConfigured = account.passwordRef !== 'owned';
    const { name, key } = secretOf(account);
    const values: Values = {
      [key]: hash,
      [rehashedKey(key)]: null,
      // Removes the generated password, which is no longer valid.
      ...(name === objectNames.adminSecret ? { [objectKeys.password]: null } : {}),
      ...(isConfigured && byUser ? { [changedKey(key)]: rfc3339(this.#clock.now()) } : {}),
    };
    try {
      await this.#write(account, values);
      if (!isConfigured && byUser && account.passwordChangeRequired)
        await this.#client.json(`${usersPath}/${username}`, {
          method: 'PATCH',
          contentType: merge,
          body: { metadata: { uid }, spec: { passwordChangeRequired: false } },
        });
    } catch (error) {
      throw hasUnknownOutcome(error) ? unknownOutcome(error) : error;
    }
    await this.#directory.waitUntil(() => {
      const now = this.#directory.account(username);
      return now?.passwordHash === hash && !(byUser && now.passwordChangeRequired);
    });
  }

  /**
   * Makes every replica reset the failed logins of a user. Resolves when this replica has reset the failed logins.
   * Throws KubeError.
   */
  async unlock(account: Changeable): Promise<void> {
    const unlocked = `${rfc3339(this.#clock.now())} ${randomUUID()}`;
    await this.#write(account, { [unlockedKey(secretOf(account).key)]: unlocked });
    await this.#directory.waitUntil(() => this.#directory.account(account.username)?.unlocked === unlocked);
  }

  /** Rehashes a password that has just been verified if its hash is weaker than new hashes. Never rejects. */
  async refresh(account: Account, password: string): Promise<void> {
    const parameters = parametersOf(account.passwordHash ?? '');
    if (!isChangeable(account) || !isWeaker(parameters) || !isReadWhole(parameters, password)) return;
    const { username, credentialID } = account;
    const { name, key } = secretOf(account);
    try {
      const hash = await this.#passwords.hash(password, username);
      const secret = await this.#client.json<Secret>(`${this.#secrets}/${name}`);
      if (secretValue(secret, key) !== account.passwordHash) return;
      // Sessions stay valid, because the password is the same.
      const rehashed = `${credentialIDOf(hash)} ${credentialID}`;
      await this.#patch(name, { [key]: hash, [rehashedKey(key)]: rehashed }, secret.metadata.resourceVersion);
    } catch (error) {
      // Another request has changed the Secret first, perhaps to a new password.
      if (!isKubeError(error, 409)) this.#log.warn('password rehash failed', { user: username, error });
    }
  }

  /** Writes the values into the Secret of the account, and creates the Secret if it is missing. */
  async #write(account: Changeable, values: Values): Promise<void> {
    const { name } = secretOf(account);
    try {
      return await this.#patch(name, values);
    } catch (error) {
      if (!isKubeError(error, 404)) throw error;
    }
    const stringData = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
    try {
      const body = { apiVersion: 'v1', kind: 'Secret', ...headOfSecret(account, name), stringData };
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
