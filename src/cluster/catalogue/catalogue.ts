/**
 * Resources that the cluster serves, by name, and their caches. A cache exists from the first request for its resource
 * until it has been unused for some time. The cache is also stopped when the CustomResourceDefinition of the resource
 * changes or is deleted.
 */
import { noSuchPath, serviceUnavailable } from '../../runtime/errors.ts';
import { qualifiedName } from '../../runtime/group-resource.ts';
import { repeat, type Clock } from '../../runtime/time.ts';
import type { KubeClient } from '../client/client.ts';
import type { DiscoveredResource, Discovery } from '../discovery.ts';
import { KubeError } from '../client/kube-error.ts';
import type { OwnRights } from '../own-rights.ts';
import type { Logger } from '../../runtime/logger.ts';
import { CachedResource, type CacheFigures } from './cached-resource.ts';
import { genericDefinition } from './generic.ts';
import { ListMemory } from './list-memory.ts';
import { MemoryLimit, retryAfter, type MemoryShare } from './memory-limit.ts';
import { apiResourcesOf, idOf, suggestionFor } from './names.ts';
import type { ApiResource, GroupVersionResource, Kind, Resource, ResourceDefinition } from './resource.ts';
import { withTimeout } from './waiting.ts';
import { WatchRight } from './watch-right.ts';

export interface CatalogueOptions {
  readonly client: Pick<KubeClient, 'stream'>;
  readonly discovery: Pick<Discovery, 'hasSynced' | 'waitForSync' | 'changed' | 'resolve' | 'find' | 'resources'>;
  readonly rights: Pick<OwnRights, 'mayListAndWatch' | 'forget'>;
  /** Returns the limits of the configuration. */
  readonly limits: () => { readonly maxBytes: number; readonly idle: number };
  readonly kinds: readonly Kind<unknown>[];
  /**
   * Registers the name of each cached resource as an allowed metric label. The resources of the cluster limit the
   * number of names.
   */
  readonly registerResource: (resource: string) => void;
  readonly log: Logger;
  readonly clock: Clock;
}

/** A resource as it is served now. */
export interface CatalogueEntry {
  readonly discovered: DiscoveredResource;
  readonly definition: ResourceDefinition<unknown>;
}

/** Cache that a request uses. The cache counts as used until `release` is called. */
export interface CacheHandle {
  readonly resource: Resource<unknown>;
  release(): void;
}

/** Maximum milliseconds that a request waits for discovery. */
const discoveryTimeout = 10_000;
const sweepInterval = 30_000;
/** Milliseconds until a resource is tried again after the cluster refused to list or watch it. */
const refusalDuration = 5_000;

/**
 * Returns true for API groups of this server. The resources of these groups are read with the caller's rights, and are
 * therefore not cached.
 */
const isOwn = (group: string): boolean => group === 'platform.io' || group.endsWith('.platform.io');

/** Resources that are never cached, by `idOf`. */
const neverCached = new Set(['secrets.']);

const keyOf = (resource: GroupVersionResource): string => `${idOf(resource)}/${resource.version}`;

/** Milliseconds for which a resource that did not fit is reported after it can be requested again. */
const warningLife = 10 * 60_000;

interface ActiveCache {
  readonly resource: CachedResource<unknown>;
  readonly discovered: DiscoveredResource;
  readonly share: MemoryShare;
  uses: number;
  lastUsed: number;
}

export class Catalogue {
  readonly #options: CatalogueOptions;
  readonly #clock: Clock;
  readonly #memory: MemoryLimit;
  /** Memory for lists of resources that are not cached. */
  readonly listMemory: ListMemory;
  readonly #caches = new Map<string, ActiveCache>();
  readonly #entries = new WeakMap<DiscoveredResource, CatalogueEntry>();
  /** Resources that did not fit into the memory, or that the cluster refused to list or watch. */
  readonly #refused = new Map<
    string,
    { readonly error: Error | undefined; readonly until: number; readonly maxBytes: number }
  >();
  /** Caches that always exist. */
  readonly #permanent: CachedResource<unknown>[] = [];
  readonly #stopped = new AbortController();
  #listed: { readonly of: readonly DiscoveredResource[]; readonly resources: readonly ApiResource[] } | undefined;

  constructor(options: CatalogueOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#memory = new MemoryLimit({ maxBytes: () => options.limits().maxBytes, makeRoom: () => this.#dropOldest() });
    this.listMemory = new ListMemory(() => options.limits().maxBytes);
  }

