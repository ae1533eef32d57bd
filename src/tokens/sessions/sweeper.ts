/** Deletes expired and revoked sessions. Several replicas can sweep at the same time without harm. */
import { parseMilliseconds, repeat, type Clock } from '../../runtime/time.ts';
import type { Logger } from '../../runtime/logger.ts';
import { Slice } from '../../runtime/slice.ts';
import type { Lifetimes } from './lifetimes.ts';
import type { SessionStore } from './session-store.ts';
import type { Session, SessionSpec } from './session.ts';

const interval = 60_000;
/** Maximum failed deletions per sweep. The next sweep tries again. */
const maxFailures = 10;

interface SweeperOptions {
  readonly store: SessionStore;
  readonly lifetimes: Lifetimes;
  /** Returns true if this replica sweeps. */
  readonly maySweep: () => boolean;
  /** Returns whether the user, password, link, provider or client of the session was certainly removed. */
  readonly isDismissed: (spec: SessionSpec) => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #stopped = new AbortController();

  constructor(options: SweeperOptions) {
    this.#options = options;
  }

  start(): void {
    void repeat(this.#options.clock, interval, this.#stopped.signal, () => this.#sweep());
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #sweep(): Promise<void> {
    const { store, lifetimes, maySweep, log } = this.#options;
    if (!maySweep()) return;
    let failures = 0;
    const slice = new Slice();
    for (const { metadata } of store.allWatched()) {
      // A check takes a microsecond, and there may be 100,000 sessions.
      if (slice.isOver) await slice.next();
      if (this.#stopped.signal.aborted || failures === maxFailures) return;
      try {
        // Another replica may have deleted the session in the meantime.
        const session = store.watched(metadata.name);
        if (session !== undefined && (lifetimes.isOver(session) || this.#isDismissed(session)))
          await store.delete(session);
      } catch (error) {
        failures += 1;
        log.warn('session could not be deleted', { error });
      }
    }
  }

  /**
   * Returns whether a session must be revoked permanently and is old enough. A newer session may belong to a user,
   * password or link that is not yet known to this replica.
   */
  #isDismissed({ spec }: Session): boolean {
    const { clock, isDismissed } = this.#options;
    return parseMilliseconds(spec.createdAt) < clock.now() - interval && isDismissed(spec);
  }
}
