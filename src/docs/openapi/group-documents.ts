/** The OpenAPI documents of a group and version of the aggregated face, made from the routes that serve it. */
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
  /** By which kubectl explain finds it, where it is of no resource. */
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

function extensions({ action = 'get', resource, kind: own }: Operation): Readonly<Record<string, unknown>> {
  const described = resource ?? own;
  if (described === undefined) return {};
  const { group, version, kind } = described;
  return { 'x-kubernetes-action': action, 'x-kubernetes-group-version-kind': { group, version, kind } };
}

/** The schema of an answer; frames of a watch have none of their own. */
const answerSchema = ({ action, resource }: Operation): string | undefined =>
  resource === undefined || action === 'watch' || action === 'watchlist'
    ? undefined
    : schemaName(resource, action === 'list' ? 'List' : '');

/** Without names: kube-apiserver merges the document with those of others. */
function answerOf({ responses }: Route): ClusterSchema | undefined {
  const schema = responses?.[200]?.content?.['application/json'];
  return schema && jsonSchemaOf(schema);
}

const unique = ({ in: place, schema }: ParameterDescription): Readonly<Record<string, unknown>> =>
  place === 'query' ? { ...jsonSchemaOf(schema), uniqueItems: true } : jsonSchemaOf(schema);

export function openapi3(description: GroupDescription): object {
  const { title, version, schemas } = description;
  const paths = operationsOf(description).map((operation) => {
    const { path, route, operationId } = operation;
    const schema = answerSchema(operation);
    const content =
      schema === undefined
        ? { 'application/json': { schema: answerOf(route) ?? { type: 'object' } } }
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
    const schema = answerSchema(operation);
    const answer = schema === undefined ? asSwagger2(answerOf(route)) : { $ref: `#/definitions/${schema}` };
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
        '200': { description: 'OK', ...(answer === undefined ? {} : { schema: answer }) },
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
