/** Reads of cached resources at /kapis (docs/api.md). UncachedReads serves the others. */
import type { Response } from 'express';
import { rechecking } from '../auth/authorizers/authorizer.ts';
import { copied } from '../runtime/bounded-cache.ts';
import { expired, notFound, serviceUnavailable } from '../runtime/errors.ts';
import type { RequestContext } from '../http/route.ts';
import { among, shared, type ObjectFilter } from '../apimachinery/list/filters.ts';
import type { WatchOptions } from '../apimachinery/list/list-options.ts';
import { kapisObjectParameters } from '../apimachinery/list/kapis-parameters.ts';
import { queriesOf, type KindQueries } from '../apimachinery/list/query.ts';
import { ResourceResponses } from '../apimachinery/list/resource-responses.ts';
import { reached, recalled } from '../apimachinery/reading.ts';
import { synced } from '../cluster/catalogue/waiting.ts';
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

/** Of the objects that the path is about, and of those that the caller may see. */
function scopeFilters<F>(
  { namespaced }: ResourceDefinition<F>,
  info: Pick<RequestContext['info'], 'namespace' | 'name'>,
  visible: Visible,
): readonly ObjectFilter<F>[] {
  // A selection may be kept, and must not keep the URL.
  const namespace = copied(info.namespace);
  const name = copied(info.name);
  const filters: ObjectFilter<F>[] = [];
  const inOne = (namespaces: readonly string[], passes: ObjectFilter<F>): ObjectFilter<F> =>
    shared(`namespaces=${JSON.stringify(namespaces)}`, passes, among(namespaced ? 'namespace' : 'name', namespaces));
  if (namespaced && namespace !== '') filters.push(inOne([namespace], (object) => object.namespace === namespace));
  else if (visible !== undefined)
    filters.push(inOne([...visible].toSorted(), (object) => visible.has(namespaced ? object.namespace : object.name)));
  if (name !== '') filters.push(shared(`object=${name}`, (object) => object.name === name, among('name', [name])));
  return filters;
}

/** Calls `release` when the response is over. */
function onClosed(res: Response, release: () => void): void {
  if (res.closed) release();
  else res.once('close', release);
}

/** `outdated` is aborted when what selects the objects of the request selects others; `check` looks whether it does. */
async function followSelection(
  access: ReadAccess,
  definition: ResourceDefinition<unknown>,
  { res, context, granted: { selected } }: ReadRequest,
): Promise<{ readonly outdated: AbortSignal; readonly check: (access: ReadAccess) => Promise<void> }> {
  const outdated = new AbortController();
  const end = (): void => outdated.abort(expired('what selects these objects selects others now: list again'));
  const check = async (by: ReadAccess): Promise<void> => {
    if (!sameSelection(selected, await selectedBy(by, definition, context))) end();
  };
  // The changed object may be in a namespace that the caller is not allowed to see.
  const changed = (): void => void check(access).catch(end);
  onClosed(res, await followSelecting(access, definition, context, { changed, lost: end }));
  await check(access);
  return { outdated: outdated.signal, check };
}

/** Reads of a resource that is cached. */
export class CachedReads<F> implements ReadHandlers {
  readonly #resource: Resource<F>;
  readonly #access: ReadAccess;
  readonly #recheckAccess: ReadAccess;
  readonly #lanes: Lanes;
  readonly #queries: KindQueries<F>;
  readonly #responses: ResourceResponses<F>;
  readonly #watches: Watches<F>;

  constructor(resource: Resource<F>, access: ReadAccess, lanes: Lanes) {
    this.#resource = resource;
    this.#access = access;
    this.#recheckAccess = { ...access, authorizer: rechecking(access.authorizer) };
    this.#lanes = lanes;
    this.#queries = queriesOf(resource.definition);
    this.#responses = new ResourceResponses(resource.definition);
    this.#watches = new Watches(resource.store);
  }

