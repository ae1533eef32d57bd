/**
 * Schedules watches whose filters search the bytes of objects. These watches are limited per user and scheduled
 * round-robin by user, not by watch.
 */
import { InProgress } from '../../runtime/bounded-cache.ts';
import { Slice } from '../../runtime/slice.ts';
import { Slots } from '../../runtime/slots.ts';

/** Function that works for at most the time slice. Returns true if there is more to do. */
export type Step = (slice: Slice) => boolean;

/** Maximum lookups per user, equal to the maximum number of watches. */
const maxLookUps = 1_000;

interface Lane {
  readonly user: string;
  /** Waiting steps in order; at least one. */
  readonly steps: Set<Step>;
}

export class Lanes {
  /** Slots for the values that the filters of open watches search in each changed object. */
  readonly lookUps = new Slots({
    what: 'filter terms of open watches that search objects',
    total: Infinity,
    perUser: maxLookUps,
  });
  /** Lanes by user. The user who had the most recent turn is last. */
  readonly #lanes = new InProgress<Lane>('watch_lanes');
  #isRunning = false;

  /** Calls the step in each turn of the user until the step has nothing more to do. */
  run(user: string, step: Step): void {
    this.#add(user, step);
    if (!this.#isRunning) void this.#run();
  }

  #add(user: string, step: Step): void {
    const lane = this.#lanes.get(user) ?? { user, steps: new Set() };
    lane.steps.add(step);
    this.#lanes.set(user, lane);
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    const slice = new Slice();
    await slice.next();
    for (const [, lane] of this.#lanes) {
      if (slice.isOver) await slice.next();
      const [step] = lane.steps as Iterable<Step> as [Step];
      this.#lanes.delete(lane.user);
      lane.steps.delete(step);
      if (lane.steps.size > 0) this.#lanes.set(lane.user, lane);
      if (step(slice)) this.#add(lane.user, step);
    }
    this.#isRunning = false;
  }
}
