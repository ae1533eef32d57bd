/** Serves cached resources at /kapis (docs/reference/api.md). UncachedReads serves all other resources. */
import { hash } from 'node:crypto';
import type { Response } from 'express';
import { rechecking } from '../auth/authorizers/authorizer.ts';
import { copied } from '../runtime/bounded-cache.ts';
import { expired, notFound, serviceUnavailable } from '../runtime/errors.ts';
import type { RequestContext } from '../http/route.ts';
import { inIndex, sharedFilter, type ObjectFilter } from '../apimachinery/list/filters.ts';
import type { WatchOptions } from '../apimachinery/list/list-options.ts';
import { memoizedParser } from '../http/request/parameters.ts';
import { kapisObjectParameters } from '../apimachinery/list/kapis-parameters.ts';
import { pageOf, queriesOf, type KindQueries, type ListQuery } from '../apimachinery/list/query.ts';
import { ResourceResponses } from '../apimachinery/list/resource-responses.ts';
import { waitForHistory, waitForVersion } from '../apimachinery/reading.ts';
import { waitForSync } from '../cluster/catalogue/waiting.ts';
import type { Resource, ResourceDefinition } from '../cluster/catalogue/resource.ts';
import {
  sameNamespaces,
  visibleNamespaces,
  type ReadAccess,
  type Visible,
} from '../apimachinery/visible-namespaces.ts';
import { lastEventID, type ReadHandlers, type ReadRequest } from './read-request.ts';
import { followSelecting, sameSelection, selectedBy } from './selected-by.ts';
import { eventStream, watchDuration } from '../apimachinery/watch/response.ts';
import type { Lanes } from '../apimachinery/watch/lanes.ts';
import type { WatchRequest } from '../apimachinery/watch/watch.ts';
import { Watches } from '../apimachinery/watch/watches.ts';

/** Maximum length of a list of namespaces that is part of a key. Longer lists are replaced by their digest. */
const maxListLength = 256;

/** Returns a filter for the objects whose namespace, or whose name, is in the set. */
function isIn(property: 'namespace' | 'name', names: ReadonlySet<string>): ObjectFilter<unknown> {
  const sorted = [...names].toSorted();
  const list = JSON.stringify(sorted);
  const key = list.length > maxListLength ? hash('sha256', list) : list;
  return sharedFilter(`namespaces=${key}`, (object) => names.has(object[property]), inIndex(property, sorted));
}

/** Filters by the set of visible namespaces. Many requests use the same set, and each set is of one resource. */
const visibleFilters = new WeakMap<ReadonlySet<string>, ObjectFilter<unknown>>();

function isVisible(property: 'namespace' | 'name', visible: ReadonlySet<string>): ObjectFilter<unknown> {
  let filter = visibleFilters.get(visible);
  if (filter === undefined) visibleFilters.set(visible, (filter = isIn(property, visible)));
  return filter;
}

/** Returns filters for the path of the request and for the objects that the caller is allowed to see. */
function scopeFilters<F>(
  { namespaced }: ResourceDefinition<F>,
  info: Pick<RequestContext['info'], 'namespace' | 'name'>,
  visible: Visible,
): readonly ObjectFilter<F>[] {
  // The name is copied, because selections are cached and a substring would keep the whole URL in memory.
  const namespace = copied(info.namespace);
  const name = copied(info.name);
  const filters: ObjectFilter<F>[] = [];
  if (namespaced && namespace !== '') filters.push(isIn('namespace', new Set([namespace])));
  else if (visible !== undefined) filters.push(isVisible(namespaced ? 'namespace' : 'name', visible));
  if (name !== '')
    filters.push(sharedFilter(`object=${name}`, (object) => object.name === name, inIndex('name', [name])));
  return filters;
}

/** Calls `release` when the response is closed. */
function onClosed(res: Response, release: () => void): void {
  if (res.closed) release();
  else res.once('close', release);
}

/**
 * Follows the objects, such as a Service, that select the objects of the request. `outdated` is aborted when the
 * selection changes. `check` looks up the selection, and aborts `outdated` if the selection has changed.
 */
async function followSelection(
  access: ReadAccess,
  definition: ResourceDefinition<unknown>,
  { res, context, granted: { selected } }: ReadRequest,
): Promise<{ readonly outdated: AbortSignal; readonly check: (access: ReadAccess) => Promise<void> }> {
  const outdated = new AbortController();
  const end = (): void => outdated.abort(expired('the selector of these objects has changed: list again'));
  const check = async (current: ReadAccess): Promise<void> => {
    if (!sameSelection(selected, await selectedBy(current, definition, context))) end();
  };
  // The changed object may be in a namespace that the caller is not allowed to see.
  const changed = (): void => void check(access).catch(end);
  onClosed(res, await followSelecting(access, definition, context, { changed, lost: end }));
  await check(access);
  return { outdated: outdated.signal, check };
}

export class CachedReads<F> implements ReadHandlers {
  readonly #resource: Resource<F>;
  readonly #access: ReadAccess;
  readonly #recheckAccess: ReadAccess;
  readonly #lanes: Lanes;
  readonly #queries: KindQueries<F>;
  readonly #parseList: (query: URLSearchParams) => ListQuery<F>;
  readonly #responses: ResourceResponses<F>;
  readonly #watches: Watches<F>;

