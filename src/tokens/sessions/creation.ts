/** Creates sessions. Writes each session before it is used, and limits the number of sessions per user. */
import { rfc3339, type Clock } from '../../runtime/time.ts';
import type { Logger } from '../../runtime/logger.ts';
import type { Lifetimes } from './lifetimes.ts';
import type { SessionStore } from './session-store.ts';
import { timesOf, type Session, type SessionSpec } from './session.ts';

/**
 * Maximum active sessions of a user, so that endless logins fill neither the cluster nor the memory of the replicas.
 */
const maxOfUser = 100;
/** Maximum active sessions of a program, which may have many instances that log in. */
const maxOfProgram = 1_000;
/** Maximum unredeemed codes of a user. */
const maxPending = 20;
const maxDeletionsPerLogin = 10;

export class SessionCreation {
  readonly #store: SessionStore;
  readonly #lifetimes: Lifetimes;
  readonly #clock: Clock;
  readonly #log: Logger;

  constructor(options: { store: SessionStore; lifetimes: Lifetimes; clock: Clock; log: Logger }) {
    this.#store = options.store;
    this.#lifetimes = options.lifetimes;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** Creates a session and returns after the write. `until` is its expiry in milliseconds since the epoch. */
  async create(
    name: string,
    spec: Omit<SessionSpec, 'createdAt' | 'expiresAt'>,
    until: number,
    status: Pick<Session['status'], 'phase' | 'currentHash'>,
  ): Promise<Session> {
    const now = rfc3339(this.#clock.now());
    const session = await this.#store.add(
      name,
      { ...spec, createdAt: now, expiresAt: rfc3339(until) },
      { ...status, lastUsedAt: now },
    );
    await this.deleteExcess(session);
    return session;
  }

  /**
   * Deletes the least recently used sessions of a user who has too many. A failure does not fail the login, because the
   * next login tries again.
   */
  async deleteExcess({ metadata: { name }, spec, status: { phase } }: Session): Promise<void> {
    if (spec.userUID === '') return;
    const max = phase === 'Pending' ? maxPending : spec.subjectKind === undefined ? maxOfUser : maxOfProgram;
    if (this.#store.countOfUser(spec.userUID) <= max) return;
    const excess = this.#store
      .ofUser(spec.userUID)
      .filter((session) =>
        phase === 'Pending' ? this.#lifetimes.isPending(session) : this.#lifetimes.isActive(session),
      )
      .filter((session) => session.metadata.name !== name)
      .toSorted((a, b) => timesOf(a).lastUse - timesOf(b).lastUse)
      .slice(0, 1 - max)
      .slice(0, maxDeletionsPerLogin);
    try {
      await Promise.all(excess.map((session) => this.#store.delete(session)));
    } catch (error) {
      this.#log.warn('excess session could not be deleted', { error });
    }
  }
}
