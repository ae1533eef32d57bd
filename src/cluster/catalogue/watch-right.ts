import type { Clock } from '../../runtime/time.ts';
import { sleep } from '../../runtime/time.ts';
import type { OwnRights } from '../own-rights.ts';
import type { GroupVersionResource } from './resource.ts';

export interface WatchRightOptions {
  readonly rights: Pick<OwnRights, 'mayListAndWatch' | 'forget'>;
  readonly resource: Pick<GroupVersionResource, 'group' | 'resource'>;
  readonly clock: Clock;
  /** Ends the reviews. */
  readonly signal: AbortSignal;
  /** Handles a right that was revoked, as a review shows. */
  readonly revoked: () => void;
  /** Handles a watch that is refused although a review allowed it. */
  readonly contradicted: () => void;
}

/** Time in which a kube-apiserver that has started learns RBAC. */
const reviewDelay = 2_000;
/**
 * A 403 within this time after a review that allowed the watch is not due to a start: a reflector tries again after 30
 * s at most.
 */
const startTime = 60_000;

/**
 * Reviews the right to watch a resource when kube-apiserver refuses the watch, as it refuses everything while it
 * starts.
 */
export class WatchRight {
  readonly #options: WatchRightOptions;
  #isReviewing = false;
  /** True if the last response to a watch was 403. */
  #isRefused = false;
  /** Time when a review allowed the watch that kube-apiserver refused. */
  #allowedAt = -Infinity;

  constructor(options: WatchRightOptions) {
    this.#options = options;
  }

  /** Records that kube-apiserver accepted a watch. If it refuses the next one, it has started again. */
  accept(): void {
    this.#isRefused = false;
    this.#allowedAt = -Infinity;
  }

  refuse(): void {
    const { clock, contradicted } = this.#options;
    this.#isRefused = true;
    if (clock.now() - this.#allowedAt <= startTime) contradicted();
    else if (!this.#isReviewing) void this.#review();
  }

  async #review(): Promise<void> {
    const { rights, resource, clock, signal, revoked } = this.#options;
    this.#isReviewing = true;
    await sleep(clock, reviewDelay, signal);
    if (signal.aborted) return;
    rights.forget(resource);
    // Without a decision the next 403 starts another review.
    const isAllowed = await rights.mayListAndWatch(resource).catch(() => undefined);
    this.#isReviewing = false;
    if (isAllowed === true && this.#isRefused) this.#allowedAt = clock.now();
    if (isAllowed === false && !signal.aborted) revoked();
  }
}
