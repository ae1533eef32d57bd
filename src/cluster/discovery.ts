/**
 * Resources that the cluster serves, kept current by aggregated discovery (apidiscovery.k8s.io). Names are resolved as
 * in kubectl (k8s.io/client-go restmapper): groups in the cluster's order of priority, and the preferred version within
 * each group.
 */
import { Topic } from '../runtime/lifecycle.ts';
import type { Logger } from '../runtime/logger.ts';
import type { KubeClient } from './client/client.ts';
import type { Clock } from '../runtime/time.ts';
import { KubeError } from './client/kube-error.ts';
import type { KubeObject } from './client/kube-object.ts';
import { readBody } from '../runtime/promises.ts';
import { Reflector } from './cache/reflector.ts';
import { Synced } from './cache/synced.ts';

export interface DiscoveredResource {
  /** API group; '' is the core group. */
  readonly group: string;
  readonly version: string;
  /** Plural name of the resource. */
  readonly resource: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  /**
   * Revision of the CustomResourceDefinition; '' if there is none. When the revision changes, the schema of the objects
   * may have changed.
   */
  readonly revision: string;
}

type ServedResource = Omit<DiscoveredResource, 'revision'>;

interface GroupVersion {
  readonly group: string;
  readonly version: string;
  readonly resources: readonly ServedResource[];
  /** True if the aggregated API server of the group is unavailable. */
  readonly stale: boolean;
}

const refreshInterval = 60_000;
/**
 * Delays in milliseconds of the refreshes after a CustomResourceDefinition or an APIService has changed. Several
 * refreshes are needed, because kube-apiserver updates its discovery documents with a delay.
 */
const refreshDelays = [50, 250, 700, 2_000, 7_000];
/** Milliseconds until kube-apiserver applies a changed CustomResourceDefinition. */
const settleTime = 1_000;
const requestTimeout = 30_000;
const maxDocument = 64 * 1024 * 1024;

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const apiServices = '/apis/apiregistration.k8s.io/v1/apiservices';
const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

/** The fields of apidiscovery.k8s.io APIGroupDiscoveryList that are used. */
interface Aggregated {
  readonly kind?: string;
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string };
    readonly versions?: readonly {
      readonly version: string;
      readonly freshness?: string;
      readonly resources?: readonly {
        readonly resource: string;
        readonly responseKind?: { readonly kind?: string };
        readonly scope?: string;
        readonly singularResource?: string;
        readonly shortNames?: readonly string[];
        readonly verbs?: readonly string[];
      }[];
    }[];
  }[];
}

interface Root {
  readonly groupVersions: readonly GroupVersion[];
  /** Entity tag, sent with the next request, so that an unchanged document is not transferred again. */
  readonly etag: string | undefined;
}

const emptyRoot: Root = { groupVersions: [], etag: undefined };
const roots = ['/api', '/apis'] as const;

const ignore = (): void => undefined;

const keyOf = ({ group, version, resource }: Pick<ServedResource, 'group' | 'version' | 'resource'>): string =>
  `${resource}.${version}.${group}`;

export class Discovery {
  /** Signals that the resources have changed. */
  readonly changed = new Topic();
  readonly #client: Pick<KubeClient, 'stream'>;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #stopped = new AbortController();
  readonly #reflectors: readonly Reflector<KubeObject>[];
  readonly #read = new Map<(typeof roots)[number], Root>();
  /** Revisions of the CustomResourceDefinitions, by `{plural}.{group}`. */
  readonly #revisions = new Map<string, string>();
  #resources: readonly DiscoveredResource[] = [];
  #byKey = new Map<string, DiscoveredResource>();
  #byPlural = new Map<string, DiscoveredResource[]>();
  /** `#resources` as JSON, to detect changes. */
  #serialized = '';
  readonly #synced = new Synced();
  #refreshing: Promise<void> | undefined;
  #isRefreshRequested = false;
  #step = refreshDelays.length;
  #cancel: (() => void) | undefined;

