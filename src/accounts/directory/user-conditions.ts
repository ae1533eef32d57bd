/**
 * Tells in the status of each User whether the server lets it log in. Every replica does so, one user after the other; the one that
 * is first wins, and the others see it.
 */
import { usersPath } from '../../config/names.ts';
import type { KubeClient } from '../../cluster/client/client.ts';
import { rfc3339, type Clock } from '../../runtime/time.ts';
import { Objects } from '../../cluster/objects.ts';
import type { Logger } from '../../runtime/logger.ts';
import { hasSystemName } from './account.ts';
import type { Directory } from './directory.ts';
import type { Condition, User, Users } from './users.ts';

type Verdict = Pick<Condition, 'status' | 'reason' | 'message'>;

const type = 'Accepted';
const ambiguous = 'Ambiguous';
/** Replicas that begin at once would all write the same. */
const longestDelay = 1_000;
const retryAfter = 10_000;
/** Of those who have the same: whoever has more of them looks for them otherwise. */
const maxNamed = 10;

export class UserConditions {
  readonly #objects: Objects<User>;
  readonly #directory: Pick<Directory, 'configured' | 'shared'>;
  readonly #users: Pick<Users, 'get' | 'list'>;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #waiting = new Set<string>();
  /** With whom users had something in common when they were looked at last. */
  readonly #sharing = new Map<string, readonly string[]>();
  #cancel: (() => void) | undefined;
  #isStopped = false;

  constructor(options: {
    client: Pick<KubeClient, 'json'>;
    directory: Pick<Directory, 'configured' | 'shared'>;
    users: Pick<Users, 'get' | 'list'>;
    log: Logger;
    clock: Clock;
  }) {
    this.#objects = new Objects(options.client, usersPath);
    this.#directory = options.directory;
    this.#users = options.users;
    this.#log = options.log;
    this.#clock = options.clock;
  }

  /** The user has changed, and so has what is said of those who have, or had, the same e-mail address or identity. */
  look(username: string): void {
    const before = this.#sharing.get(username) ?? [];
    this.#lookAt(username);
    const now = this.#sharing.get(username) ?? [];
    for (const other of new Set([...before, ...now])) this.#lookAt(other);
  }

  #lookAt(username: string): void {
    const others = this.#directory.shared(username).flatMap((one) => one.others.slice(0, maxNamed));
    if (others.length === 0) this.#sharing.delete(username);
    else this.#sharing.set(username, others);
    const user = this.#users.get(username);
    if (user === undefined || this.#isWritten(user)) return;
    this.#waiting.add(username);
    this.#later(longestDelay * this.#clock.random());
  }

  /** The configuration has changed. */
  lookAtAll(): void {
    for (const { metadata } of this.#users.list()) this.#lookAt(metadata.name);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  #later(time: number): void {
    if (this.#isStopped) return;
    this.#cancel ??= this.#clock.after(time, () => void this.#writeAll());
  }

  async #writeAll(): Promise<void> {
    let delay = 0;
    for (const username of this.#waiting) {
      if (this.#isStopped) return;
      try {
        const user = this.#users.get(username);
        if (user !== undefined && !this.#isWritten(user)) await this.#write(user);
        this.#waiting.delete(username);
      } catch (error) {
        this.#log.warn('the status of a user could not be written', { user: username, error });
        delay = retryAfter;
        break;
      }
    }
    this.#cancel = undefined;
    if (this.#waiting.size > 0) this.#later(delay);
  }

  async #write(user: User): Promise<void> {
    const { name, resourceVersion, generation } = user.metadata;
    const verdict = this.#verdictOf(user);
    const before = conditionOf(user);
    const lastTransitionTime =
      before?.status === verdict.status ? before.lastTransitionTime : rfc3339(this.#clock.now());
    const others = (user.status?.conditions ?? []).filter((condition) => condition.type !== type);
    const condition = { type, ...verdict, observedGeneration: generation, lastTransitionTime };
    const patch = { metadata: { resourceVersion }, status: { conditions: [...others, condition] } };
    // If the user was changed or deleted meanwhile, the watch brings it.
    await this.#objects.patch(`${name}/status`, patch);
  }

  #isWritten(user: User): boolean {
    const before = conditionOf(user);
    const { status, reason, message } = this.#verdictOf(user);
    // Other messages change with the version of the server, of which there may be two at once.
    return (
      before?.status === status && before.reason === reason && (reason !== ambiguous || before.message === message)
    );
  }

  #verdictOf(user: User): Verdict {
    if (this.#directory.configured(user.metadata.name) !== undefined)
      return {
        status: 'False',
        reason: 'ConfiguredUser',
        message: 'the cluster configuration object has a user of this name, which takes precedence',
      };
    if (hasSystemName(user))
      return {
        status: 'False',
        reason: 'SystemName',
        message: 'names and groups that begin with "system:" are of Kubernetes itself',
      };
    const shared = this.#directory.shared(user.metadata.name).map(({ by, others }) => {
      const more = others.length - maxNamed;
      const named = `${others.slice(0, maxNamed).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
      return `${by}: ${named} ${others.length === 1 ? 'has' : 'have'} it too`;
    });
    if (shared.length > 0)
      return {
        status: 'True',
        reason: ambiguous,
        message: `the user may log in while Active, but not by ${shared.join('; nor by ')}`,
      };
    return {
      status: 'True',
      reason: 'Accepted',
      message: 'the user may log in while Active, with a password or by a link to an identity provider',
    };
  }
}

const conditionOf = ({ status }: User): Condition | undefined =>
  status?.conditions?.find((condition) => condition.type === type);
