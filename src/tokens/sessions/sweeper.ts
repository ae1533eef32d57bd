/** Deletes the sessions that are over. Replicas that sweep at the same time do each other no harm. */
import { type Clock, parseMilliseconds } from '../../runtime/time.ts';
import type { Logger } from '../../runtime/logger.ts';
import type { Lives } from './lifetimes.ts';
import type { SessionStore } from './session-store.ts';
import type { Session, SessionSpec } from './session.ts';

const interval = 60_000;
/** After so many failures a sweep is given up: the next one tries again. */
const mostFailures = 10;

export class Sweeper {
  readonly #store: SessionStore;
  readonly #lives: Lives;
  readonly #maySweep: () => boolean;
  readonly #isDismissed: (spec: SessionSpec) => boolean;
  readonly #clock: Clock;
  readonly #log: Logger;
  #cancel: () => void = () => undefined;
  #isStopped = false;

  constructor(options: {
    store: SessionStore;
    lives: Lives;
    /** Whether it is for this replica to delete what is over. */
    maySweep: () => boolean;
    /** Whether it is over for good by what it was made for, for certain. */
    isDismissed: (spec: SessionSpec) => boolean;
    clock: Clock;
    log: Logger;
  }) {
    this.#store = options.store;
    this.#lives = options.lives;
    this.#maySweep = options.maySweep;
    this.#isDismissed = options.isDismissed;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  start(): void {
    this.#cancel = this.#clock.after(interval * (0.5 + this.#clock.random()), () => {
      void this.#sweep().finally(() => {
        if (!this.#isStopped) this.start();
      });
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  async #sweep(): Promise<void> {
    if (!this.#maySweep()) return;
    let failures = 0;
    for (const { metadata } of this.#store.allWatched()) {
      if (this.#isStopped || failures === mostFailures) return;
      try {
        // Another replica may have been here meanwhile.
        const session = this.#store.watched(metadata.name);
        if (session !== undefined && (this.#lives.isOver(session) || this.#isOverForGood(session)))
          await this.#store.delete(session);
      } catch (error) {
        failures += 1;
        this.#log.warn('an ended session could not be deleted', { error });
      }
    }
  }

  /** One that is younger may be of a user, a password or a link that is new, and that this replica does not know yet. */
  #isOverForGood({ spec }: Session): boolean {
    return parseMilliseconds(spec.createdAt) < this.#clock.now() - interval && this.#isDismissed(spec);
  }
}
