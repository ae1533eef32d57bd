/** Read requests at /kapis and their authorization. */
import { objectTypes } from '../apimachinery/list/resource-responses.ts';
import type { Request } from 'express';
import { badRequest } from '../runtime/errors.ts';
import type { authenticated } from '../http/access.ts';
import type { RouteRequest } from '../http/define-route.ts';
import type { RequestInfo } from '../http/route.ts';
import { negotiate } from '../http/request/negotiate.ts';
import type { ObjectFilter } from '../apimachinery/list/filters.ts';
import {
  isKnownUnrestricted,
  listScope,
  visibleNamespaces,
  type ReadAccess,
  type ReadScope,
} from '../apimachinery/visible-namespaces.ts';
import { eventStream } from '../apimachinery/watch/response.ts';
import { collectionPath, type ResourceDefinition } from '../cluster/catalogue/resource.ts';
import { selectedBy, selectingObjects } from './selected-by.ts';

const json = 'application/json';

/**
 * Returns the event after which a client of server-sent events resumes. Throws 400 for an id that this server did not
 * send.
 */
export function lastEventID({ headers }: Request): number | undefined {
  const id = headers['last-event-id'];
  if (id === undefined || id === '') return undefined;
  if (typeof id === 'string' && /^\d{1,15}$/.test(id)) return Number(id);
  throw badRequest('Last-Event-ID must be the id of an event of this watch, which is a resourceVersion');
}

/** Result of the authorization of a read. Authorization precedes the parsing of the query. */
export interface ReadGrant {
  readonly mediaType: string;
  readonly scope: ReadScope;
  /** Filters for objects that other resources select, such as the pods of a Service. */
  readonly selected: readonly ObjectFilter<unknown>[];
}

export type AuthenticatedRequest = Pick<RouteRequest<string, typeof authenticated>, 'req' | 'res' | 'context'>;

export interface ReadRequest<G = ReadGrant> extends AuthenticatedRequest {
  readonly granted: G;
}

/**
 * Returns the path of kube-apiserver that accepts a write, with placeholders for the parts that the request does not
 * name. Returns undefined if the resource does not support the verb, and for the deprecated watch paths, whose verb is
 * always `watch`.
 */
export function writePath(
  { underlying, namespaced }: Pick<ResourceDefinition<never>, 'underlying' | 'namespaced'>,
  { namespace, name, verb }: Pick<RequestInfo, 'namespace' | 'name' | 'verb'>,
  verbs: readonly string[] = [verb],
): string | undefined {
  if (verb === 'watch' || !verbs.includes(verb)) return undefined;
  const { resource } = underlying;
  const collection =
    namespaced && namespace === ''
      ? collectionPath({ ...underlying, resource: `namespaces/{namespace}/${resource}` })
      : collectionPath(underlying, namespaced ? namespace : '');
  if (verb === 'create' || verb === 'deletecollection') return collection;
  return `${collection}/${name === '' ? '{name}' : encodeURIComponent(name)}`;
}

/** Serves reads of a collection and of its objects: CachedReads and UncachedReads. */
export interface ReadHandlers {
  collection(request: ReadRequest): Promise<void>;
  object(request: ReadRequest): Promise<void>;
}

const everything: ReadScope = { visible: undefined };

/**
 * Authorizes a read before the rest of the request is parsed. Throws 403, or 406 for an authorized request that accepts
 * no supported media type. Returns a promise only if no cached decision allows the read.
 */
export function authorizeRead(
  access: ReadAccess,
  definition: ResourceDefinition<unknown>,
  request: AuthenticatedRequest,
): ReadGrant | Promise<ReadGrant> {
  const { context } = request;
  return selectingObjects(definition, context).length === 0 && isKnownUnrestricted(access, context, definition)
    ? { mediaType: mediaTypeOf(request), scope: everything, selected: [] }
    : reviewRead(access, definition, request);
}

async function reviewRead(
  access: ReadAccess,
  definition: ResourceDefinition<unknown>,
  request: AuthenticatedRequest,
): Promise<ReadGrant> {
  const { context } = request;
  const scope =
    context.info.verb === 'watch'
      ? { visible: await visibleNamespaces(access, context, definition) }
      : await listScope(access, context, definition);
  const selected = await selectedBy(access, definition, context);
  return { mediaType: mediaTypeOf(request), scope, selected };
}

const watchTypes = [json, eventStream];
const describedTypes = [...objectTypes, `with watch=true also ${eventStream}`];

/** Returns the media type of the response. Throws 406 if the request accepts none. */
function mediaTypeOf({ req: { headers }, context: { info } }: AuthenticatedRequest): string {
  const [offered, described] = info.verb === 'watch' ? [watchTypes, watchTypes] : [objectTypes, describedTypes];
  return negotiate(headers.accept, offered, (type) => type, described);
}
