/**
 * Serves `/apis/{group}/{version}/{resource}[/{name}]`: cached objects as an aggregated API, with the semantics of
 * kube-apiserver (k8s.io/apiserver pkg/endpoints/handlers/get.go, pkg/storage/cacher).
 */
import type { Request } from 'express';
import { rechecking, type Authorizer } from '../auth/authorizers/authorizer.ts';
import { badRequest, expired, notFound, StatusError, tooManyRequests } from '../runtime/errors.ts';
import { formatted, wantsPretty, writeDocument } from '../http/response/pretty.ts';
import type { authorizedByResource } from '../http/access.ts';
import type { RouteRequest } from '../http/define-route.ts';
import type { RequestContext } from '../http/route.ts';
import { writeList, type Streamed } from '../http/response/write.ts';
import type { StoredObject } from '../cluster/cache/stored-object.ts';
import { decodeContinue, encodeContinue } from '../apimachinery/list/continue-token.ts';
import type { ObjectFilter } from '../apimachinery/list/filters.ts';
import { apisCollectionParameters, apisObjectParameters, selectorsOf } from '../apimachinery/list/apis-parameters.ts';
import { listOptions, requestedVersion, watchOptions, type ListOptions } from '../apimachinery/list/list-options.ts';
import { select } from '../apimachinery/list/query.ts';
import {
  assertStillAllowed,
  assertUnderlyingAllowed,
  translateKubeErrors,
  waitForHistory,
  waitForVersion,
} from '../apimachinery/reading.ts';
import { waitForSync } from '../cluster/catalogue/waiting.ts';
import type { Resource } from '../cluster/catalogue/resource.ts';
import { listOf } from '../apimachinery/list/views.ts';
import { beginWatch, refuse, watchDuration } from '../apimachinery/watch/response.ts';
import { Watches } from '../apimachinery/watch/watches.ts';
import { checkTarget, targetOf, Views, type Target } from './apis-views.ts';

/** Media types of watches, which cannot be streamed as YAML. */
const streamTypes = ['application/json'];
const newline = Buffer.from('\n');

const tooOldContinue =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without the ' +
  'continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with ' +
  'the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the ' +
  'first chunk was returned and now may show up in the list.';

/** Objects from which a list is created. */
interface Snapshot<F> {
  /** Objects of an earlier version, sorted by name; undefined for the current objects. */
  readonly historical?: { readonly objects: readonly StoredObject<F>[]; readonly resourceVersion: number };
  /** Smallest name in the list; '' for no limit. */
  readonly start: string;
}

/**
 * Objects of a page, and one more object if there are more pages. `left`: number of objects from the first object of
 * the page on.
 */
interface Part<F> {
  readonly found: readonly StoredObject<F>[];
  readonly left: number;
  readonly resourceVersion: number;
}

/**
 * Returns the objects of a version sorted by name; undefined if the version is too old. Throws 504 if the cache does
 * not reach the version in time.
 */
async function objectsAt<F>(
  resource: Resource<F>,
  version: number,
  context: RequestContext,
): Promise<readonly StoredObject<F>[] | undefined> {
  // If another replica returned the version, the cache of this replica may be behind, or may have started later.
  await waitForVersion(resource, version, context);
  await waitForHistory(resource, version, context);
  return resource.store.at(version);
}

/** Implements the table of https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list. */
async function snapshotOf<F>(
  resource: Resource<F>,
  options: ListOptions,
  context: RequestContext,
): Promise<Snapshot<F>> {
  const { resourceVersion: version, resourceVersionMatch: match, limit } = options;
  if (options.continue !== '') {
    const token = decodeContinue(options.continue);
    if (typeof version === 'number') throw badRequest('specifying resource version is not allowed when using continue');
    if (token.resourceVersion === -1) {
      await translateKubeErrors(resource.confirm(context.signal));
      return { start: token.start };
    }
    const objects = await objectsAt(resource, token.resourceVersion, context);
    if (objects === undefined) throw expired(tooOldContinue, encodeContinue(-1, token.start));
    return { historical: { objects, resourceVersion: token.resourceVersion }, start: token.start };
  }
  if (version === 'latest') await translateKubeErrors(resource.confirm(context.signal));
  if (typeof version === 'number') {
    if (match === 'Exact' || (match === '' && limit > 0)) {
      const objects = await objectsAt(resource, version, context);
      if (objects === undefined) throw expired('The resourceVersion for the provided list is too old.');
      return { historical: { objects, resourceVersion: version }, start: '' };
    }
    await waitForVersion(resource, version, context);
  }
  return { start: '' };
}

type ApisRequest = Pick<RouteRequest<string, typeof authorizedByResource>, 'req' | 'res' | 'context'>;

/** Serves reads of a resource at /apis. The caller must also have the right to the core resource, such as nodes. */
export class ApisHandlers<F> {
  readonly #resource: Resource<F>;
  readonly #recheckAuthorizer: Authorizer;
  readonly #views: Views<F>;
  readonly #watches: Watches<F>;

  constructor(resource: Resource<F>, authorizer: Authorizer) {
    this.#resource = resource;
    this.#recheckAuthorizer = rechecking(authorizer);
    this.#views = new Views(resource.definition);
    this.#watches = new Watches(resource.store);
  }

