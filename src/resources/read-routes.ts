/** Routes of a resource at /kapis: its collection and its objects by name, both with watches. */
import { eventStream } from '../apimachinery/watch/response.ts';
import { objectDescriptions } from '../apimachinery/list/kapis-parameters.ts';
import { authorizedByRoute } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { parsedByHandler } from '../http/request/parameters.ts';
import {
  inHeader,
  jsonOrYAML,
  type ParameterDescription,
  type ResponseDescriptions,
  type Route,
} from '../http/route.ts';
import { listSchema, objectMetaSchema } from '../http/meta-schemas.ts';
import { named, object, oneOf, open, text, type Schema } from '../http/schema.ts';
import type { ResourceDefinition } from '../cluster/catalogue/resource.ts';
import type { AuthenticatedRequest, ReadHandlers, ReadRequest } from './read-request.ts';

interface ReadSchemas {
  readonly list: Schema;
  readonly object: Schema;
}

/**
 * Returns the schema of an object. `kind` is undefined if it is unknown. Only properties that the parameter `fields`
 * cannot omit are required.
 */
const objectSchema = (name: string, kind?: string, parts: Readonly<Record<string, Schema>> = {}) =>
  named(
    name,
    open(
      object({ kind: kind === undefined ? text : oneOf(kind), apiVersion: text, metadata: objectMetaSchema }, parts),
    ),
  );

const anyObject = objectSchema('Object');
export const anySchemas: ReadSchemas = { object: anyObject, list: listSchema('ObjectList', anyObject) };

/** Returns the schemas of a kind that is always served. */
export function schemasOf({ kind, schema }: Pick<ResourceDefinition<unknown>, 'kind' | 'schema'>): ReadSchemas {
  const one = objectSchema(kind, kind, schema);
  return { object: one, list: listSchema(`${kind}List`, one, kind) };
}

type What = keyof ReadHandlers;

export interface ReadRoutes<G> {
  /** Path of the collection. */
  readonly path: string;
  /** Descriptions of the parameters in `path`, by name. */
  readonly pathParameters?: Readonly<Record<string, string>>;
  readonly summaries: Readonly<Record<What, string>>;
  readonly list: readonly ParameterDescription[];
  readonly watch: readonly ParameterDescription[];
  readonly schemas: ReadSchemas;
  /** Status codes in addition to those of every list and watch. */
  readonly errors?: readonly number[];
  readonly authorize: (what: What, request: AuthenticatedRequest) => G | Promise<G>;
  readonly serve: (what: What, request: ReadRequest<G>) => Promise<void>;
  readonly writtenAt: NonNullable<Route['writtenAt']>;
}

/** Status 410 is for versions and tokens that are too old, and status 422 for contradictory options. */
const commonErrors = [410, 422];

const lastEventIDHeader = inHeader('Last-Event-ID', 'Resumes a watch by server-sent events after this event');

const descriptions: Readonly<Record<What, string>> = {
  collection:
    'Filters, sorts and pages in the list language of the platform (docs/reference/api.md). Requires the right to `list` the resource in its own API group, or `watch` with `watch=true`. Callers with the right in some namespaces get only the objects of those namespaces.',
  object: 'Requires the right to `get` the resource in its own API group, or `watch` with `watch=true`.',
};

const readOrWatched = (result: string, schema: Schema): ResponseDescriptions => ({
  200: {
    description: `${result}. With \`watch=true\`, each line is an event \`{"type": …, "object": …}\` until the watch ends`,
    content: { ...jsonOrYAML(schema), [eventStream]: text },
  },
});

export function readRoutes<G>(given: ReadRoutes<G>): Route[] {
  const { path, pathParameters = {}, summaries, list, watch, schemas, errors = [], writtenAt } = given;
  const common = (what: What) => ({
    method: 'get' as const,
    summary: summaries[what],
    description: descriptions[what],
    access: authorizedByRoute,
    headers: [lastEventIDHeader],
    errors: [...errors, ...commonErrors],
    writtenAt,
    authorize: (request: AuthenticatedRequest) => given.authorize(what, request),
    handler: (request: ReadRequest<G>) => given.serve(what, request),
  });
  return [
    defineRoute({
      ...common('collection'),
      path,
      pathParameters,
      query: parsedByHandler(list),
      responses: readOrWatched('The list', schemas.list),
    }),
    defineRoute({
      ...common('object'),
      path: `${path}/:name`,
      pathParameters: { ...pathParameters, name: 'Name of the object' },
      query: parsedByHandler(objectDescriptions(watch)),
      responses: readOrWatched('The object', schemas.object),
    }),
  ];
}
