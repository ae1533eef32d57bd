/** `/kapis/{group}/{version}/{resource}[/{name}]`: the list language of the platform over the objects of the core API. */
import type { Request } from 'express';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import { badRequest, notFound, serviceUnavailable } from '../errors.ts';
import { negotiate } from '../http/negotiate.ts';
import { prettyJson } from '../http/pretty.ts';
import type { Handler } from '../http/route.ts';
import { write } from '../http/write.ts';
import { parseWatchOptions } from './list-options.ts';
import { pageOf, parseGetQuery, parseListQuery, parseWatchQuery, type Filter, type ListQuery } from './query.ts';
import { PreparedLists } from './prepared.ts';
import { projected } from './projection.ts';
import { demandUnderlying, synced } from './reading.ts';
import type { Resource } from './resource.ts';
import { coreView, listOf, type View } from './views.ts';
import { eventStream, watchDuration, Watches } from './watch/watches.ts';

const json = 'application/json';

/** Throws 400 for what is none of ours. */
function lastEventID({ headers }: Request): number | undefined {
  const id = headers['last-event-id'];
  if (id === undefined || id === '') return undefined;
  if (typeof id === 'string' && /^\d{1,15}$/.test(id)) return Number(id);
  throw badRequest('Last-Event-ID must be the id of an event of this watch, which is a resourceVersion');
}

interface KapisHandlers {
  readonly collection: Handler;
  readonly object: Handler;
}

export function kapisHandlers<F>(resource: Resource<F>, authorizer: Authorizer): KapisHandlers {
  const { definition, store } = resource;
  const watches = new Watches(store);
  const views = { plain: coreView(definition, false), full: coreView(definition, true) };
  const viewOf = ({ managedFields, fields }: Pick<ListQuery<F>, 'managedFields' | 'fields'>): View<F> => {
    const view = managedFields ? views.full : views.plain;
    return fields === undefined ? view : projected(view, fields);
  };
  /** By what is shown and its order. */
  const prepared = new Map<string, PreparedLists<F>>();
  function preparedFor({ managedFields, order, reversed }: ListQuery<F>, view: View<F>): PreparedLists<F> {
    const key = JSON.stringify([managedFields, order, reversed]);
    let lists = prepared.get(key);
    if (lists === undefined) prepared.set(key, (lists = new PreparedLists(view)));
    return lists;
  }
  const notReady = (): Error & ReturnType<typeof serviceUnavailable> =>
    serviceUnavailable(`the copy of ${definition.underlying.resource} is not complete yet`, 1);

  /** Answers the media type that the caller is to have. */
  async function begin(...[req, , context]: Parameters<Handler>): Promise<string> {
    const offered = context.info.verb === 'watch' ? [json, eventStream] : [json];
    const mediaType = negotiate(req.headers.accept, offered, (type) => type);
    await demandUnderlying(authorizer, context, resource);
    return mediaType;
  }

  async function watch(mediaType: string, ...[req, res, context]: Parameters<Handler>): Promise<void> {
    const options = parseWatchOptions(context.query);
    const query = parseWatchQuery(context.query, definition);
    const named: Filter<F>[] = context.info.name === '' ? [] : [({ name }) => name === context.info.name];
    await synced(resource, context, notReady);
    const { resourceVersion, sendInitialEvents, allowWatchBookmarks, timeoutSeconds } = options;
    const serverSentEvents = mediaType === eventStream;
    // A client of server-sent events comes again with the same URL, and says beside it where it was.
    const resumed = serverSentEvents ? lastEventID(req) : undefined;
    const wholeState = resumed === undefined && (sendInitialEvents ?? typeof resourceVersion !== 'number');
    const view = viewOf(query);
    watches.serve(req, res, {
      from:
        resumed ?? (typeof resourceVersion === 'number' && sendInitialEvents !== true ? resourceVersion : undefined),
      initialEvents: wholeState,
      initialEventsEnd: wholeState && sendInitialEvents === true && allowWatchBookmarks,
      bookmarks: allowWatchBookmarks,
      serverSentEvents,
      duration: watchDuration(timeoutSeconds),
      filters: [...named, ...query.filters],
      view,
      firstView: view,
      recheck: () => demandUnderlying(authorizer, context, resource),
      caller: context.user?.username ?? '',
      onUserChange: (listener) => context.onUserChange(listener),
      signal: context.signal,
      log: context.log,
    });
  }

  return {
    async collection(req, res, context) {
      const mediaType = await begin(req, res, context);
      if (context.info.verb === 'watch') return watch(mediaType, req, res, context);
      const query = parseListQuery(context.query, definition);
      await synced(resource, context, notReady);
      const { signal } = context;
      const isWhole = query.limit === -1 && query.filters.length === 0 && typeof query.order === 'string';
      if (isWhole && query.order === 'newest') await store.tidy(signal);
      const { objects, total, resourceVersion } = await pageOf(store, query, signal);
      const view = viewOf(query);
      const frame = view.frame({ resourceVersion }, total);
      const body = await listOf(view, objects, frame, signal);
      if (query.pretty) return write(req, res, { contentType: json, body: await prettyJson(body, signal) });
      const gzipped = (): Promise<readonly Buffer[]> => preparedFor(query, view).gzip(objects, frame);
      await write(req, res, { contentType: json, body, ...(isWhole && view.own !== true ? { gzipped } : {}) });
    },
    async object(req, res, context) {
      const mediaType = await begin(req, res, context);
      if (context.info.verb === 'watch') return watch(mediaType, req, res, context);
      const query = parseGetQuery(context.query);
      await synced(resource, context, notReady);
      const { namespace, name } = context.info;
      const object = store.get(namespace, name);
      if (object === undefined) throw notFound(definition.underlying, name);
      const body = viewOf(query).object(object);
      await write(req, res, { contentType: json, body: query.pretty ? await prettyJson(body, context.signal) : body });
    },
  };
}
