/**
 * Writes the time of the last login to the status of each User. The time is accurate to a minute, so that a busy user
 * causes few writes.
 */
import { BoundedCache } from '../../runtime/bounded-cache.ts';
import { usersPath } from '../../config/names.ts';
import type { KubeClient } from '../../cluster/client/client.ts';
import { type Clock, parseMilliseconds } from '../../runtime/time.ts';
import { Objects } from '../../cluster/objects.ts';
import type { Logger } from '../../runtime/logger.ts';
import type { Account } from '../directory/account.ts';
import type { User, Users } from '../directory/users.ts';
import { WriteBehind } from '../../cluster/write-behind.ts';

/** Minimum milliseconds between writes for a user, by any replica. */
const interval = 60_000;

interface LastLogin {
  readonly uid: string;
  /** Time of the login in RFC 3339 format. */
  readonly time: string;
}

export class LastLogins {
  readonly #objects: Objects<User>;
  readonly #users: Pick<Users, 'get'>;
  readonly #writes: WriteBehind<LastLogin>;
  /** Times of the logins whose write was queued, by uid, in milliseconds since the epoch. */
  readonly #noted = new BoundedCache<number>({
    name: 'last_logins',
    maxEntries: 10_000,
    maxBytes: 4 * 1024 * 1024,
    ttl: 2 * interval,
  });

  constructor(options: { client: Pick<KubeClient, 'json'>; users: Pick<Users, 'get'>; clock: Clock; log: Logger }) {
    this.#objects = new Objects(options.client, usersPath);
    this.#users = options.users;
    this.#writes = new WriteBehind<LastLogin>({
      ...options,
      what: 'last login time',
      write: (username, login) => this.#write(username, login),
      merge: (_, later) => later,
    });
  }

  /** Queues a write of the login time. Configured users have no status. */
  note({ username, uid }: Pick<Account, 'username' | 'uid'>, time: string): void {
    const at = parseMilliseconds(time);
    if (at - (this.#noted.get(uid) ?? -Infinity) < interval || !this.#isDue(username, { uid, time })) return;
    this.#noted.set(uid, at);
    this.#writes.put(username, { uid, time });
  }

  stop(): Promise<void> {
    return this.#writes.stop();
  }

  async #write(username: string, login: LastLogin): Promise<void> {
    // Another replica may have written the time in the meantime.
    if (!this.#isDue(username, login)) return;
    const { uid, time: lastLoginTime } = login;
    await this.#objects.patch(`${username}/status`, { metadata: { uid }, status: { lastLoginTime } });
  }

  #isDue(username: string, { uid, time }: LastLogin): boolean {
    const user = this.#users.get(username);
    const before = parseMilliseconds(user?.status?.lastLoginTime ?? '');
    return user?.metadata.uid === uid && !(parseMilliseconds(time) - before < interval);
  }
}
