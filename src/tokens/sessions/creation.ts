/** How sessions begin: written before anybody is told, and never too many of one user. */
import { rfc3339, type Clock } from '../../runtime/time.ts';
import type { Logger } from '../../runtime/logger.ts';
import type { Lifetimes } from './lifetimes.ts';
import type { SessionStore } from './session-store.ts';
import { timesOf, type Session, type SessionSpec } from './session.ts';

/**
 * Live sessions of one user: who logs in without end fills neither the cluster nor the memory of the replicas. A program has many
 * instances, each of which logs in.
 */
const maxOfUser = 100;
const maxOfProgram = 1_000;
/** Of one user, codes that nobody has redeemed yet. */
const maxPending = 20;
const endedAtLogin = 10;

export class SessionCreation {
  readonly #store: SessionStore;
  readonly #lives: Lifetimes;
  readonly #clock: Clock;
  readonly #log: Logger;

  constructor(options: { store: SessionStore; lives: Lifetimes; clock: Clock; log: Logger }) {
    this.#store = options.store;
    this.#lives = options.lives;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** Returns after the write. `until`: when it is over at the latest, in milliseconds since the epoch. */
  async begin(
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
    await this.makeRoomFor(session);
    return session;
  }

  /** The sessions that were used longest ago give way. A login does not fail for it: the next one tries again. */
  async makeRoomFor({ metadata: { name }, spec, status: { phase } }: Session): Promise<void> {
    if (spec.userUID === '') return;
    const most = phase === 'Pending' ? maxPending : spec.subjectKind === undefined ? maxOfUser : maxOfProgram;
    if (this.#store.countOfUser(spec.userUID) <= most) return;
    const tooMany = this.#store
      .ofUser(spec.userUID)
      .filter((session) => (phase === 'Pending' ? this.#lives.isPending(session) : this.#lives.isActive(session)))
      .filter((session) => session.metadata.name !== name)
      .toSorted((a, b) => timesOf(a).lastUse - timesOf(b).lastUse)
      .slice(0, 1 - most)
      .slice(0, endedAtLogin);
    try {
      await Promise.all(tooMany.map((session) => this.#store.delete(session)));
    } catch (error) {
      this.#log.warn('a session too many of a user could not be deleted', { error });
    }
  }
}
