/**
 * Decisions of kube-apiserver about the namespaces in which a caller without a cluster-wide right is allowed to list a
 * resource (ADR 16). RoleBindings only determine which namespaces are reviewed, and when.
 */
import { assertAllowed, type AccessReviews, type ResourceAttributes } from '../auth/authorizers/authorizer.ts';
import type { UserInfo } from '../auth/user.ts';
import { sameBindings, type Bindings, type Granted } from '../cluster/catalogue/granted-namespaces.ts';
import { forbidden } from '../runtime/errors.ts';
import { mapConcurrent } from '../runtime/promises.ts';
import type { Clock } from '../runtime/time.ts';
import { withoutSpan } from '../runtime/tracing.ts';
import { sameNamespaces } from './visible-namespaces.ts';

/** Maximum age of the decision about a namespace whose objects are in a response, in milliseconds. */
const maxShownAge = 10_000;
/** Milliseconds that each namespace adds to the maximum age of decisions about all other namespaces. */
const agePerNamespace = 60;
/**
 * Maximum milliseconds by which kube-apiserver's authorizer notices a change of RoleBindings later than this server.
 * Decisions that are made earlier are due for a refresh after this time.
 */
const maxLag = 10_000;
/** Maximum number of namespaces whose objects are in one response. */
const maxShown = 1_000;
/** Namespaces that are reviewed before a caller without any visible namespace gets 403. */
const sampleSize = 16;
/** Maximum concurrent reviews while a request waits. */
const concurrency = 16;
/**
 * Reviews without a waiting request: number per batch, how many at once, milliseconds between two batches, how often
 * this pause doubles after failures, and milliseconds without a request after which the refresh stops.
 */
const background = { batch: 64, concurrency: 4, pause: 1_000, doublings: 3, idle: 10_000 };

interface Decision {
  readonly allowed: boolean;
  /** Monotonic time of the review. */
  readonly at: number;
  /** State of the RoleBindings that was known before the review. */
  readonly bindings: Bindings;
  /** True if the authorizer may not have noticed the last change of the RoleBindings yet. */
  readonly isEarly: boolean;
}

export interface ListRight {
  readonly user: UserInfo;
  /** The list in all namespaces. */
  readonly attributes: ResourceAttributes;
  /** Returns the right that makes the objects of a namespace visible. */
  readonly within: (namespace: string) => ResourceAttributes;
}

/** Namespaces in which one caller is allowed to list one resource. */
export class NamespaceAccess {
  readonly #right: ListRight;
  readonly #reviews: AccessReviews;
  readonly #clock: Clock;
  /** Decisions in the order of their reviews. */
  readonly #decisions = new Map<string, Decision>();
  readonly #inFlight = new Map<string, Promise<void>>();
  #candidates: Granted = new Map();
  #visible: ReadonlySet<string> = new Set();
  #isVisibleOutdated = false;
  /** No candidate lacks a decision, and no decision is too old, before this time. */
  #expiry = -Infinity;
  /** No decision is due for a refresh before this time. */
  #due = -Infinity;
  /** Time of an unexplained change. All decisions from before this time are due for a refresh. */
  #lastSurprise = -Infinity;
  #lastRequest = -Infinity;
  #isRefreshing = false;

  constructor({ user, attributes, within }: ListRight, reviews: AccessReviews, clock: Clock) {
    // The argument also has candidates, which would stay in memory.
    this.#right = { user, attributes, within };
    this.#reviews = reviews;
    this.#clock = clock;
  }

  /** Number of decisions. */
  get size(): number {
    return this.#decisions.size;
  }

