/**
 * What the cluster serves, kept current by aggregated discovery (apidiscovery.k8s.io). Names are resolved as kubectl does
 * (k8s.io/client-go restmapper): groups in the cluster's order of priority, in each the preferred version.
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
  /** '' is the core group. */
  readonly group: string;
  readonly version: string;
  /** Plural. */
  readonly resource: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  /** Of the CustomResourceDefinition behind it: with another one its objects may look different. '' if there is none. */
  readonly revision: string;
}

type Found = Omit<DiscoveredResource, 'revision'>;

interface GroupVersion {
  readonly group: string;
  readonly version: string;
  readonly resources: readonly Found[];
  /** Its server cannot be asked now. */
  readonly stale: boolean;
}

const refreshInterval = 60_000;
/** After a CustomResourceDefinition or an APIService changed, in milliseconds: kube-apiserver's own documents follow with a delay. */
const burst = [50, 250, 700, 2_000, 7_000];
/** kube-apiserver takes a changed definition in some time after it is written. */
const settleTime = 1_000;
const answerTime = 30_000;
const largestDocument = 64 * 1024 * 1024;

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const apiServices = '/apis/apiregistration.k8s.io/v1/apiservices';
const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

/** apidiscovery.k8s.io's APIGroupDiscoveryList, as far as it is read. */
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
  /** The document is sent only if it has changed. */
  readonly etag: string | undefined;
}

const nothing: Root = { groupVersions: [], etag: undefined };
const roots = ['/api', '/apis'] as const;

const ignore = (): void => undefined;

const keyOf = ({ group, version, resource }: Pick<Found, 'group' | 'version' | 'resource'>): string =>
  `${resource}.${version}.${group}`;

export class Discovery {
  /** What the cluster serves has changed. */
  readonly changed = new Topic();
  readonly #client: Pick<KubeClient, 'stream'>;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #stopped = new AbortController();
  readonly #reflectors: readonly Reflector<KubeObject>[];
  readonly #read = new Map<(typeof roots)[number], Root>();
  /** By `{plural}.{group}`. */
  readonly #revisions = new Map<string, string>();
  #resources: readonly DiscoveredResource[] = [];
  #byKey = new Map<string, DiscoveredResource>();
  #byPlural = new Map<string, DiscoveredResource[]>();
  #described = '';
  readonly #synced = new Synced();
  #refreshing: Promise<void> | undefined;
  #again = false;
  #step = burst.length;
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
          this.#soon();
        },
        apply: (type, object) => {
          apply(type, object);
          this.#soon();
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
    this.#soon(0);
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

  /** Resolves when both roots have been read; throws the signal's reason when that is aborted before. */
  waitForSync(signal: AbortSignal): Promise<void> {
    return this.#synced.wait(signal);
  }

  /** All, of the preferred group first, as an array that is another one after each change. */
  get resources(): readonly DiscoveredResource[] {
    return this.#resources;
  }

  /** `deployments`, `deployments.apps`, `deployments.v1.apps`, `pods.v1.`: undefined for what is not served. */
  resolve(name: string): DiscoveredResource | undefined {
    const candidates = this.#byPlural.get(name);
    if (candidates !== undefined) return candidates[0];
    const at = name.indexOf('.');
    if (at === -1) return undefined;
    const group = name.slice(at + 1);
    const explicit = this.#byKey.get(name);
    return explicit ?? this.#byPlural.get(name.slice(0, at))?.find((candidate) => candidate.group === group);
  }

  /** The same resource as it is served now. */
  find(resource: Pick<Found, 'group' | 'version' | 'resource'>): DiscoveredResource | undefined {
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

  /** Asks again and again for a while. */
  #soon(delay = burst[0] ?? 0): void {
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
      this.#again = true;
      return;
    }
    this.#refreshing = this.#readRoots();
    await this.#refreshing;
    this.#refreshing = undefined;
    if (this.#stopped.signal.aborted) return;
    const again = this.#again;
    this.#again = false;
    this.#schedule(again ? 0 : (burst[this.#step] ?? (this.#synced.done ? refreshInterval : 1_000)));
  }

  /** Never throws: what cannot be read stays as it was. */
  async #readRoots(): Promise<void> {
    for (const root of roots) {
      try {
        this.#read.set(root, await this.#root(root, this.#read.get(root) ?? nothing));
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        this.#log.warn('what the cluster serves cannot be asked', { path: root, error });
      }
    }
    this.#build();
  }

  async #root(path: (typeof roots)[number], before: Root): Promise<Root> {
    const { status, headers, body } = await this.#client.stream(path, {
      headers: { accept, ...(before.etag === undefined ? {} : { 'if-none-match': before.etag }) },
      signal: AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(answerTime)]),
    });
    const tooLarge = (): Error => new Error(`the response of ${path} is larger than ${largestDocument} bytes`);
    const text = (await readBody(body, largestDocument, tooLarge)).toString('utf8');
    if (status === 304) return before;
    if (status !== 200) throw KubeError.from(status, text);
    const document = JSON.parse(text) as Aggregated;
    if (document.kind !== 'APIGroupDiscoveryList') throw new Error(`expected an APIGroupDiscoveryList at ${path}`);
    const { etag } = headers;
    return {
      groupVersions: groupVersionsOf(document).map((one) => keepKnown(one, before)),
      etag: typeof etag === 'string' ? etag : undefined,
    };
  }

  #build(): void {
    if (this.#read.size < roots.length) return;
    const resources = roots
      .flatMap((root) => this.#read.get(root)?.groupVersions ?? [])
      .flatMap((groupVersion) => groupVersion.resources)
      .map((found) => ({ ...found, revision: this.#revisions.get(`${found.resource}.${found.group}`) ?? '' }));
    const described = JSON.stringify(resources);
    const changed = described !== this.#described;
    if (changed) {
      this.#described = described;
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
          // Some have subresources alone.
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

/** A server that cannot be asked now still serves what it served. */
function keepKnown(now: GroupVersion, { groupVersions }: Root): GroupVersion {
  if (!now.stale || now.resources.length > 0) return now;
  const before = groupVersions.find(({ group, version }) => group === now.group && version === now.version);
  return before === undefined ? now : { ...now, resources: before.resources };
}
