import type { Clock } from '../../runtime/time.ts';
import { sleep } from '../../runtime/time.ts';
import type { OwnRights } from '../own-rights.ts';
import type { GroupVersionResource } from './resource.ts';

export interface WatchRightOptions {
  readonly rights: Pick<OwnRights, 'mayListAndWatch' | 'forget'>;
  readonly resource: Pick<GroupVersionResource, 'group' | 'resource'>;
  readonly clock: Clock;
  /** Aborts the reviews. */
  readonly signal: AbortSignal;
  /** Called when a review has confirmed that the right was revoked. */
  readonly revoked: () => void;
  /** Called when kube-apiserver refuses a watch that a recent review allowed. */
  readonly contradicted: () => void;
}

/** Milliseconds that a starting kube-apiserver may need to load RBAC. */
const reviewDelay = 2_000;
/**
 * Milliseconds after a review that allowed the watch. A 403 within this time is not due to a starting kube-apiserver,
 * because a reflector retries after at most 30 s.
 */
const startTime = 60_000;

/**
 * Reviews the right to watch a resource when kube-apiserver refuses the watch. The review is needed because a starting
 * kube-apiserver refuses every request.
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

  /**
   * Records that kube-apiserver accepted a watch. A refusal of the next watch is reviewed again, because kube-apiserver
   * may have restarted.
   */
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
    // If the review fails, the next 403 starts another review.
    const isAllowed = await rights.mayListAndWatch(resource).catch(() => undefined);
    this.#isReviewing = false;
    if (isAllowed === true && this.#isRefused) this.#allowedAt = clock.now();
    if (isAllowed === false && !signal.aborted) revoked();
  }
}