  constructor(resource: Resource<F>, access: ReadAccess, lanes: Lanes) {
    this.#resource = resource;
    this.#access = access;
    this.#recheckAccess = { ...access, authorizer: rechecking(access.authorizer) };
    this.#lanes = lanes;
    this.#queries = queriesOf(resource.definition);
    this.#parseList = memoizedParser(this.#queries.list);
    this.#responses = new ResourceResponses(resource.definition);
    this.#watches = new Watches(resource.store);
  }

  async collection(request: ReadRequest): Promise<void> {
    const { req, res, context } = request;
    if (context.info.verb === 'watch') return this.#watch(request);
    const { store } = this.#resource;
    const query = this.#parseList(context.query);
    await this.#synced(context);
    await waitForVersion(this.#resource, query.oldest, context);
    const { scoped, page } = await this.#visiblePage(request, query);
    await this.#responses.page(req, res, context, scoped, { store, lasting: true }, page);
  }

  /** Returns the requested page of the visible objects, and the query with the filters for these objects. */
  async #visiblePage({ context, granted }: ReadRequest, query: ListQuery<F>) {
    const { definition, store } = this.#resource;
    const { scope, selected } = granted;
    // A list that is limited to one name requires only the right to that name. The selector is part of the query, so
    // the scope filters contain no name.
    const info = { ...context.info, name: '' };
    for (;;) {
      const filters = [...scopeFilters(definition, info, scope.visible), ...selected];
      const scoped = filters.length === 0 ? query : { ...query, filters: [...filters, ...query.filters] };
      const page = await pageOf(store, scoped, context);
      if (scope.confirm === undefined) return { scoped, page };
      const property = definition.namespaced ? 'namespace' : 'name';
      if (await scope.confirm(new Set(page.objects.map((object) => object[property])))) return { scoped, page };
    }
  }

  async object(request: ReadRequest): Promise<void> {
    const { req, res, context } = request;
    if (context.info.verb === 'watch') return this.#watch(request);
    const { definition, store } = this.#resource;
    const query = kapisObjectParameters.parse(context.query);
    await this.#synced(context);
    const { namespace, name } = context.info;
    // For namespaces, the request info contains the name also as the namespace (requestinfo.go).
    const object = store.get(definition.namespaced ? namespace : '', name);
    if (object === undefined) throw notFound(definition.underlying, name);
    await this.#responses.object(req, res, context, query, object);
  }

  #synced(context: RequestContext): Promise<void> {
    const { resource } = this.#resource.definition.underlying;
    return waitForSync(this.#resource, context, () =>
      serviceUnavailable(`the cache of ${resource} is not ready yet`, 1),
    );
  }

  async #watch(request: ReadRequest): Promise<void> {
    const { req, res, context, granted } = request;
    const { definition, ended } = this.#resource;
    const query = this.#queries.watch.parse(context.query);
    const scope = scopeFilters(definition, context.info, granted.scope.visible);
    await this.#synced(context);
    const start = await this.#startOf(request, query.options);
    const view = this.#responses.view(query);
    const selection = await followSelection(this.#access, definition, request);
    const filters = [...scope, ...granted.selected, ...query.filters];
    this.#watches.serve(req, res, {
      ...start,
      duration: watchDuration(query.options.timeoutSeconds),
      filters,
      inLane: this.#laneOf(request, filters),
      view,
      firstView: view,
      recheck: async () => {
        const visible = await visibleNamespaces(this.#recheckAccess, context, definition);
        if (!sameNamespaces(granted.scope.visible, visible))
          throw expired('the namespaces that you are allowed to watch have changed: list again');
        await selection.check(this.#recheckAccess);
      },
      onRecheck: (...guard) => context.onRecheck(...guard),
      outdated: selection.outdated,
      signal: ended === undefined ? context.signal : AbortSignal.any([context.signal, ended]),
      log: context.log,
    });
  }

  /** Returns the start of a watch and its first events. Throws if the watch cannot start at the requested version. */
  async #startOf(
    { req, context, granted: { mediaType } }: ReadRequest,
    { resourceVersion, sendInitialEvents, allowWatchBookmarks }: WatchOptions,
  ): Promise<
    Pick<
      WatchRequest<F>,
      'from' | 'initialEvents' | 'initialEventsEnd' | 'bookmarks' | 'serverSentEvents' | 'isResumed'
    >
  > {
    if (sendInitialEvents) await waitForVersion(this.#resource, resourceVersion, context);
    const serverSentEvents = mediaType === eventStream;
    // A client of server-sent events reconnects with the same URL and the header Last-Event-ID.
    const resumed = serverSentEvents ? lastEventID(req) : undefined;
    const initialEvents = resumed === undefined && sendInitialEvents;
    const from = resumed ?? (typeof resourceVersion === 'number' && !sendInitialEvents ? resourceVersion : undefined);
    await waitForHistory(this.#resource, from, context);
    return {
      from,
      initialEvents,
      initialEventsEnd: initialEvents && allowWatchBookmarks,
      bookmarks: allowWatchBookmarks,
      serverSentEvents,
      isResumed: resumed !== undefined,
    };
  }

  /** Schedules filters that search the bytes of objects fairly among users. */
  #laneOf({ res, context: { user } }: ReadRequest, filters: readonly ObjectFilter<F>[]): WatchRequest<F>['inLane'] {
    const lookUps = filters.filter(({ isLookUp }) => isLookUp === true).length;
    if (lookUps === 0) return undefined;
    const lanes = this.#lanes;
    onClosed(res, lanes.lookUps.take(user.username, lookUps));
    return (step) => lanes.run(user.username, step);
  }
}