  constructor({ client, log, clock }: { client: Pick<KubeClient, 'stream'>; log: Logger; clock: Clock }) {
    this.#client = client;
    this.#log = log;
    this.#clock = clock;
    const follow = (
      path: string,
      replace: (objects: readonly KubeObject[]) => void,
      apply: (type: string, object: KubeObject) => void,
    ) => {
      return new Reflector<KubeObject>({
        client,
        path,
        log,
        clock,
        metadataOnly: true,
        decode: ({ metadata: { name, uid, generation } }) => ({
          metadata: { name, uid: uid ?? '', generation: generation ?? 0 },
        }),
        replace: (items) => {
          replace(items);
          this.#startRefreshes();
        },
        apply: (type, object) => {
          apply(type, object);
          this.#startRefreshes();
        },
      });
    };
    this.#reflectors = [
      follow(
        definitions,
        (objects) => this.#replaceDefinitions(objects),
        (type, object) => this.#define(type, object),
      ),
      follow(apiServices, ignore, ignore),
    ];
  }

  start(): void {
    this.#startRefreshes(0);
    for (const reflector of this.#reflectors) reflector.start();
  }

  stop(): void {
    this.#stopped.abort();
    this.#cancel?.();
    for (const reflector of this.#reflectors) reflector.stop();
  }

  hasSynced(): boolean {
    return this.#synced.done;
  }

  /** Resolves when both roots have been read. Throws the signal's reason if the signal is aborted first. */
  waitForSync(signal: AbortSignal): Promise<void> {
    return this.#synced.wait(signal);
  }

  /** All resources, preferred groups first. Each change creates a new array. */
  get resources(): readonly DiscoveredResource[] {
    return this.#resources;
  }

  /**
   * Resolves `deployments`, `deployments.apps`, `deployments.v1.apps` and `pods.v1.`. Returns undefined for resources
   * that are not served.
   */
  resolve(name: string): DiscoveredResource | undefined {
    const candidates = this.#byPlural.get(name);
    if (candidates !== undefined) return candidates[0];
    const at = name.indexOf('.');
    if (at === -1) return undefined;
    const group = name.slice(at + 1);
    const explicit = this.#byKey.get(name);
    return explicit ?? this.#byPlural.get(name.slice(0, at))?.find((candidate) => candidate.group === group);
  }

  /** Returns the resource as it is served now, or undefined if it is no longer served. */
  find(resource: Pick<ServedResource, 'group' | 'version' | 'resource'>): DiscoveredResource | undefined {
    return this.#byKey.get(keyOf(resource));
  }

  #replaceDefinitions(objects: readonly KubeObject[]): void {
    const names = new Set(objects.map(({ metadata }) => metadata.name));
    for (const name of this.#revisions.keys()) if (!names.has(name)) this.#revisions.delete(name);
    for (const object of objects) this.#define('ADDED', object);
  }

  #define(type: string, { metadata: { name, uid, generation } }: KubeObject): void {
    const before = this.#revisions.get(name);
    const revision = `${uid}/${generation}`;
    if (type === 'DELETED') this.#revisions.delete(name);
    else if (before === undefined) this.#revisions.set(name, revision);
    else if (before !== revision)
      this.#clock.after(settleTime, () => {
        if (this.#stopped.signal.aborted || !this.#revisions.has(name)) return;
        this.#revisions.set(name, revision);
        this.#build();
      });
  }

  /** Starts a series of refreshes. */
  #startRefreshes(delay = refreshDelays[0] ?? 0): void {
    if (this.#stopped.signal.aborted) return;
    this.#step = 0;
    this.#schedule(delay);
  }

  #schedule(delay: number): void {
    this.#cancel?.();
    this.#cancel = this.#clock.after(delay, () => {
      this.#step += 1;
      void this.#refresh();
    });
  }

  async #refresh(): Promise<void> {
    if (this.#refreshing !== undefined) {
      this.#isRefreshRequested = true;
      return;
    }
    this.#refreshing = this.#readRoots();
    await this.#refreshing;
    this.#refreshing = undefined;
    if (this.#stopped.signal.aborted) return;
    const isRequested = this.#isRefreshRequested;
    this.#isRefreshRequested = false;
    this.#schedule(isRequested ? 0 : (refreshDelays[this.#step] ?? (this.#synced.done ? refreshInterval : 1_000)));
  }

  /** Reads both roots. If a root cannot be read, its known resources are kept. */
  async #readRoots(): Promise<void> {
    for (const root of roots) {
      try {
        this.#read.set(root, await this.#root(root, this.#read.get(root) ?? emptyRoot));
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        this.#log.warn('API discovery failed', { path: root, error });
      }
    }
    this.#build();
  }

  async #root(path: (typeof roots)[number], before: Root): Promise<Root> {
    const { status, headers, body } = await this.#client.stream(path, {
      headers: { accept, ...(before.etag === undefined ? {} : { 'if-none-match': before.etag }) },
      signal: AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(requestTimeout)]),
    });
    const tooLarge = (): Error => new Error(`the response of ${path} is larger than ${maxDocument} bytes`);
    const text = (await readBody(body, maxDocument, tooLarge)).toString('utf8');
    if (status === 304) return before;
    if (status !== 200) throw KubeError.from(status, text);
    const document = JSON.parse(text) as Aggregated;
    if (document.kind !== 'APIGroupDiscoveryList') throw new Error(`expected an APIGroupDiscoveryList at ${path}`);
    const { etag } = headers;
    return {
      groupVersions: groupVersionsOf(document).map((current) => keepKnown(current, before)),
      etag: typeof etag === 'string' ? etag : undefined,
    };
  }

  #build(): void {
    if (this.#read.size < roots.length) return;
    const resources = roots
      .flatMap((root) => this.#read.get(root)?.groupVersions ?? [])
      .flatMap((groupVersion) => groupVersion.resources)
      .map((served) => ({ ...served, revision: this.#revisions.get(`${served.resource}.${served.group}`) ?? '' }));
    const serialized = JSON.stringify(resources);
    const changed = serialized !== this.#serialized;
    if (changed) {
      this.#serialized = serialized;
      this.#resources = resources;
      this.#byKey = new Map(resources.map((resource) => [keyOf(resource), resource]));
      this.#byPlural = Map.groupBy(resources, ({ resource }) => resource);
    }
    this.#synced.set();
    if (changed) this.changed.publish();
  }
}

function groupVersionsOf({ items = [] }: Aggregated): GroupVersion[] {
  return items.flatMap(({ metadata, versions = [] }) =>
    versions.map(({ version, freshness, resources = [] }): GroupVersion => {
      const group = metadata?.name ?? '';
      return {
        group,
        version,
        stale: freshness === 'Stale',
        resources: resources
          // An entry without a kind has only subresources.
          .filter(({ responseKind }) => (responseKind?.kind ?? '') !== '')
          .map(({ resource, responseKind, scope, singularResource, shortNames = [], verbs = [] }) => ({
            group,
            version,
            resource,
            singular: singularResource || (responseKind?.kind ?? '').toLowerCase(),
            shortNames,
            kind: responseKind?.kind ?? '',
            namespaced: scope === 'Namespaced',
            verbs,
          })),
      };
    }),
  );
}

/** Keeps the known resources of a group whose API server is unavailable. */
function keepKnown(current: GroupVersion, { groupVersions }: Root): GroupVersion {
  if (!current.stale || current.resources.length > 0) return current;
  const before = groupVersions.find(({ group, version }) => group === current.group && version === current.version);
  return before === undefined ? current : { ...current, resources: before.resources };
}