  async collection(request: ApisRequest): Promise<void> {
    await (request.context.info.verb === 'watch' ? this.#watch(request) : this.#list(request));
  }

  async object(request: ApisRequest): Promise<void> {
    await (request.context.info.verb === 'watch' ? this.#watch(request) : this.#get(request));
  }

  #synced(context: RequestContext): Promise<void> {
    const { resource } = this.#resource.definition.served;
    return waitForSync(this.#resource, context, () => tooManyRequests(`the cache of ${resource} is not ready yet`, 1));
  }

  async #list({ req, res, context }: ApisRequest): Promise<void> {
    const { definition } = this.#resource;
    const target = targetOf(req);
    checkTarget(target, true, `${definition.kind}List`);
    const query = apisCollectionParameters.parse(context.query);
    const options = listOptions(query);
    const filters = selectorsOf(query, definition, '');
    const view = this.#views.of(target, context.query);
    await this.#synced(context);
    const snapshot = await snapshotOf(this.#resource, options, context);
    const limit = options.resourceVersion === 'any' && options.continue === '' ? 0 : options.limit;
    const { found, left, resourceVersion } = await this.#part(snapshot, filters, limit, context);
    const hasMore = limit > 0 && found.length > limit;
    const selected = hasMore ? found.slice(0, limit) : found;
    const metadata = {
      resourceVersion,
      ...(hasMore ? { continue: encodeContinue(resourceVersion, `${selected.at(-1)?.name ?? ''}\0`) } : {}),
      ...(hasMore && filters.length === 0 ? { remainingItemCount: left - selected.length } : {}),
    };
    const [head, tail] = view.frame(metadata);
    const frame = [head, Buffer.concat([tail, newline])] as const;
    const { contentType } = target;
    const isFormatted = contentType === 'application/yaml' || isPretty(req, query, target);
    const plain = async (): Promise<Streamed> => {
      const document = listOf(view, selected, frame, context);
      return isFormatted ? formatted(document.parts, contentType, context) : document;
    };
    const isWhole = limit === 0 && snapshot.start === '' && filters.length === 0 && target.kind !== 'Table';
    const gzipped =
      isWhole && !isFormatted ? (): Promise<Buffer[]> => this.#views.prepared(view).gzip(selected, frame) : undefined;
    await writeList(req, res, { contentType, items: selected, plain, gzipped });
  }

  async #part(
    { historical, start }: Snapshot<F>,
    filters: readonly ObjectFilter<F>[],
    limit: number,
    context: RequestContext,
  ): Promise<Part<F>> {
    // Reads one object more than the page contains, to find out whether there are more pages.
    const max = limit === 0 ? Infinity : limit + 1;
    const part = (selected: readonly StoredObject<F>[], resourceVersion: number): Part<F> => {
      const first = firstFrom(selected, start);
      return { found: selected.slice(first, first + max), left: selected.length - first, resourceVersion };
    };
    return historical === undefined
      ? await this.#resource.store.select(filters, 'name', context, part)
      : part(await select(historical.objects, filters, context), historical.resourceVersion);
  }

  async #get({ req, res, context }: ApisRequest): Promise<void> {
    const resource = this.#resource;
    const { served, kind } = resource.definition;
    const target = targetOf(req);
    checkTarget(target, false, kind);
    const query = apisObjectParameters.parse(context.query);
    const version = requestedVersion(query);
    const view = this.#views.of(target, context.query);
    await this.#synced(context);
    const { namespace, name } = context.info;
    if (version === 'latest') await translateKubeErrors(resource.confirmObject(namespace, name, context.signal));
    else await waitForVersion(resource, version, context);
    const object = resource.store.get(namespace, name);
    if (object === undefined) throw notFound(served, name);
    const document = { contentType: target.contentType, body: [...view.object(object), newline] };
    await writeDocument(req, res, { ...document, pretty: isPretty(req, query, target) }, context);
  }

  async #watch({ req, res, context }: ApisRequest): Promise<void> {
    const resource = this.#resource;
    const target = targetOf(req, streamTypes);
    const query = apisCollectionParameters.parse(context.query);
    const options = watchOptions(query);
    const filters = selectorsOf(query, resource.definition, context.info.name);
    const view = this.#views.of(target, context.query, true);
    const firstView = this.#views.of(target, context.query);
    await this.#synced(context);
    const { resourceVersion, sendInitialEvents, allowWatchBookmarks, timeoutSeconds } = options;
    if (resourceVersion === 'latest') await translateKubeErrors(resource.confirm(context.signal));
    if (sendInitialEvents && typeof resourceVersion === 'number') {
      try {
        await waitForVersion(resource, resourceVersion, context);
      } catch (error) {
        if (error instanceof StatusError) return refuse(beginWatch(req, res), error);
        throw error;
      }
    }
    const from = sendInitialEvents || typeof resourceVersion !== 'number' ? undefined : resourceVersion;
    await waitForHistory(resource, from, context);
    this.#watches.serve(req, res, {
      from,
      initialEvents: sendInitialEvents,
      initialEventsEnd: sendInitialEvents && allowWatchBookmarks,
      bookmarks: allowWatchBookmarks,
      duration: watchDuration(timeoutSeconds),
      filters,
      view,
      firstView,
      recheck: async () => {
        await assertStillAllowed(this.#recheckAuthorizer, context);
        await assertUnderlyingAllowed(this.#recheckAuthorizer, context, resource);
      },
      onRecheck: (...guard) => context.onRecheck(...guard),
      signal: context.signal,
      log: context.log,
    });
  }
}

const isPretty = (req: Request, query: { readonly pretty?: string | undefined }, target: Target): boolean =>
  target.pretty || wantsPretty(query.pretty, req.headers['user-agent']);

/** Returns the index of the first object whose name is not before `start`. */
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
