/** `/kapis/{group}/{version}/{resource}[/{name}]`: the list language of the platform over the objects of the core API. */
import type { Request, Response } from 'express';
import { rechecking } from '../auth/authorizers/authorizer.ts';
import { copied } from '../runtime/bounded-cache.ts';
import { badRequest, expired, notFound, serviceUnavailable } from '../runtime/errors.ts';
import { negotiate } from '../http/request/negotiate.ts';
import type { Handler, RequestContext } from '../http/route.ts';
import { parseOldest, parseWatchOptions } from '../apimachinery/list/list-options.ts';
import {
  among,
  parseListQuery,
  parseObjectQuery,
  parseWatchQuery,
  shared,
  type ObjectFilter,
} from '../apimachinery/list/query.ts';
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
import { followSelecting, sameSelection, selectedBy } from './selected-by.ts';
import { eventStream, watchDuration } from '../apimachinery/watch/response.ts';
import type { Lanes } from '../apimachinery/watch/lanes.ts';
import { Watches } from '../apimachinery/watch/watches.ts';

const json = 'application/json';

/** Throws 400 for what is none of ours. */
export function lastEventID({ headers }: Request): number | undefined {
  const id = headers['last-event-id'];
  if (id === undefined || id === '') return undefined;
  if (typeof id === 'string' && /^\d{1,15}$/.test(id)) return Number(id);
  throw badRequest('Last-Event-ID must be the id of an event of this watch, which is a resourceVersion');
}

/** What was found out about a request before it is served. */
export interface Judged {
  readonly mediaType: string;
  /** Whose objects the caller may be shown. */
  readonly visible: Visible;
  /** What other resources select of them. */
  readonly selected: readonly ObjectFilter<unknown>[];
}

export type Serve = (judged: Judged, ...request: Parameters<Handler>) => Promise<void>;

export interface KapisHandlers {
  readonly collection: Serve;
  readonly object: Serve;
}

/** The caller's media type and rights, before anything else is looked at. Throws 406 and 403. */
export async function judge(
  access: ReadAccess,
  definition: ResourceDefinition<unknown>,
  ...[{ headers }, , context]: Parameters<Handler>
): Promise<Judged> {
  const isWatch = context.info.verb === 'watch';
  const offered = isWatch ? [json, eventStream] : [json];
  const words = isWatch ? offered : [json, `with watch=true also ${eventStream}`];
  const mediaType = negotiate(headers.accept, offered, (type) => type, words);
  const visible = await visibleNamespaces(access, context, definition);
  return { mediaType, visible, selected: await selectedBy(access, definition, context) };
}

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
  selected: readonly ObjectFilter<unknown>[],
  [, res, context]: Parameters<Handler>,
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

export function kapisHandlers<F>(resource: Resource<F>, access: ReadAccess, lanes: Lanes): KapisHandlers {
  const { definition, store, ended } = resource;
  const answers = new ResourceResponses(definition);
  const watches = new Watches(store);
  const recheckAccess = { ...access, authorizer: rechecking(access.authorizer) };
  const notReady = (): Error & ReturnType<typeof serviceUnavailable> =>
    serviceUnavailable(`the copy of ${definition.underlying.resource} is not complete yet`, 1);

  async function watch(
    { mediaType, visible, selected }: Judged,
    ...[req, res, context]: Parameters<Handler>
  ): Promise<void> {
    // First what is no parameter of a watch here.
    const query = parseWatchQuery(context.query, definition);
    const options = parseWatchOptions(context.query);
    const scope = scopeFilters(definition, context.info, visible);
    await synced(resource, context, notReady);
    const { resourceVersion, sendInitialEvents, allowWatchBookmarks, timeoutSeconds } = options;
    if (sendInitialEvents) await reached(resource, resourceVersion, context);
    const serverSentEvents = mediaType === eventStream;
    // A client of server-sent events comes again with the same URL, and says beside it where it was.
    const resumed = serverSentEvents ? lastEventID(req) : undefined;
    const wholeState = resumed === undefined && sendInitialEvents;
    const from = resumed ?? (typeof resourceVersion === 'number' && !sendInitialEvents ? resourceVersion : undefined);
    await recalled(resource, from, context);
    const view = answers.view(query);
    const selection = await followSelection(access, definition, selected, [req, res, context]);
    const filters = [...scope, ...selected, ...query.filters];
    const user = context.user?.username ?? '';
    const lookUps = filters.filter(({ isLookUp }) => isLookUp === true).length;
    if (lookUps > 0) onClosed(res, lanes.lookUps.take(user, lookUps));
    watches.serve(req, res, {
      from,
      initialEvents: wholeState,
      initialEventsEnd: wholeState && allowWatchBookmarks,
      bookmarks: allowWatchBookmarks,
      serverSentEvents,
      isResumed: resumed !== undefined,
      duration: watchDuration(timeoutSeconds),
      filters,
      inLane: lookUps === 0 ? undefined : (step) => lanes.run(user, step),
      view,
      firstView: view,
      recheck: async () => {
        if (!sameNamespaces(visible, await visibleNamespaces(recheckAccess, context, definition)))
          throw expired('the namespaces that you may watch are others now: list again');
        await selection.check(recheckAccess);
      },
      onRecheck: (...guard) => context.onRecheck(...guard),
      outdated: selection.outdated,
      signal: ended === undefined ? context.signal : AbortSignal.any([context.signal, ended]),
      log: context.log,
    });
  }

  return {
    async collection(judged, req, res, context) {
      if (context.info.verb === 'watch') return watch(judged, req, res, context);
      const query = parseListQuery(context.query, definition);
      const oldest = parseOldest(context.query);
      await synced(resource, context, notReady);
      await reached(resource, oldest, context);
      // A list that selects one name needs no more than the right to it; the selector stands in the query.
      const scope = [...scopeFilters(definition, { ...context.info, name: '' }, judged.visible), ...judged.selected];
      const seen = scope.length === 0 ? query : { ...query, filters: [...scope, ...query.filters] };
      await answers.list(req, res, context, seen, { store, lasting: true });
    },
    async object(judged, req, res, context) {
      if (context.info.verb === 'watch') return watch(judged, req, res, context);
      const query = parseObjectQuery(context.query);
      await synced(resource, context, notReady);
      const { namespace, name } = context.info;
      // A namespace is said to be in itself (requestinfo.go).
      const object = store.get(definition.namespaced ? namespace : '', name);
      if (object === undefined) throw notFound(definition.underlying, name);
      await answers.object(req, res, context, query, object);
    },
  };
}
