/**
 * Reports in the status of each User whether the user is allowed to log in. Every replica updates statuses, one user at
 * a time. If several replicas update the same status, the first write wins, and the others see its result.
 */
import { usersPath } from '../../config/names.ts';
import type { KubeClient } from '../../cluster/client/client.ts';
import { rfc3339, type Clock } from '../../runtime/time.ts';
import { Objects } from '../../cluster/objects.ts';
import type { Logger } from '../../runtime/logger.ts';
import { visitInSlices } from '../../runtime/slice.ts';
import { hasSystemName } from './account.ts';
import type { Directory } from './directory.ts';
import type { Condition, User, Users } from './users.ts';

type Acceptance = Pick<Condition, 'status' | 'reason' | 'message'>;

const type = 'Accepted';
const ambiguous = 'Ambiguous';
/**
 * Maximum random delay in milliseconds. Without a delay, replicas that start together would all write the same status.
 */
const maxDelay = 1_000;
const retryAfter = 10_000;
/** Maximum number of usernames in a message. */
const maxNamed = 10;

export class UserConditions {
  readonly #objects: Objects<User>;
  readonly #directory: Pick<Directory, 'configured' | 'shared'>;
  readonly #users: Pick<Users, 'get' | 'list'>;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #waiting = new Set<string>();
  /** For each username: the users that shared an e-mail address or identity with that user at the user's last check. */
  readonly #sharing = new Map<string, readonly string[]>();
  #cancel: (() => void) | undefined;
  /** Aborted when a newer check of all users starts, or at the end. */
  #checkingAll = new AbortController();
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

  /** Checks a changed user, and the users that share or shared an e-mail address or identity with that user. */
  check(username: string): void {
    const before = this.#sharing.get(username) ?? [];
    this.#checkOne(username);
    const now = this.#sharing.get(username) ?? [];
    for (const other of new Set([...before, ...now])) this.#checkOne(other);
  }

  #checkOne(username: string): void {
    const others = this.#directory.shared(username).flatMap((one) => one.others.slice(0, maxNamed));
    if (others.length === 0) this.#sharing.delete(username);
    else this.#sharing.set(username, others);
    const user = this.#users.get(username);
    if (user === undefined || this.#isWritten(user)) return;
    this.#waiting.add(username);
    this.#later(maxDelay * this.#clock.random());
  }

  /** Checks all users after the configuration has changed, in slices. */
  checkAll(): void {
    this.#checkingAll.abort();
    this.#checkingAll = new AbortController();
    const { signal } = this.#checkingAll;
    visitInSlices(this.#users.list(), { signal }, ({ metadata }) => this.#checkOne(metadata.name)).catch(
      (error: unknown) => {
        if (!signal.aborted) this.#log.error('users could not be checked', { error });
      },
    );
  }

  stop(): void {
    this.#isStopped = true;
    this.#checkingAll.abort();
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
        this.#log.warn('user status write failed', { user: username, error });
        delay = retryAfter;
        break;
      }
    }
    this.#cancel = undefined;
    if (this.#waiting.size > 0) this.#later(delay);
  }

  async #write(user: User): Promise<void> {
    const { name, resourceVersion, generation } = user.metadata;
    const acceptance = this.#acceptanceOf(user);
    const before = conditionOf(user);
    const lastTransitionTime =
      before?.status === acceptance.status ? before.lastTransitionTime : rfc3339(this.#clock.now());
    const others = (user.status?.conditions ?? []).filter((condition) => condition.type !== type);
    const condition = { type, ...acceptance, observedGeneration: generation, lastTransitionTime };
    const patch = { metadata: { resourceVersion }, status: { conditions: [...others, condition] } };
    // If the user was changed or deleted in the meantime, the watch reports it.
    await this.#objects.patch(`${name}/status`, patch);
  }

  #isWritten(user: User): boolean {
    const before = conditionOf(user);
    const { status, reason, message } = this.#acceptanceOf(user);
    // Messages are compared only for the reason `Ambiguous`. Messages for other reasons may differ between two versions
    // of the server, which may run at the same time.
    return (
      before?.status === status && before.reason === reason && (reason !== ambiguous || before.message === message)
    );
  }

  #acceptanceOf(user: User): Acceptance {
    if (this.#directory.configured(user.metadata.name) !== undefined)
      return {
        status: 'False',
        reason: 'ConfiguredUser',
        message: 'the cluster configuration object defines a user of this name, which takes precedence',
      };
    if (hasSystemName(user))
      return {
        status: 'False',
        reason: 'SystemName',
        message: 'names and groups that begin with "system:" are reserved for Kubernetes',
      };
    const shared = this.#directory.shared(user.metadata.name).map(({ by, others }) => {
      const more = others.length - maxNamed;
      const named = `${others.slice(0, maxNamed).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
      return `${by} (shared with ${named})`;
    });
    if (shared.length > 0)
      return {
        status: 'True',
        reason: ambiguous,
        message: `the user is allowed to log in while Active, but not with ${shared.join(' or ')}`,
      };
    return {
      status: 'True',
      reason: 'Accepted',
      message: 'the user is allowed to log in while Active, with a password or through a linked identity provider',
    };
  }
}

const conditionOf = ({ status }: User): Condition | undefined =>
  status?.conditions?.find((condition) => condition.type === type);
