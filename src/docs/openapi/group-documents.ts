/** OpenAPI documents of a group and version of the aggregated API, generated from its routes. */
import type { ParameterDescription, Route } from '../../http/route.ts';
import { jsonSchemaOf } from './json-schema.ts';
import { camel, templated } from './operations.ts';
import {
  asSwagger2,
  schemaName,
  type DescribedKind,
  type DescribedResource,
  type ClusterSchema,
  type ClusterSchemas,
} from './cluster-schemas.ts';

export interface GroupDescription {
  readonly title: string;
  readonly version: string;
  readonly routes: readonly Route[];
  readonly resources: readonly DescribedResource[];
  readonly schemas: ClusterSchemas;
  readonly kinds?: readonly DescribedKind[];
}

type Action = 'list' | 'get' | 'watch' | 'watchlist';

const actionOf = (path: string): Action =>
  path.includes('/watch/') ? (path.includes(':name') ? 'watch' : 'watchlist') : path.includes(':name') ? 'get' : 'list';

const verbs: Readonly<Record<Action, string>> = { list: 'list', get: 'read', watch: 'watch', watchlist: 'watch' };

interface Operation {
  readonly path: string;
  readonly route: Route;
  readonly resource: DescribedResource | undefined;
  readonly operationId: string;
  readonly action: Action | undefined;
  /** Kind by which kubectl explain finds an operation without a resource. */
  readonly kind?: DescribedKind | undefined;
}

function operationsOf({ routes, resources, kinds = [] }: GroupDescription): Operation[] {
  return routes.map((route) => {
    const resource = resources.find(({ group, version, resource: plural }) =>
      new RegExp(`^/apis/${group}/${version}/(watch/)?${plural}(/:name)?$`).test(route.path),
    );
    const path = templated(route.path);
    if (resource === undefined) {
      const kind = kinds.find((one) => route.path === `/apis/${one.group}/${one.version}/${one.resource}`);
      return { path, route, resource, action: undefined, kind, operationId: `get${camel(route.path)}` };
    }
    const { group, version, kind } = resource;
    const action = actionOf(route.path);
    const many = action === 'watchlist' ? 'List' : '';
    return {
      path,
      route,
      resource,
      action,
      operationId: `${verbs[action]}${camel(group)}${camel(version)}${kind}${many}`,
    };
  });
}

const mediaTypes = ['application/json', 'application/yaml'];

function extensions({ action = 'get', resource, kind: described }: Operation): Readonly<Record<string, unknown>> {
  const target = resource ?? described;
  if (target === undefined) return {};
  const { group, version, kind } = target;
  return { 'x-kubernetes-action': action, 'x-kubernetes-group-version-kind': { group, version, kind } };
}

/** Returns the name of the schema of the response. The events of a watch have no such schema. */
const responseSchemaName = ({ action, resource }: Operation): string | undefined =>
  resource === undefined || action === 'watch' || action === 'watchlist'
    ? undefined
    : schemaName(resource, action === 'list' ? 'List' : '');

/**
 * Returns the schema of the response, inlined: kube-apiserver merges the document with others, which may already use
 * the name of the schema.
 */
function inlineResponseSchema({ responses }: Route): ClusterSchema | undefined {
  const schema = responses?.[200]?.content?.['application/json'];
  return schema && jsonSchemaOf(schema);
}

const unique = ({ in: location, schema }: ParameterDescription): Readonly<Record<string, unknown>> =>
  location === 'query' ? { ...jsonSchemaOf(schema), uniqueItems: true } : jsonSchemaOf(schema);

export function openapi3(description: GroupDescription): object {
  const { title, version, schemas } = description;
  const paths = operationsOf(description).map((operation) => {
    const { path, route, operationId } = operation;
    const schema = responseSchemaName(operation);
    const content =
      schema === undefined
        ? { 'application/json': { schema: inlineResponseSchema(route) ?? { type: 'object' } } }
        : Object.fromEntries(mediaTypes.map((type) => [type, { schema: { $ref: `#/components/schemas/${schema}` } }]));
    const get = {
      description: route.summary,
      operationId,
      parameters: (route.parameters ?? []).map((parameter) => ({ ...parameter, schema: unique(parameter) })),
      responses: { '200': { description: 'OK', content }, '401': { description: 'Unauthorized' } },
      ...extensions(operation),
    };
    return [path, { get }];
  });
  return {
    openapi: '3.0.0',
    info: { title, version },
    paths: Object.fromEntries(paths) as object,
    components: { schemas },
  };
}

export function swagger2(description: GroupDescription): object {
  const { title, version, schemas } = description;
  const paths = operationsOf(description).map((operation) => {
    const { path, route, operationId } = operation;
    const schema = responseSchemaName(operation);
    const response =
      schema === undefined ? asSwagger2(inlineResponseSchema(route)) : { $ref: `#/definitions/${schema}` };
    const get = {
      description: route.summary,
      operationId,
      produces: schema === undefined ? ['application/json'] : mediaTypes,
      schemes: ['https'],
      parameters: (route.parameters ?? []).map(({ schema: type, ...parameter }) => ({
        ...parameter,
        ...unique({ ...parameter, schema: type }),
      })),
      responses: {
        '200': { description: 'OK', ...(response === undefined ? {} : { schema: response }) },
        '401': { description: 'Unauthorized' },
      },
      ...extensions(operation),
    };
    return [path, { get }];
  });
  return {
    swagger: '2.0',
    info: { title, version },
    paths: Object.fromEntries(paths) as object,
    definitions: asSwagger2(schemas),
  };
}
