/** A read at /kapis: its authorization, and what the handlers get. */
import type { Request } from 'express';
import { badRequest } from '../runtime/errors.ts';
import type { authenticated } from '../http/access.ts';
import type { RouteRequest } from '../http/define-route.ts';
import { negotiate } from '../http/request/negotiate.ts';
import type { ObjectFilter } from '../apimachinery/list/filters.ts';
import { visibleNamespaces, type ReadAccess, type Visible } from '../apimachinery/visible-namespaces.ts';
import { eventStream } from '../apimachinery/watch/response.ts';
import type { ResourceDefinition } from '../cluster/catalogue/resource.ts';
import { selectedBy } from './selected-by.ts';

const json = 'application/json';

/** Returns the event after which a client of server-sent events resumes. Throws 400 for an id that this server did not send. */
export function lastEventID({ headers }: Request): number | undefined {
  const id = headers['last-event-id'];
  if (id === undefined || id === '') return undefined;
  if (typeof id === 'string' && /^\d{1,15}$/.test(id)) return Number(id);
  throw badRequest('Last-Event-ID must be the id of an event of this watch, which is a resourceVersion');
}

/** Result of the authorization of a read, which comes before the query is parsed. */
export interface ReadGrant {
  readonly mediaType: string;
  /** Namespaces whose objects the caller is allowed to see. */
  readonly visible: Visible;
  /** Filters for what other resources select of them. */
  readonly selected: readonly ObjectFilter<unknown>[];
}

export type AuthenticatedRequest = Pick<RouteRequest<string, typeof authenticated>, 'req' | 'res' | 'context'>;

export interface ReadRequest<G = ReadGrant> extends AuthenticatedRequest {
  readonly granted: G;
}

/** Serves reads of a collection and of its objects: CachedReads and UncachedReads. */
export interface ReadHandlers {
  collection(request: ReadRequest): Promise<void>;
  object(request: ReadRequest): Promise<void>;
}

/** Authorizes a read before anything else of the request is parsed. Throws 403, then 406. */
export async function authorizeRead(
  access: ReadAccess,
  definition: ResourceDefinition<unknown>,
  { req: { headers }, context }: AuthenticatedRequest,
): Promise<ReadGrant> {
  const isWatch = context.info.verb === 'watch';
  const offered = isWatch ? [json, eventStream] : [json];
  const words = isWatch ? offered : [json, `with watch=true also ${eventStream}`];
  const visible = await visibleNamespaces(access, context, definition);
  const selected = await selectedBy(access, definition, context);
  return { mediaType: negotiate(headers.accept, offered, (type) => type, words), visible, selected };
}
