/**
 * The User objects of the cluster (users.iam.platform.io) and the Secrets with their passwords, both watched by every replica. A Secret
 * is named by the uid of its user, so that a user of the same name made later does not inherit the password, and belongs to the User,
 * so that the cluster's garbage collector deletes it too.
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

/** metav1.Condition. */
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
  /** Who the user is at identity providers. */
  readonly identities?: readonly Identity[];
}

export interface User extends KubeObject {
  readonly spec?: UserSpec;
  readonly status?: { readonly conditions?: readonly Condition[]; readonly lastLoginTime?: string };
}

/** The type of a Secret cannot be changed: who may log in by it is decided when it is made. */
export const passwordSecretType = 'iam.platform.io/password';

const prefix = 'platform-user-';

export const passwordSecretOf = (userUID: string): SecretKeyRef => ({
  name: `${prefix}${userUID}`,
  key: 'passwordHash',
});

/** Watches that were silent for so long may hide a user who was disabled, as with sessions. */
const longestSilence = 15_000;
const watchSeconds = 5;

export class Users {
  /** The name of a user who was created, changed or deleted, or whose password was. */
  readonly changed = new Topic<string>();
  readonly #namespace: string;
  readonly #clock: Clock;
  readonly #users: Informer<User>;
  readonly #secrets: Informer<Secret>;
  /** The names of those that are there, by uid. */
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

  /** What is read here is how the cluster is, but for a moment. */
  isCurrent(): boolean {
    const oldest = this.#clock.now() - longestSilence;
    return this.problem() === '' && [this.#users, this.#secrets].every((one) => one.lastSignOfLife() >= oldest);
  }

  get(username: string): User | undefined {
    return this.#users.get('', username);
  }

  list(): User[] {
    return this.#users.list();
  }

  /** The hash of a user's password, or what is kept under a key beside it; undefined if there is none. */
  passwordValue(userUID: string, beside: (key: string) => string = (key) => key): string | undefined {
    const { name, key } = passwordSecretOf(userUID);
    return secretValue(this.#secrets.get(this.#namespace, name), beside(key));
  }
}