  start(): void {
    this.#options.discovery.changed.subscribe(() => this.#changed());
    void repeat(this.#clock, sweepInterval, this.#stopped.signal, () => this.#sweep());
    for (const cached of this.#permanent) cached.start();
  }

  stop(): void {
    this.#stopped.abort();
    const reason = serviceUnavailable('the server is shutting down');
    for (const key of this.#caches.keys()) this.#stop(key, reason);
    for (const cached of this.#permanent) cached.stop(reason);
  }

  /** Reports the resources that did not fit into the memory when they were last requested. */
  warning(): string {
    const { maxBytes } = this.#options.limits();
    return [...this.#refused.values()]
      .filter((refused) => refused.maxBytes === maxBytes && refused.until > this.#clock.now() - warningLife)
      .flatMap(({ error }) => (error === undefined ? [] : [error.message]))
      .join('; ');
  }

  /** Caches a resource while the catalogue runs, regardless of the memory limit. */
  cachePermanently<F>(definition: ResourceDefinition<F>): CachedResource<F> {
    this.#options.registerResource(definition.served.resource);
    const share = this.#memory.share(qualifiedName(definition.underlying), true);
    const { client, log } = this.#options;
    const cached = new CachedResource(definition, {
      client,
      log,
      clock: this.#clock,
      hold: (bytes) => share.hold(bytes),
    });
    this.#permanent.push(cached);
    return cached;
  }

  /** Returns the resource with this name. Throws 404 if the cluster does not serve the resource. */
  async find(name: string, signal: AbortSignal): Promise<CatalogueEntry> {
    const { discovery, kinds } = this.#options;
    if (!discovery.hasSynced()) {
      await withTimeout(signal, discoveryTimeout, notDiscovered, (limited) => discovery.waitForSync(limited));
    }
    const discovered = discovery.resolve(name);
    if (discovered === undefined) {
      const suggestion = suggestionFor(name, discovery);
      throw noSuchPath(
        `the cluster serves no resource ${JSON.stringify(name)}; ${suggestion === undefined ? 'use the plural name, such as "deployments" or "deployments.apps"' : `did you mean ${JSON.stringify(suggestion)}?`}`,
      );
    }
    let entry = this.#entries.get(discovered);
    if (entry === undefined) {
      const own = this.#permanent.find(({ definition: { underlying } }) => keyOf(underlying) === keyOf(discovered));
      entry = { discovered, definition: own?.definition ?? genericDefinition(discovered, kinds) };
      this.#entries.set(discovered, entry);
    }
    return entry;
  }

  /**
   * Returns the cache of a resource; undefined if the resource must not be cached. Throws 503 if the cache does not fit
   * into the memory.
   */
  async acquire({ discovered, definition }: CatalogueEntry): Promise<CacheHandle | undefined> {
    const { discovery, rights, limits } = this.#options;
    const key = keyOf(discovered);
    const permanent = this.#permanent.find((resource) => resource.definition === definition);
    if (permanent !== undefined) return { resource: permanent, release: () => undefined };
    const existing = this.#caches.get(key);
    if (existing !== undefined) return this.#handleOf(existing);
    if (!isCacheable(discovered)) return undefined;
    const refused = this.#refused.get(key);
    if (refused !== undefined && refused.until > this.#clock.now() && refused.maxBytes === limits().maxBytes) {
      if (refused.error === undefined) return undefined;
      throw refused.error;
    }
    this.#refused.delete(key);
    try {
      if (!(await rights.mayListAndWatch(discovered))) return undefined;
    } catch (error) {
      throw error instanceof KubeError ? error.toOwnStatusError() : error;
    }
    const concurrent = this.#caches.get(key);
    if (concurrent !== undefined) return this.#handleOf(concurrent);
    // `#changed` only stops existing caches, so a change during the review is detected here.
    const now = discovery.find(discovered);
    if (now === undefined || !isSame(now, discovered))
      throw serviceUnavailable(`the definition of ${qualifiedName(discovered)} has changed; try again`, 1);
    return this.#handleOf(this.#start(key, discovered, definition));
  }

  /** Resources that callers can read, for discovery on /kapis. Listed again when discovery has changed. */
  get apiResources(): readonly ApiResource[] {
    const { discovery } = this.#options;
    if (this.#listed?.of !== discovery.resources)
      this.#listed = { of: discovery.resources, resources: apiResourcesOf(discovery) };
    return this.#listed.resources;
  }

  /** Figures of the caches, by `qualifiedName`. */
  figures(): ReadonlyMap<string, CacheFigures> {
    const figures = new Map<string, CacheFigures>();
    for (const cached of this.#permanent) figures.set(qualifiedName(cached.definition.underlying), cached.figures());
    for (const { discovered, resource } of this.#caches.values())
      figures.set(qualifiedName(discovered), resource.figures());
    return figures;
  }

  #handleOf(cache: ActiveCache): CacheHandle {
    cache.uses += 1;
    let isReleased = false;
    return {
      resource: cache.resource,
      release: () => {
        if (isReleased) return;
        isReleased = true;
        cache.uses -= 1;
        cache.lastUsed = this.#clock.now();
      },
    };
  }

  #start(key: string, discovered: DiscoveredResource, definition: ResourceDefinition<unknown>): ActiveCache {
    const { client, log, registerResource, rights } = this.#options;
    registerResource(discovered.resource);
    const share = this.#memory.share(qualifiedName(discovered));
    const interrupted = (cause?: Error) =>
      serviceUnavailable(`${qualifiedName(discovered)} can no longer be watched; try again`, 1, cause);
    const refuse = (cause: Error): void => {
      rights.forget(discovered);
      this.#refuse(key, interrupted(cause), undefined);
    };
    const cached: CachedResource<unknown> = new CachedResource(definition, {
      client,
      log,
      clock: this.#clock,
      hold: (bytes) => {
        try {
          share.hold(bytes);
        } catch (error) {
          log.warn('resource exceeds the cache memory', { resource: qualifiedName(discovered), bytes, error });
          this.#refuse(key, error as Error, error as Error);
          throw error;
        }
      },
      refused: refuse,
      forbidden: () => right.refuse(),
      accepted: () => right.accept(),
    });
    const right = new WatchRight({
      rights,
      resource: discovered,
      clock: this.#clock,
      signal: cached.ended,
      revoked: () => refuse(new Error('the right to list and watch was revoked')),
      contradicted: () => this.#stop(key, interrupted()),
    });
    const cache: ActiveCache = { resource: cached, discovered, share, uses: 0, lastUsed: this.#clock.now() };
    this.#caches.set(key, cache);
    cached.start();
    return cache;
  }

  /**
   * Stops a cache and prevents a restart for some time. In that time `acquire` throws `error`, or returns undefined
   * without an `error`.
   */
  #refuse(key: string, reason: Error, error: Error | undefined): void {
    const { maxBytes } = this.#options.limits();
    const duration = error === undefined ? refusalDuration : retryAfter * 1_000;
    this.#refused.set(key, { error, until: this.#clock.now() + duration, maxBytes });
    this.#stop(key, reason);
  }

  #stop(key: string, reason: Error): void {
    const cache = this.#caches.get(key);
    if (cache === undefined) return;
    this.#caches.delete(key);
    cache.resource.stop(reason);
    cache.share.release();
    this.#options.log.info('resource cache stopped', {
      resource: qualifiedName(cache.discovered),
      reason: reason.message,
    });
  }

  /** Stops the caches of resources that have changed or that the cluster no longer serves. */
  #changed(): void {
    for (const [key, { discovered }] of this.#caches) {
      const now = this.#options.discovery.find(discovered);
      if (now === undefined) this.#stop(key, noSuchPath(`the cluster no longer serves ${qualifiedName(discovered)}`));
      else if (!isSame(now, discovered))
        this.#stop(key, serviceUnavailable(`the definition of ${qualifiedName(discovered)} has changed; try again`, 1));
    }
    for (const key of this.#refused.keys()) this.#refused.delete(key);
  }

  #sweep(): void {
    const longAgo = this.#clock.now() - this.#options.limits().idle;
    for (const [key, { uses, lastUsed }] of this.#caches)
      if (uses === 0 && lastUsed <= longAgo) this.#stop(key, new Error('unused'));
  }

  #dropOldest(): boolean {
    const [oldest] = [...this.#caches]
      .filter(([, { uses }]) => uses === 0)
      .toSorted(([, a], [, b]) => a.lastUsed - b.lastUsed);
    if (oldest === undefined) return false;
    this.#stop(oldest[0], new Error('memory needed for other resources'));
    return true;
  }
}

const notDiscovered = () => serviceUnavailable('the resources of the cluster are not known yet', 1);

const isCacheable = (discovered: DiscoveredResource): boolean =>
  discovered.verbs.includes('list') &&
  discovered.verbs.includes('watch') &&
  !isOwn(discovered.group) &&
  !neverCached.has(idOf(discovered));

const isSame = (a: DiscoveredResource, b: DiscoveredResource): boolean =>
  a.revision === b.revision && a.kind === b.kind && a.namespaced === b.namespaced && isCacheable(a) === isCacheable(b);
