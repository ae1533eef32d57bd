/** Watches whose filters look for values in objects. They are limited per user, and work in turns that users take, not watches. */
import { InProgress } from '../../runtime/bounded-cache.ts';
import { Slice } from '../../runtime/slice.ts';
import { Slots } from '../../runtime/slots.ts';

/** Works until the slice is over at most; true if there is more to do. */
export type Step = (slice: Slice) => boolean;

/** As many as a user has watches. */
const maxLookUps = 1_000;

interface Lane {
  readonly user: string;
  /** The one that waits longest is first. There is at least one. */
  readonly steps: Set<Step>;
}

export class Lanes {
  /** Values that the filters of open watches look for in each changed object. */
  readonly lookUps = new Slots({
    what: 'values that filters of watches look for',
    total: Infinity,
    perUser: maxLookUps,
  });
  /** By user. The user who had a turn last is last. */
  readonly #lanes = new InProgress<Lane>('watch_lanes');
  #isRunning = false;

  /** Calls the step in one of the next turns of the user, and again while there is more to do. */
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
