/**
 * `/apis/{group}/{version}/{resource}[/{name}]`: the same objects as an aggregated API, with the semantics of kube-apiserver
 * (k8s.io/apiserver pkg/endpoints/handlers/get.go, pkg/storage/cacher).
 */
import type { Request } from 'express';
import { rechecking, type Authorizer } from '../auth/authorizers/authorizer.ts';
import { badRequest, expired, notFound, StatusError, tooManyRequests } from '../runtime/errors.ts';
import { negotiate } from '../http/request/negotiate.ts';
import { indented, wantsPretty, writeDocument } from '../http/response/pretty.ts';
import type { Handler, RequestContext } from '../http/route.ts';
import { writeList, type Streamed } from '../http/response/write.ts';
import type { StoredObject } from '../cluster/cache/stored-object.ts';
import { decodeContinue, encodeContinue } from '../apimachinery/list/continue-token.ts';
import {
  parseGetOptions,
  parseListOptions,
  parseWatchOptions,
  selectorsOf,
  type ListOptions,
} from '../apimachinery/list/list-options.ts';
import { select } from '../apimachinery/list/query.ts';
import { asked, demandServed, demandUnderlying, reached, recalled } from '../apimachinery/reading.ts';
import { synced } from '../cluster/catalogue/waiting.ts';
import type { Resource } from '../cluster/catalogue/resource.ts';
import { PreparedLists } from '../apimachinery/list/prepared.ts';
import {
  listOf,
  partialView,
  servedView,
  tableView,
  type MetaVersion,
  type TableOptions,
  type View,
} from '../apimachinery/list/views.ts';
import { beginWatch, refuse, watchDuration } from '../apimachinery/watch/response.ts';
import { Watches } from '../apimachinery/watch/watches.ts';

const offered = ['application/json', 'application/yaml'];
/** A stream of YAML documents is not spoken. */
const offeredStreams = ['application/json'];
const newline = Buffer.from('\n');

interface ApisHandlers {
  readonly collection: Handler;
  readonly object: Handler;
}

/** What the Accept header asks for: the objects themselves, or one of meta.k8s.io's kinds. */
interface Target {
  readonly contentType: string;
  readonly kind: '' | 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList';
  readonly version: MetaVersion;
  readonly pretty: boolean;
}

function targetOf(req: Request, mediaTypes = offered): Target {
  return negotiate(
    req.headers.accept,
    mediaTypes,
    (contentType, { as: kind = '', g, v, stream = '', sv = '', pretty }) => {
      if ((stream !== '' && stream !== 'watch') || sv !== '') return undefined;
      const common = { contentType, pretty: pretty === '1' };
      if (kind === '' && g === undefined && v === undefined) return { ...common, kind, version: 'v1' };
      const isKnown = kind === 'Table' || kind === 'PartialObjectMetadata' || kind === 'PartialObjectMetadataList';
      return isKnown && g === 'meta.k8s.io' && (v === 'v1' || v === 'v1beta1')
        ? { ...common, kind, version: v }
        : undefined;
    },
  );
}

/** A list cannot be shown as a single object's metadata, nor the other way round. */
function checkTarget({ kind }: Target, isList: boolean, what: string): void {
  const wrong = isList ? 'PartialObjectMetadata' : 'PartialObjectMetadataList';
  if (kind === wrong)
    throw new StatusError(
      'NotAcceptable',
      406,
      `you requested ${wrong}, but the requested object is ${isList ? 'a' : 'not a'} list (${what})`,
    );
}

function includeObject(query: URLSearchParams): TableOptions['includeObject'] {
  const text = query.get('includeObject') || 'Metadata';
  if (text !== 'None' && text !== 'Metadata' && text !== 'Object')
    throw badRequest(
      `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(text)}: must be 'Metadata', 'Object', 'None', or empty`,
    );
  return text;
}

const tooOldContinue =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without the ' +
  'continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with ' +
  'the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the ' +
  'first chunk was returned and now may show up in the list.';

/** What a list is taken from. */
interface Snapshot<F> {
  /** The objects by name as they were; undefined: as they are. */
  readonly past?: { readonly objects: readonly StoredObject<F>[]; readonly resourceVersion: number };
  /** The first name to show, '' for the first of all. */
  readonly start: string;
}

