/**
 * Caches in which namespaces callers without a cluster-wide right are allowed to list a resource (ADR 16).
 * kube-apiserver decides about each namespace. RoleBindings only determine which namespaces are reviewed, and when.
 */
import { decisionKey } from '../auth/authorizers/access-review.ts';
import { assertAllowed, type AccessReviews, type ResourceAttributes } from '../auth/authorizers/authorizer.ts';
import type { UserInfo } from '../auth/user.ts';
import { sameBindings, type Bindings, type Granted } from '../cluster/catalogue/granted-namespaces.ts';
import { BoundedCache } from '../runtime/bounded-cache.ts';
import { forbidden } from '../runtime/errors.ts';
import { mapConcurrent } from '../runtime/promises.ts';
import type { Clock } from '../runtime/time.ts';
import { withoutSpan } from '../runtime/tracing.ts';

/** Maximum age of the decision about a namespace whose objects are in a response, in milliseconds. */
const maxShownAge = 10_000;
/** Milliseconds that each namespace adds to the maximum age of decisions about all other namespaces. */
const agePerNamespace = 60;
/**
 * Age after which the first decision after a change of RoleBindings is refreshed, in milliseconds. kube-apiserver's
 * authorizer may notice the change later than this server.
 */
const maxFirstAge = 10_000;
/** Maximum number of namespaces whose objects are in one response. */
const maxShown = 1_000;
/** Maximum concurrent reviews while a request waits. */
const concurrency = 16;
/** Reviews without a waiting request: number per batch, how many at once, and milliseconds between two batches. */
const background = { batch: 64, concurrency: 4, pause: 1_000 };

/** Maximum age of the decisions that totals and orders depend on, in milliseconds. */
const maxAgeOf = (count: number): number => Math.max(maxShownAge, count * agePerNamespace);

interface Decided {
  readonly allowed: boolean;
  /** Monotonic time of the review. */
  readonly at: number;
  /** State of the RoleBindings that was known before the review. */
  readonly bindings: Bindings;
  /** True for the first review since the RoleBindings have changed. */
  readonly isFirst: boolean;
}

interface ListRight {
  readonly user: UserInfo;
  /** The list in all namespaces. */
  readonly attributes: ResourceAttributes;
  /** Returns the right that makes the objects of a namespace visible. */
  readonly within: (namespace: string) => ResourceAttributes;
}

/** Namespaces in which one caller is allowed to list one resource. */
export class ReviewedNamespaces {
  readonly #right: ListRight;
  readonly #reviews: AccessReviews;
  readonly #clock: Clock;
  readonly #decided = new Map<string, Decided>();
  #candidates: Granted = new Map();
  #visible: ReadonlySet<string> = new Set();
  /** Time after which a request waits for reviews, and time after which decisions are refreshed. */
  #times = { expiry: -Infinity, refresh: -Infinity };
  #completing: Promise<void> | undefined;
  #isRefreshing = false;

  constructor(right: ListRight, reviews: AccessReviews, clock: Clock) {
    this.#right = right;
    this.#reviews = reviews;
    this.#clock = clock;
  }

  /** Visible namespaces. The set is replaced when they change. */
  get visible(): ReadonlySet<string> {
    return this.#visible;
  }

  /**
   * Reviews the candidates whose RoleBindings have changed, and all candidates if a decision is too old. Other decisions
   * are refreshed after the request. Throws 403 if no namespace is visible.
   */
  async update(candidates: Granted): Promise<void> {
    while (!this.#isCurrent(candidates)) {
      const isShared = this.#completing !== undefined;
      const maxAge = maxAgeOf(candidates.size);
      await this.#complete(candidates, this.#isExpired ? maxAge / 2 : maxAge);
      if (!isShared) break;
    }
    if (this.#clock.monotonic() >= this.#times.refresh) withoutSpan(() => void this.#refresh());
    await this.#assertVisible();
  }

  /**
   * Reviews these namespaces unless they were reviewed in the last 10 s. Returns false if one of them is no longer
   * visible. Throws 403 if no namespace is visible, or for too many namespaces.
   */
  async confirm(shown: ReadonlySet<string>): Promise<boolean> {
    if (shown.size > maxShown) throw this.#tooMany(shown.size);
    const outdated = [...shown].filter((namespace) => this.#isOlder(namespace, maxShownAge));
    if (outdated.length > 0) await this.#reviewAll(outdated, concurrency);
    const isVisible = (namespace: string): boolean =>
      this.#visible.has(namespace) && this.#decided.get(namespace)?.allowed === true;
    if ([...shown].every(isVisible)) return true;
    this.#updateVisible();
    await this.#assertVisible();
    return false;
  }

  /** Confirms all visible namespaces, which become fewer if one of them is no longer visible. Throws like `confirm`. */
  async confirmAll(): Promise<void> {
    for (;;) if (await this.confirm(this.#visible)) return;
  }

  get #isExpired(): boolean {
    return this.#clock.monotonic() >= this.#times.expiry;
  }

  #isCurrent(candidates: Granted): boolean {
    return candidates === this.#candidates && !this.#isExpired;
  }

  #isOf(namespace: string, bindings: Bindings): boolean {
    const decided = this.#decided.get(namespace);
    return decided !== undefined && sameBindings(decided.bindings, bindings);
  }

  #isOlder(namespace: string, age: number): boolean {
    return this.#clock.monotonic() - (this.#decided.get(namespace)?.at ?? -Infinity) >= age;
  }