  /** Visible namespaces. The set is replaced when they change. */
  get visible(): ReadonlySet<string> {
    if (this.#isVisibleOutdated) {
      this.#isVisibleOutdated = false;
      const visible = new Set(this.#candidates.keys().filter((namespace) => this.#isAllowed(namespace)));
      if (!sameNamespaces(visible, this.#visible)) this.#visible = visible;
    }
    return this.#visible;
  }

  /**
   * Waits for decisions about the candidates that have none, whose RoleBindings have changed, or whose decision is too
   * old. Other decisions are refreshed after the request. Throws 403 if no namespace is visible.
   */
  async update(candidates: Granted): Promise<void> {
    const now = this.#clock.monotonic();
    this.#lastRequest = now;
    this.#setCandidates(candidates);
    if (now >= this.#expiry) {
      await this.#review(candidates.keys(), this.#lacksDecisionSince(now - this.#maxAge));
      // A concurrent request may have waited for the same reviews.
      if (now >= this.#expiry) {
        this.#expiry = this.#nextExpiry();
        this.#due = -Infinity;
      }
    }
    if (!this.#isRefreshing && this.#clock.monotonic() >= this.#due) withoutSpan(() => void this.#refresh());
    await this.#assertVisible();
  }

  /**
   * Reviews these namespaces unless they were reviewed in the last 10 s. Returns false if one of them is no longer
   * visible. Throws 403 if no namespace is visible, or for too many namespaces.
   */
  async confirm(shown: ReadonlySet<string>): Promise<boolean> {
    if (shown.size > maxShown) throw this.#tooMany(shown.size);
    await this.#review(shown, this.#lacksDecisionSince(this.#clock.monotonic() - maxShownAge));
    const lost = [...shown].filter((namespace) => !this.visible.has(namespace));
    if (lost.length === 0) return true;
    await this.#reviewLike(lost, true);
    await this.#assertVisible();
    return false;
  }

  /** Maximum age of the decisions that totals and orders depend on, in milliseconds. */
  get #maxAge(): number {
    return Math.max(maxShownAge, this.#candidates.size * agePerNamespace);
  }

  #setCandidates(candidates: Granted): void {
    if (candidates === this.#candidates) return;
    this.#candidates = candidates;
    for (const namespace of this.#decisions.keys())
      if (!candidates.has(namespace)) {
        this.#decisions.delete(namespace);
        this.#isVisibleOutdated = true;
      }
    this.#expiry = -Infinity;
  }

  #isAllowed(namespace: string): boolean {
    return this.#decisions.get(namespace)?.allowed === true;
  }

  /**
   * Returns a function that reports whether a candidate has no decision about its present RoleBindings from after this
   * time.
   */
  #lacksDecisionSince(time: number): (namespace: string) => boolean {
    const start = this.#clock.monotonic();
    return (namespace) => {
      const bindings = this.#candidates.get(namespace);
      const decision = this.#decisions.get(namespace);
      if (bindings === undefined) return false;
      if (decision === undefined || decision.at <= time) return true;
      // Later changes of the RoleBindings are for later requests: otherwise, repeated changes would delay this request.
      return decision.at <= start && !sameBindings(decision.bindings, bindings);
    };
  }

  #nextExpiry(): number {
    const lacksDecision = this.#lacksDecisionSince(-Infinity);
    let oldest = Infinity;
    for (const namespace of this.#candidates.keys()) {
      if (lacksDecision(namespace)) return -Infinity;
      oldest = Math.min(oldest, this.#decisions.get(namespace)?.at ?? -Infinity);
    }
    return oldest + this.#maxAge;
  }

  /** Reviews the namespaces for which the function returns true. Concurrent requests share reviews. */
  async #review(
    namespaces: Iterable<string>,
    isOutdated: (namespace: string) => boolean,
    atOnce = concurrency,
  ): Promise<void> {
    await mapConcurrent([...namespaces].filter(isOutdated), atOnce, async (namespace) => {
      // A review in flight may have started before the RoleBindings changed.
      while (isOutdated(namespace)) {
        const review = this.#inFlight.get(namespace) ?? this.#reviewOne(namespace);
        this.#inFlight.set(namespace, review);
        await review;
      }
    });
  }

  async #reviewOne(namespace: string): Promise<void> {
    const { user, within } = this.#right;
    const bindings = this.#candidates.get(namespace);
    try {
      const { decision, at } = await this.#reviews.review(user, { ...within(namespace), namespace });
      if (bindings !== undefined && this.#candidates.has(namespace))
        this.#decide(namespace, decision.allowed, at, bindings);
    } finally {
      this.#inFlight.delete(namespace);
    }
  }

  /**
   * Stores a decision. If a decision changes although the RoleBindings have not changed, a role or another authorizer has
   * changed, so the older decisions are due. A change after an early review comes from these RoleBindings, and a change of
   * a decision that was older than an unexplained change comes from the same role.
   */
  #decide(namespace: string, allowed: boolean, at: number, bindings: Bindings): void {
    const before = this.#decisions.get(namespace);
    const isExplained = before === undefined || !sameBindings(before.bindings, bindings);
    // The deletion of a RoleBinding may leave `changedAt` as it is.
    const isEarly = at - bindings.changedAt < maxLag || (before !== undefined && isExplained);
    this.#decisions.delete(namespace);
    this.#decisions.set(namespace, { allowed, at, bindings, isEarly });
    if (before?.allowed === allowed) return;
    this.#isVisibleOutdated = true;
    if (isExplained || before.isEarly || before.at < this.#lastSurprise) return;
    this.#lastSurprise = at;
    this.#due = -Infinity;
  }

  #dueOf({ at, isEarly }: Decision): number {
    if (at < this.#lastSurprise) return -Infinity;
    return at + (isEarly ? maxLag : this.#maxAge / 2);
  }

  /**
   * Reviews other namespaces after decisions have changed, because a changed role may have changed them, too. Reviews
   * twice as many namespaces with the former decision `before` as have changed, until no more change. One changed
   * namespace therefore causes at most two reviews.
   */
  async #reviewLike(changed: readonly string[], before: boolean): Promise<void> {
    const isOutdated = this.#lacksDecisionSince(this.#clock.monotonic() - maxShownAge);
    const hasChanged = (namespace: string): boolean => this.#decisions.get(namespace)?.allowed === !before;
    for (let count = changed.filter(hasChanged).length; count > 0;) {
      const others = this.#decisions
        .entries()
        .filter(([namespace, { allowed }]) => allowed === before && isOutdated(namespace))
        .take(2 * count)
        .map(([namespace]) => namespace)
        .toArray();
      await this.#review(others, isOutdated);
      count = others.filter(hasChanged).length;
    }
  }

  /** Refreshes due decisions slowly while requests use them. */
  async #refresh(): Promise<void> {
    this.#isRefreshing = true;
    const isDue = (namespace: string): boolean => {
      const decision = this.#decisions.get(namespace);
      return decision !== undefined && this.#dueOf(decision) <= this.#clock.monotonic();
    };
    let failures = 0;
    for (let batch = this.#nextBatch(); batch.length > 0; batch = this.#nextBatch()) {
      try {
        await this.#review(batch, isDue, background.concurrency);
        failures = 0;
      } catch {
        // Decisions that become too old are reviewed while a request waits, which reports the error.
        failures = Math.min(failures + 1, background.doublings);
      }
      await new Promise<void>((resolve) => this.#clock.after(background.pause * 2 ** failures, resolve));
      if (this.#clock.monotonic() - this.#lastRequest >= background.idle) break;
    }
    this.#isRefreshing = false;
  }

  /** Returns due namespaces: early decisions, and then the oldest decisions. */
  #nextBatch(): readonly string[] {
    const now = this.#clock.monotonic();
    const early: string[] = [];
    const others: string[] = [];
    this.#due = Infinity;
    for (const [namespace, decision] of this.#decisions) {
      const due = this.#dueOf(decision);
      this.#due = Math.min(this.#due, due);
      const batch = decision.isEarly ? early : others;
      if (due <= now && batch.length < background.batch) batch.push(namespace);
    }
    return [...early, ...others].slice(0, background.batch);
  }

  async #assertVisible(): Promise<void> {
    if (this.visible.size > 0) return;
    const sample = this.#candidates.keys().take(sampleSize).toArray();
    await this.#review(sample, this.#lacksDecisionSince(this.#clock.monotonic() - maxShownAge));
    await this.#reviewLike(sample, false);
    if (this.visible.size === 0) await assertAllowed(this.#reviews, this.#right.user, this.#right.attributes);
  }

  #tooMany(count: number): Error {
    const { user, attributes } = this.#right;
    const { verb, group, resource } = attributes;
    return forbidden(
      { group, resource },
      '',
      `User "${user.username}" cannot ${verb} resource "${resource}" in API group "${group}" at the cluster scope, and the response would contain objects of more than ${maxShown} namespaces (${count}): request smaller pages with limit, or specify a namespace`,
    );
  }
}