/** What a list shows, and one more if there is more; `left` is the number of objects from the first on. */
interface Part<F> {
  readonly found: readonly StoredObject<F>[];
  readonly left: number;
  readonly resourceVersion: number;
}

export function apisHandlers<F>(resource: Resource<F>, authorizer: Authorizer): ApisHandlers {
  const { definition, store } = resource;
  const watches = new Watches(store);
  const recheck = rechecking(authorizer);
  const { served, kind } = definition;
  const views = new Map<string, View<F>>();

  /** Views are shared, so that watches share frames. */
  function view(key: string, make: () => View<F>): View<F> {
    const known = views.get(key) ?? make();
    views.set(key, known);
    return known;
  }

  const prepared = new Map<View<F>, PreparedLists<F>>();
  function preparedFor(look: View<F>): PreparedLists<F> {
    let lists = prepared.get(look);
    if (lists === undefined) prepared.set(look, (lists = new PreparedLists(look)));
    return lists;
  }

  function viewOf(target: Target, query: URLSearchParams, noHeaders = false): View<F> {
    const { version } = target;
    if (target.kind === '') return view('', () => servedView(definition));
    if (target.kind !== 'Table') return view(`metadata ${version}`, () => partialView(version));
    const include = includeObject(query);
    return view(`table ${version} ${include} ${noHeaders}`, () =>
      tableView(definition, { version, includeObject: include, noHeaders, now: Date.now }),
    );
  }

  const ready = (context: RequestContext): Promise<void> =>
    synced(resource, context, () => tooManyRequests(`the copy of ${served.resource} is not complete yet`, 1));

  /** The objects by name as they were; undefined if that is forgotten. Throws 504 if it lies ahead. */
  async function at(version: number, context: RequestContext): Promise<readonly StoredObject<F>[] | undefined> {
    // Another replica may have told the version, and this one's copy be behind, or have begun later.
    await reached(resource, version, context);
    await recalled(resource, version, context);
    return store.at(version);
  }

  /** By the table of https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list. */
  async function snapshot(options: ListOptions, context: RequestContext): Promise<Snapshot<F>> {
    const { resourceVersion: version, resourceVersionMatch: match, limit } = options;
    if (options.continue !== '') {
      const token = decodeContinue(options.continue);
      if (typeof version === 'number')
        throw badRequest('specifying resource version is not allowed when using continue');
      if (token.resourceVersion === -1) {
        await asked(resource.confirm(context.signal));
        return { start: token.start };
      }
      const objects = await at(token.resourceVersion, context);
      if (objects === undefined) throw expired(tooOldContinue, encodeContinue(-1, token.start));
      return { past: { objects, resourceVersion: token.resourceVersion }, start: token.start };
    }
    if (version === 'latest') await asked(resource.confirm(context.signal));
    if (typeof version === 'number') {
      if (match === 'Exact' || (match === '' && limit > 0)) {
        const objects = await at(version, context);
        if (objects === undefined) throw expired('The resourceVersion for the provided list is too old.');
        return { past: { objects, resourceVersion: version }, start: '' };
      }
      await reached(resource, version, context);
    }
    return { start: '' };
  }

  async function list(...[req, res, context]: Parameters<Handler>): Promise<void> {
    const target = targetOf(req);
    checkTarget(target, true, `${kind}List`);
    const options = parseListOptions(context.query);
    const filters = selectorsOf(context.query, definition, '');
    const look = viewOf(target, context.query);
    await ready(context);
    const { past, start } = await snapshot(options, context);
    const limit = options.resourceVersion === 'any' && options.continue === '' ? 0 : options.limit;
    // One more than are shown tells that there are more.
    const most = limit === 0 ? Infinity : limit + 1;
    const part = (selected: readonly StoredObject<F>[], resourceVersion: number): Part<F> => {
      const first = firstFrom(selected, start);
      return { found: selected.slice(first, first + most), left: selected.length - first, resourceVersion };
    };
    const { found, left, resourceVersion } =
      past === undefined
        ? await store.select(filters, 'name', context, part)
        : part(await select(past.objects, filters, context), past.resourceVersion);
    const hasMore = limit > 0 && found.length > limit;
    const selected = hasMore ? found.slice(0, limit) : found;
    const metadata = {
      resourceVersion,
      ...(hasMore ? { continue: encodeContinue(resourceVersion, `${selected.at(-1)?.name ?? ''}\0`) } : {}),
      ...(hasMore && filters.length === 0 ? { remainingItemCount: left - selected.length } : {}),
    };
    const [head, tail] = look.frame(metadata);
    const frame = [head, Buffer.concat([tail, newline])] as const;
    const pretty = isPretty(req, context, target);
    const plain = async (): Promise<Streamed> => {
      const document = listOf(look, selected, frame, context);
      return pretty ? indented(document.parts, context) : document;
    };
    const isWhole = limit === 0 && start === '' && filters.length === 0 && target.kind !== 'Table';
    const gzipped = isWhole && !pretty ? (): Promise<Buffer[]> => preparedFor(look).gzip(selected, frame) : undefined;
    await writeList(req, res, { contentType: target.contentType, items: selected, plain, gzipped });
  }

  async function get(...[req, res, context]: Parameters<Handler>): Promise<void> {
    const target = targetOf(req);
    checkTarget(target, false, kind);
    const version = parseGetOptions(context.query);
    const look = viewOf(target, context.query);
    await ready(context);
    const { namespace, name } = context.info;
    if (version === 'latest') await asked(resource.confirmObject(namespace, name, context.signal));
    else await reached(resource, version, context);
    const object = store.get(namespace, name);
    if (object === undefined) throw notFound(served, name);
    const document = { contentType: target.contentType, body: [...look.object(object), newline] };
    await writeDocument(req, res, { ...document, pretty: isPretty(req, context, target) }, context);
  }

  async function watch(...[req, res, context]: Parameters<Handler>): Promise<void> {
    const target = targetOf(req, offeredStreams);
    const options = parseWatchOptions(context.query);
    const filters = selectorsOf(context.query, definition, context.info.name);
    const look = viewOf(target, context.query, true);
    const firstView = viewOf(target, context.query);
    await ready(context);
    const { resourceVersion, sendInitialEvents, allowWatchBookmarks, timeoutSeconds } = options;
    if (resourceVersion === 'latest') await asked(resource.confirm(context.signal));
    if (sendInitialEvents && typeof resourceVersion === 'number') {
      try {
        await reached(resource, resourceVersion, context);
      } catch (error) {
        if (error instanceof StatusError) return refuse(beginWatch(req, res), error);
        throw error;
      }
    }
    const from = sendInitialEvents || typeof resourceVersion !== 'number' ? undefined : resourceVersion;
    await recalled(resource, from, context);
    watches.serve(req, res, {
      from,
      initialEvents: sendInitialEvents,
      initialEventsEnd: sendInitialEvents && allowWatchBookmarks,
      bookmarks: allowWatchBookmarks,
      duration: watchDuration(timeoutSeconds),
      filters,
      view: look,
      firstView,
      recheck: async () => {
        await demandServed(recheck, context);
        await demandUnderlying(recheck, context, resource);
      },
      onRecheck: (...guard) => context.onRecheck(...guard),
      signal: context.signal,
      log: context.log,
    });
  }

  return {
    async collection(req, res, context) {
      await demandUnderlying(authorizer, context, resource);
      await (context.info.verb === 'watch' ? watch : list)(req, res, context);
    },
    async object(req, res, context) {
      await demandUnderlying(authorizer, context, resource);
      await (context.info.verb === 'watch' ? watch : get)(req, res, context);
    },
  };
}

const isPretty = (req: Request, { query }: RequestContext, { pretty }: Target): boolean =>
  pretty || wantsPretty(query, req.headers['user-agent']);

/** The index of the first object whose name is not before `start`. */
function firstFrom(objects: readonly StoredObject<unknown>[], start: string): number {
  let low = 0;
  let high = objects.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((objects[middle] as StoredObject<unknown>).name < start) low = middle + 1;
    else high = middle;
  }
  return low;
}