  async collection(request: ReadRequest): Promise<void> {
    const { req, res, context, granted } = request;
    if (context.info.verb === 'watch') return this.#watch(request);
    const { definition, store } = this.#resource;
    const query = this.#queries.list.parse(context.query);
    await this.#synced(context);
    await reached(this.#resource, query.oldest, context);
    // A list that selects one name needs no more than the right to it; the selector is in the query.
    const scope = [...scopeFilters(definition, { ...context.info, name: '' }, granted.visible), ...granted.selected];
    const scoped = scope.length === 0 ? query : { ...query, filters: [...scope, ...query.filters] };
    await this.#responses.list(req, res, context, scoped, { store, lasting: true });
  }

  async object(request: ReadRequest): Promise<void> {
    const { req, res, context } = request;
    if (context.info.verb === 'watch') return this.#watch(request);
    const { definition, store } = this.#resource;
    const query = kapisObjectParameters.parse(context.query);
    await this.#synced(context);
    const { namespace, name } = context.info;
    // A namespace is said to be in itself (requestinfo.go).
    const object = store.get(definition.namespaced ? namespace : '', name);
    if (object === undefined) throw notFound(definition.underlying, name);
    await this.#responses.object(req, res, context, query, object);
  }

  #synced(context: RequestContext): Promise<void> {
    const { resource } = this.#resource.definition.underlying;
    return synced(this.#resource, context, () => serviceUnavailable(`the copy of ${resource} is not complete yet`, 1));
  }

  async #watch(request: ReadRequest): Promise<void> {
    const { req, res, context, granted } = request;
    const { definition, ended } = this.#resource;
    const query = this.#queries.watch.parse(context.query);
    const scope = scopeFilters(definition, context.info, granted.visible);
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
        if (!sameNamespaces(granted.visible, visible))
          throw expired('the namespaces that you may watch are others now: list again');
        await selection.check(this.#recheckAccess);
      },
      onRecheck: (...guard) => context.onRecheck(...guard),
      outdated: selection.outdated,
      signal: ended === undefined ? context.signal : AbortSignal.any([context.signal, ended]),
      log: context.log,
    });
  }

  /** Where a watch starts, once that is known to be possible, and what is sent at first. */
  async #startOf(
    { req, context, granted: { mediaType } }: ReadRequest,
    { resourceVersion, sendInitialEvents, allowWatchBookmarks }: WatchOptions,
  ): Promise<
    Pick<
      WatchRequest<F>,
      'from' | 'initialEvents' | 'initialEventsEnd' | 'bookmarks' | 'serverSentEvents' | 'isResumed'
    >
  > {
    if (sendInitialEvents) await reached(this.#resource, resourceVersion, context);
    const serverSentEvents = mediaType === eventStream;
    // A client of server-sent events comes again with the same URL, and says beside it where it was.
    const resumed = serverSentEvents ? lastEventID(req) : undefined;
    const initialEvents = resumed === undefined && sendInitialEvents;
    const from = resumed ?? (typeof resourceVersion === 'number' && !sendInitialEvents ? resourceVersion : undefined);
    await recalled(this.#resource, from, context);
    return {
      from,
      initialEvents,
      initialEventsEnd: initialEvents && allowWatchBookmarks,
      bookmarks: allowWatchBookmarks,
      serverSentEvents,
      isResumed: resumed !== undefined,
    };
  }

  /** Filters that look for values in the objects' bytes take turns with those of others. */
  #laneOf({ res, context: { user } }: ReadRequest, filters: readonly ObjectFilter<F>[]): WatchRequest<F>['inLane'] {
    const lookUps = filters.filter(({ isLookUp }) => isLookUp === true).length;
    if (lookUps === 0) return undefined;
    const lanes = this.#lanes;
    onClosed(res, lanes.lookUps.take(user.username, lookUps));
    return (step) => lanes.run(user.username, step);
  }
}
