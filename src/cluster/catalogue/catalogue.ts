/**
 * Every resource that the cluster serves: which one a name means, and a copy of it from its first use until nobody has used it for a
 * while. A copy ends with what it is a copy of: when its CustomResourceDefinition changes or goes.
 */
import { noSuchPath, serviceUnavailable } from '../../runtime/errors.ts';
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
import type { ApiResource, Kind, Resource, ResourceDefinition } from './resource.ts';
import { within } from './waiting.ts';
import { WatchRight } from './watch-right.ts';

export interface CatalogueOptions {
  readonly client: Pick<KubeClient, 'stream'>;
  readonly discovery: Pick<Discovery, 'hasSynced' | 'waitForSync' | 'changed' | 'resolve' | 'find' | 'resources'>;
  readonly rights: Pick<OwnRights, 'mayListAndWatch' | 'forget'>;
  /** Of the configuration. */
  readonly limits: () => { readonly maxBytes: number; readonly idle: number };
  readonly kinds: readonly Kind<unknown>[];
  /** Told the name of each resource that is copied: there are no more than the cluster has. */
  readonly known: (resource: string) => void;
  readonly log: Logger;
  readonly clock: Clock;
}

/** A resource as it is served now. */
export interface CatalogueEntry {
  readonly discovered: DiscoveredResource;
  readonly definition: ResourceDefinition<unknown>;
}

/** A copy that is in use: it stays until `release`. */
export interface Use {
  readonly resource: Resource<unknown>;
  release(): void;
}

/** For the first documents of the cluster, in milliseconds. */
const longestWait = 10_000;
const sweepInterval = 30_000;
/** A resource that the cluster refused to list or watch is tried again after this time. */
const refusalLife = 5_000;

/** API groups that this server serves or whose objects are its own: they are read as the caller. */
const isOwn = (group: string): boolean => group === 'platform.io' || group.endsWith('.platform.io');

/** By group and resource: what is never copied, whoever may read it. */
const secret = new Set(['secrets.']);

const idOf = ({ group, resource }: { readonly group: string; readonly resource: string }): string =>
  `${resource}.${group}`;
const keyOf = (of: { readonly group: string; readonly version: string; readonly resource: string }): string =>
  `${idOf(of)}/${of.version}`;

interface Copy {
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
  /** For what is not copied. */
  readonly listMemory: ListMemory;
  readonly #copies = new Map<string, Copy>();
  readonly #entries = new WeakMap<DiscoveredResource, CatalogueEntry>();
  /** What did not fit, or what the cluster does not let us watch after all. */
  readonly #refused = new Map<
    string,
    { readonly error: Error | undefined; readonly until: number; readonly maxBytes: number }
  >();
  /** Copies that are always there. */
  readonly #kept: CachedResource<unknown>[] = [];
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
    for (const cached of this.#kept) cached.start();
  }

