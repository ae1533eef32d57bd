/**
 * Serves uncached resources at /kapis (docs/reference/api.md). Each request reads the objects from kube-apiserver as
 * the caller, and supports the same filters, orders and pages as a read of cached resources. Watches are forwarded.
 */
import { holderOf } from '../auth/user.ts';
import { Slots } from '../runtime/slots.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { Store } from '../cluster/cache/store.ts';
import type { ListMemory } from '../cluster/catalogue/list-memory.ts';
import type { ResourceDefinition } from '../cluster/catalogue/resource.ts';
import { assertReached } from '../apimachinery/reading.ts';
import { kapisObjectParameters } from '../apimachinery/list/kapis-parameters.ts';
import { queriesOf, type KindQueries } from '../apimachinery/list/query.ts';
import { ResourceResponses } from '../apimachinery/list/resource-responses.ts';
import { visibleNamespaces, type ReadAccess } from '../apimachinery/visible-namespaces.ts';
import type { ReadHandlers, ReadRequest } from './read-request.ts';
import { forwardWatch } from './forwarded-watch.ts';
import { UncachedResource } from './uncached-resource.ts';

/** Returns the slots for forwarded watches. Each such watch has a dedicated connection to kube-apiserver. */
export const forwardedWatchSlots = (): Slots =>
  new Slots({ what: 'watches of resources that are not cached', total: 100, perUser: 25 });

export interface UncachedReadsOptions {
  readonly client: Pick<KubeClient, 'stream'>;
  readonly access: ReadAccess;
  readonly memory: ListMemory;
  /** Slots for forwarded watches, which all resources share. */
  readonly watches: Slots;
}

export class UncachedReads implements ReadHandlers {
  readonly #options: UncachedReadsOptions;
  readonly #resource: UncachedResource;
  readonly #queries: KindQueries<unknown>;
  readonly #responses: ResourceResponses<unknown>;

  constructor(definition: ResourceDefinition<unknown>, options: UncachedReadsOptions) {
    this.#options = options;
    this.#resource = new UncachedResource(definition, options.client);
    this.#queries = queriesOf(definition);
    this.#responses = new ResourceResponses(definition);
  }

  async collection(request: ReadRequest): Promise<void> {
    const { req, res, context, granted } = request;
    if (context.info.verb === 'watch') return this.#watch(request);
    const query = this.#queries.list.parse(context.query);
    const { resource } = this.#resource.definition.underlying;
    const share = this.#options.memory.share(holderOf(context.user), resource);
    try {
      const { scope, selected } = granted;
      // A list as the caller fails if the caller is not allowed to list one of the namespaces.
      const visible =
        scope.confirm === undefined
          ? scope.visible
          : await visibleNamespaces(this.#options.access, context, this.#resource.definition);
      const { objects, resourceVersion } = await this.#resource.list(context, visible, share);
      assertReached(query.oldest, resourceVersion);
      const once = new Store<unknown>();
      once.replace(objects, resourceVersion);
      const filters = [...selected, ...query.filters];
      await this.#responses.list(req, res, context, { ...query, filters }, { store: once, lasting: false });
    } finally {
      share.release();
    }
  }

  async object(request: ReadRequest): Promise<void> {
    const { req, res, context } = request;
    if (context.info.verb === 'watch') return this.#watch(request);
    const query = kapisObjectParameters.parse(context.query);
    await this.#responses.object(req, res, context, query, await this.#resource.get(context));
  }

  async #watch(request: ReadRequest): Promise<void> {
    const { watches, access } = this.#options;
    const freeSlot = watches.take(holderOf(request.context.user));
    try {
      const query = this.#queries.watch.parse(request.context.query);
      await forwardWatch(request, query, { resource: this.#resource, access, view: this.#responses.view(query) });
    } finally {
      freeSlot();
    }
  }
}