  /** Reviews the candidates that have changed or whose decision has reached this age. Concurrent callers share the work. */
  #complete(candidates: Granted, age: number): Promise<void> {
    this.#completing ??= this.#decide(candidates, age).finally(() => (this.#completing = undefined));
    return this.#completing;
  }

  async #decide(candidates: Granted, age: number): Promise<void> {
    const outdated = [...candidates].filter(
      ([namespace, bindings]) => !this.#isOf(namespace, bindings) || this.#isOlder(namespace, age),
    );
    await mapConcurrent(outdated, concurrency, ([namespace, bindings]) => this.#review(namespace, bindings));
    for (const namespace of this.#decided.keys()) if (!candidates.has(namespace)) this.#decided.delete(namespace);
    this.#candidates = candidates;
    this.#updateVisible();
  }

  /**
   * Returns true if the decision has changed although the RoleBindings have not. A right that only the first review did
   * not find comes from these RoleBindings.
   */
  async #review(namespace: string, bindings: Bindings): Promise<boolean> {
    const { user, within } = this.#right;
    const { decision, at } = await this.#reviews.review(user, { ...within(namespace), namespace });
    const before = this.#decided.get(namespace);
    const isFirst = !this.#isOf(namespace, bindings);
    this.#decided.set(namespace, { allowed: decision.allowed, at, bindings, isFirst });
    if (before === undefined || isFirst || before.allowed === decision.allowed) return false;
    return before.allowed || !before.isFirst;
  }

  /**
   * Reviews these candidates. If a decision has changed without a change of RoleBindings, a role or another authorizer has
   * changed, so all candidates are reviewed.
   */
  async #reviewAll(namespaces: readonly string[], atOnce: number): Promise<void> {
    const candidates = this.#candidates;
    const changes = await mapConcurrent(namespaces, atOnce, (namespace) =>
      this.#review(namespace, candidates.get(namespace) ?? { count: 0, lastChange: 0 }),
    );
    if (changes.includes(true)) await this.#complete(this.#candidates, maxShownAge);
  }

  /** Reviews outdated decisions slowly. A failure ends the pass, and a later request starts the next pass. */
  async #refresh(): Promise<void> {
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    try {
      const outdated = this.#outdated();
      for (let start = 0; start < outdated.length; start += background.batch) {
        if (start > 0) await new Promise<void>((resolve) => this.#clock.after(background.pause, resolve));
        const batch = outdated.slice(start, start + background.batch);
        await this.#reviewAll(
          batch.filter((namespace) => this.#candidates.has(namespace)),
          background.concurrency,
        );
      }
      this.#updateVisible();
    } catch {
      // Decisions that become too old are reviewed while a request waits, which reports the error.
    } finally {
      this.#isRefreshing = false;
    }
  }

  /** Returns the candidates to refresh. When one decision reaches half of the maximum age, all older ones are refreshed. */
  #outdated(): readonly string[] {
    const maxAge = maxAgeOf(this.#candidates.size);
    const isFirst = (namespace: string): boolean => this.#decided.get(namespace)?.isFirst !== false;
    const candidates = [...this.#candidates.keys()];
    const isDue = candidates.some((namespace) => !isFirst(namespace) && this.#isOlder(namespace, maxAge / 2));
    const age = isDue ? maxAge / 4 : Infinity;
    return candidates.filter((namespace) => this.#isOlder(namespace, isFirst(namespace) ? maxFirstAge : age));
  }

  #updateVisible(): void {
    const visible = new Set<string>();
    const maxAge = maxAgeOf(this.#candidates.size);
    const times = { expiry: Infinity, refresh: Infinity };
    for (const namespace of this.#candidates.keys()) {
      const { allowed = false, at = -Infinity, isFirst = true } = this.#decided.get(namespace) ?? {};
      if (allowed) visible.add(namespace);
      times.expiry = Math.min(times.expiry, at + maxAge);
      times.refresh = Math.min(times.refresh, at + (isFirst ? maxFirstAge : maxAge / 2));
    }
    this.#times = times;
    if (!sameNamespaces(visible, this.#visible)) this.#visible = visible;
  }

  async #assertVisible(): Promise<void> {
    if (this.#visible.size === 0) await assertAllowed(this.#reviews, this.#right.user, this.#right.attributes);
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

/** Namespaces of all callers. */
export class NamespaceReviews {
  readonly #reviews: AccessReviews;
  readonly #clock: Clock;
  readonly #cache: BoundedCache<{ readonly namespaces: ReviewedNamespaces; readonly count: number }>;

  constructor(reviews: AccessReviews, clock: Clock) {
    this.#reviews = reviews;
    this.#clock = clock;
    this.#cache = new BoundedCache({
      name: 'namespace_reviews',
      maxEntries: 20_000,
      maxBytes: 64 * 1024 * 1024,
      ttl: 10 * 60_000,
      // A decision and its entries in a Map and in a Set.
      sizeOf: ({ count }) => 200 * count,
      clock: () => clock.monotonic(),
    });
  }

  /** Returns the namespaces of a caller after `update`. */
  async of(right: ListRight, candidates: Granted): Promise<ReviewedNamespaces> {
    const key = decisionKey(right.user, right.attributes);
    let entry = this.#cache.get(key);
    if (entry?.count !== candidates.size) {
      const namespaces = entry?.namespaces ?? new ReviewedNamespaces(right, this.#reviews, this.#clock);
      this.#cache.set(key, (entry = { namespaces, count: candidates.size }));
    }
    await entry.namespaces.update(candidates);
    return entry.namespaces;
  }
}

/** Names of namespaces; undefined if everything in the scope of the request is visible. */
export type Visible = ReadonlySet<string> | undefined;

export const sameNamespaces = (a: Visible, b: Visible): boolean =>
  a === b || (a !== undefined && b !== undefined && a.size === b.size && [...a].every((one) => b.has(one)));