  stop(): void {
    this.#stopped.abort();
    const reason = serviceUnavailable('the server is ending');
    for (const key of this.#copies.keys()) this.#stop(key, reason);
    for (const cached of this.#kept) cached.stop(reason);
  }

  /** Caches a resource from the start of the catalogue to its end; there is always room for it. */
  keep<F>(definition: ResourceDefinition<F>): CachedResource<F> {
    this.#options.known(definition.served.resource);
    const share = this.#memory.share(nameOf(definition.underlying), true);
    const { client, log } = this.#options;
    const cached = new CachedResource(definition, {
      client,
      log,
      clock: this.#clock,
      hold: (bytes) => share.hold(bytes),
    });
    this.#kept.push(cached);
    return cached;
  }

  /** What a name means. Throws 404 for what the cluster does not serve. */
  async find(name: string, signal: AbortSignal): Promise<CatalogueEntry> {
    const { discovery, kinds } = this.#options;
    if (!discovery.hasSynced()) {
      await within(signal, longestWait, late, (limited) => discovery.waitForSync(limited));
    }
    const discovered = discovery.resolve(name);
    if (discovered === undefined) {
      const meant = this.#meant(name);
      throw noSuchPath(
        `the cluster serves no resource ${JSON.stringify(name)}; ${meant === undefined ? 'a resource is named by its plural, as in "deployments" or "deployments.apps"' : `did you mean ${JSON.stringify(meant)}?`}`,
      );
    }
    let entry = this.#entries.get(discovered);
    if (entry === undefined) {
      const own = this.#kept.find(({ definition: { underlying } }) => keyOf(underlying) === keyOf(discovered));
      entry = { discovered, definition: own?.definition ?? genericDefinition(discovered, kinds) };
      this.#entries.set(discovered, entry);
    }
    return entry;
  }

  /** The copy of a resource; undefined if there must be none. Throws 503 for one that has no room. */
  async use({ discovered, definition }: CatalogueEntry): Promise<Use | undefined> {
    const { discovery, rights, limits } = this.#options;
    const key = keyOf(discovered);
    const permanent = this.#kept.find((resource) => resource.definition === definition);
    if (permanent !== undefined) return { resource: permanent, release: () => undefined };
    const present = this.#copies.get(key);
    if (present !== undefined) return this.#take(present);
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
    const begun = this.#copies.get(key);
    if (begun !== undefined) return this.#take(begun);
    // It may have changed while we asked, and then nobody would tell of it.
    const now = discovery.find(discovered);
    if (now === undefined || !isSame(now, discovered))
      throw serviceUnavailable(`${nameOf(discovered)} was defined anew; try again`, 1);
    return this.#take(this.#start(key, discovered, definition));
  }

  /** What a caller may name, as discovery on /kapis tells it. */
  get apiResources(): readonly ApiResource[] {
    const { discovery } = this.#options;
    if (this.#listed?.of !== discovery.resources)
      this.#listed = { of: discovery.resources, resources: this.#apiResources() };
    return this.#listed.resources;
  }

  /** By `{plural}.{group}`. */
  figures(): ReadonlyMap<string, CacheFigures> {
    const figures = new Map<string, CacheFigures>();
    for (const cached of this.#kept) figures.set(nameOf(cached.definition.underlying), cached.figures());
    for (const { discovered, resource } of this.#copies.values()) figures.set(nameOf(discovered), resource.figures());
    return figures;
  }

  /** The plural of what is named by its kind, its singular or a short name. */
  #meant(name: string): string | undefined {
    const { discovery } = this.#options;
    const wanted = name.toLowerCase();
    const meant = discovery.resources.find(({ resource, kind, singular, shortNames }) =>
      [resource, kind.toLowerCase(), singular, ...shortNames].includes(wanted),
    );
    if (meant === undefined) return undefined;
    return discovery.resolve(meant.resource) === meant ? meant.resource : nameOf(meant);
  }

  #apiResources(): ApiResource[] {
    const { discovery } = this.#options;
    const versions = new Set<string>();
    return discovery.resources.flatMap((discovered) => {
      const { resource, group, singular, namespaced, kind, shortNames, verbs } = discovered;
      const readable = ['get', 'list', 'watch'].filter((verb) => verbs.includes(verb));
      // The preferred version alone has a short name.
      if (readable.length === 0 || versions.has(idOf(discovered))) return [];
      versions.add(idOf(discovered));
      const isFirst = discovery.resolve(resource) === discovered;
      return {
        name: isFirst ? resource : `${resource}.${group}`,
        singularName: singular,
        namespaced,
        kind,
        verbs: readable,
        ...(shortNames.length === 0 || !isFirst ? {} : { shortNames }),
      };
    });
  }

  #take(copy: Copy): Use {
    copy.uses += 1;
    let taken = true;
    return {
      resource: copy.resource,
      release: () => {
        if (!taken) return;
        taken = false;
        copy.uses -= 1;
        copy.lastUsed = this.#clock.now();
      },
    };
  }

  #start(key: string, discovered: DiscoveredResource, definition: ResourceDefinition<unknown>): Copy {
    const { client, log, known, rights } = this.#options;
    known(discovered.resource);
    const share = this.#memory.share(nameOf(discovered));
    const interrupted = (cause?: Error) =>
      serviceUnavailable(`${nameOf(discovered)} cannot be watched any more; try again`, 1, cause);
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
          log.warn('a resource does not fit into memory', { resource: nameOf(discovered), bytes, error });
          this.#refuse(key, error as Error, error as Error);
          throw error;
        }
      },
      refused: refuse,
      doubted: () => right.refuse(),
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
    const copy: Copy = { resource: cached, discovered, share, uses: 0, lastUsed: this.#clock.now() };
    this.#copies.set(key, copy);
    cached.start();
    return copy;
  }

  /** Stops a copy, which `use` does not start again for a while: it throws `error`, or returns undefined if there is none. */
  #refuse(key: string, reason: Error, error: Error | undefined): void {
    const { maxBytes } = this.#options.limits();
    const life = error === undefined ? refusalLife : retryAfter * 1_000;
    this.#refused.set(key, { error, until: this.#clock.now() + life, maxBytes });
    this.#stop(key, reason);
  }

  #stop(key: string, reason: Error): void {
    const copy = this.#copies.get(key);
    if (copy === undefined) return;
    this.#copies.delete(key);
    copy.resource.stop(reason);
    copy.share.release();
    this.#options.log.info('a copy was given up', { resource: nameOf(copy.discovered), reason: reason.message });
  }

  /** What the cluster serves is something else now. */
  #changed(): void {
    for (const [key, { discovered }] of this.#copies) {
      const now = this.#options.discovery.find(discovered);
      if (now === undefined) this.#stop(key, noSuchPath(`the cluster serves no ${nameOf(discovered)} any more`));
      else if (!isSame(now, discovered))
        this.#stop(key, serviceUnavailable(`${nameOf(discovered)} was defined anew; try again`, 1));
    }
    for (const key of this.#refused.keys()) this.#refused.delete(key);
  }

  #sweep(): void {
    const longAgo = this.#clock.now() - this.#options.limits().idle;
    for (const [key, { uses, lastUsed }] of this.#copies)
      if (uses === 0 && lastUsed <= longAgo) this.#stop(key, new Error('nobody uses it'));
  }

  #dropOldest(): boolean {
    const [oldest] = [...this.#copies]
      .filter(([, { uses }]) => uses === 0)
      .toSorted(([, a], [, b]) => a.lastUsed - b.lastUsed);
    if (oldest === undefined) return false;
    this.#stop(oldest[0], new Error('others need the memory'));
    return true;
  }
}

const nameOf = ({ group, resource }: { readonly group: string; readonly resource: string }): string =>
  group === '' ? resource : `${resource}.${group}`;

const late = () => serviceUnavailable('what the cluster serves is not known yet', 1);

const isCacheable = (discovered: DiscoveredResource): boolean =>
  discovered.verbs.includes('list') &&
  discovered.verbs.includes('watch') &&
  !isOwn(discovered.group) &&
  !secret.has(idOf(discovered));

const isSame = (a: DiscoveredResource, b: DiscoveredResource): boolean =>
  a.revision === b.revision && a.kind === b.kind && a.namespaced === b.namespaced && isCacheable(a) === isCacheable(b);
