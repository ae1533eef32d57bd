/**
 * Watches the User objects of the cluster (users.iam.platform.io) and the Secrets with their passwords on every
 * replica. The name of a Secret contains the uid of its user, so a later user of the same name does not inherit the
 * password. The User owns the Secret, so the cluster's garbage collector deletes both.
 */
import { usersPath } from '../../config/names.ts';
import type { KubeClient } from '../../cluster/client/client.ts';
import type { Clock } from '../../runtime/time.ts';
import { Informer } from '../../cluster/cache/informer.ts';
import type { KubeObject } from '../../cluster/client/kube-object.ts';
import type { Logger } from '../../runtime/logger.ts';
import { Topic } from '../../runtime/lifecycle.ts';
import type { Identity } from '../../tokens/sessions/session.ts';
import { secretValue, type Secret, type SecretKeyRef } from '../../cluster/secret-refs.ts';

/** The fields of metav1.Condition. */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly observedGeneration?: number;
  readonly lastTransitionTime: string;
  readonly reason: string;
  readonly message: string;
}

export interface UserSpec {
  readonly displayName?: string;
  readonly email?: string;
  readonly groups?: readonly string[];
  readonly state?: string;
  readonly passwordChangeRequired?: boolean;
  /** Identities of the user at identity providers. */
  readonly identities?: readonly Identity[];
}

export interface User extends KubeObject {
  readonly spec?: UserSpec;
  readonly status?: { readonly conditions?: readonly Condition[]; readonly lastLoginTime?: string };
}

/** Type of the Secrets with passwords. The type of a Secret cannot be changed after its creation. */
export const passwordSecretType = 'iam.platform.io/password';

const prefix = 'platform-user-';

export const passwordSecretOf = (userUID: string): SecretKeyRef => ({
  name: `${prefix}${userUID}`,
  key: 'passwordHash',
});

/** Milliseconds without data after which a watch may have missed that a user was disabled. */
const maxSilence = 15_000;
const watchSeconds = 5;

export class Users {
  /** The name of a user whose object or password was created, changed or deleted. */
  readonly changed = new Topic<string>();
  readonly #namespace: string;
  readonly #clock: Clock;
  readonly #users: Informer<User>;
  readonly #secrets: Informer<Secret>;
  /** Names of existing users, by uid. */
  readonly #names = new Map<string, string>();

  constructor(options: { client: KubeClient; namespace: string; log: Logger; clock: Clock }) {
    const { client, namespace, log, clock } = options;
    this.#namespace = namespace;
    this.#clock = clock;
    const shared = { client, log, clock, watchSeconds };
    this.#users = new Informer<User>({ ...shared, path: usersPath });
    this.#secrets = new Informer<Secret>({
      ...shared,
      path: `/api/v1/namespaces/${namespace}/secrets`,
      fieldSelector: `type=${passwordSecretType}`,
    });
    this.#users.onChange((type, { metadata: { name, uid = '' } }) => {
      if (type === 'DELETED') this.#names.delete(uid);
      else this.#names.set(uid, name);
      this.changed.publish(name);
    });
    this.#secrets.onChange((_, { metadata }) => {
      const name = this.#names.get(metadata.name.slice(prefix.length));
      if (name !== undefined) this.changed.publish(name);
    });
  }

  start(): void {
    this.#users.start();
    this.#secrets.start();
  }

  stop(): void {
    this.#users.stop();
    this.#secrets.stop();
  }

  problem(): string {
    return this.#users.hasSynced() && this.#secrets.hasSynced() ? '' : 'not read yet';
  }

  /** Returns whether the cached users match the cluster, apart from changes of the last seconds. */
  isCurrent(): boolean {
    const oldest = this.#clock.now() - maxSilence;
    return this.problem() === '' && [this.#users, this.#secrets].every((one) => one.lastSignOfLife() >= oldest);
  }

  get(username: string): User | undefined {
    return this.#users.get('', username);
  }

  list(): User[] {
    return this.#users.list();
  }

  /**
   * Returns the hash of a user's password, or the value that is stored under the key that `keyFor` derives from the key
   * of the hash.
   */
  passwordValue(userUID: string, keyFor: (key: string) => string = (key) => key): string | undefined {
    const { name, key } = passwordSecretOf(userUID);
    return secretValue(this.#secrets.get(this.#namespace, name), keyFor(key));
  }
}
