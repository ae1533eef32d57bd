/**
 * Operations of a custom resource, as kube-apiserver generates them from a CustomResourceDefinition
 * (apiextensions-apiserver pkg/controller/openapi/builder).
 */
import {
  inPath,
  type ResponseDescriptions,
  type BodyDescription,
  type ParameterDescription,
} from '../../http/route.ts';
import { objectMetaSchema } from '../../http/meta-schemas.ts';
import { jsonSchemaOf, parameterOf, withName, type JSONSchema } from './json-schema.ts';
import {
  bodyOf,
  contentOf,
  deleteBody,
  listOf,
  parametersOf,
  patchBody,
  scale,
  status,
  type Action,
} from './kube-operations.ts';
import { camel, packageOf } from './operations.ts';
import type { OperationDescription } from './operation.ts';
import { errorResponse } from './error-responses.ts';

/** The part of apiextensions.k8s.io/v1 CustomResourceDefinition that is read. */
export interface Definition {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string; readonly listKind?: string; readonly plural: string };
    readonly scope: string;
    readonly versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly deprecated?: boolean;
      readonly schema?: { readonly openAPIV3Schema?: JSONSchema };
      readonly subresources?: { readonly status?: object; readonly scale?: object };
    }[];
  };
}

type Version = Definition['spec']['versions'][number];

const methods = {
  list: 'get',
  get: 'get',
  post: 'post',
  put: 'put',
  patch: 'patch',
  delete: 'delete',
  deletecollection: 'delete',
} as const;
const verbs = {
  list: 'list',
  get: 'read',
  post: 'create',
  put: 'replace',
  patch: 'patch',
  delete: 'delete',
  deletecollection: 'delete',
} as const;
const summaries: Readonly<Record<Action, string>> = {
  list: 'List or watch objects of kind',
  get: 'Read the',
  post: 'Create a',
  put: 'Replace the',
  patch: 'Change the',
  delete: 'Delete the',
  deletecollection: 'Delete objects of kind',
};

const errorStatuses: Readonly<Record<Action, readonly number[]>> = {
  list: [410],
  get: [404],
  post: [404, 409, 413, 415, 422],
  put: [404, 409, 413, 415, 422],
  patch: [404, 409, 413, 415, 422],
  delete: [404, 409],
  deletecollection: [409],
};
const commonErrorStatuses = [400, 401, 403, 406, 429, 500, 503, 504];

/**
 * Returns the schema with the members that all objects have. The writer of the document translates the keywords of
 * Kubernetes.
 */
function objectSchema(name: string, { spec: { group, names } }: Definition, version: Version): JSONSchema {
  const given = version.schema?.openAPIV3Schema ?? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const properties = given['properties'] as Readonly<Record<string, JSONSchema>> | undefined;
  // Names of kinds contain no dots, so no kind has the same name as one of these schemas.
  const parts = ['spec', 'status'].flatMap((part) => {
    const schema = properties?.[part];
    return schema?.['properties'] === undefined ? [] : [[part, withName(`${name}.${part}`, schema)]];
  });
  return withName(name, {
    ...given,
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      ...properties,
      ...Object.fromEntries(parts),
      metadata: jsonSchemaOf(objectMetaSchema),
    },
    'x-kubernetes-group-version-kind': [{ group, version: version.name, kind: names.kind }],
  });
}

/** Returns the operations of all served versions. */
export const operationsOf = (definition: Definition): readonly OperationDescription[] =>
  definition.spec.versions.filter(({ served }) => served).flatMap((version) => ofVersion(definition, version));

/** Returns the definition without its schemas. */
export const withoutSchemas = ({ spec }: Definition): Definition => ({
  spec: { ...spec, versions: spec.versions.map(({ schema: _schema, ...version }) => version) },
});

export const tagOf = (group: string, version: string): string =>
  `${camel(group).charAt(0).toLowerCase()}${camel(group).slice(1)}_${version}`;

const requestBodyOf = (action: Action, of: JSONSchema): BodyDescription<JSONSchema> | undefined =>
  ({
    post: bodyOf(of),
    put: bodyOf(of),
    patch: patchBody,
    delete: deleteBody,
    deletecollection: deleteBody,
    get: undefined,
    list: undefined,
  })[action];

const errorsOf = (action: Action): OperationDescription['errors'] =>
  new Map(
    [...commonErrorStatuses, ...errorStatuses[action]]
      .toSorted((a, b) => a - b)
      .map((code) => [code, errorResponse(code, { 'application/json': status })]),
  );

/** Describes the responses to an action. `of`: schema of the object or, for the action `list`, of the list. */
function responsesOf(action: Action, of: JSONSchema): ResponseDescriptions<JSONSchema> {
  const ok = { description: 'The object', content: contentOf(of) };
  const created = { 201: { ...ok, description: 'The object was created' } };
  if (action === 'list')
    return { 200: { ...ok, description: 'The objects. With `watch=true`, one event per line until the watch ends' } };
  if (action === 'get') return { 200: ok };
  if (action === 'put' || action === 'patch') return { 200: ok, ...created };
  const accepted = 'The request was accepted and is not finished yet';
  if (action === 'post') return { ...created, 200: ok, 202: { ...ok, description: accepted } };
  const content = contentOf(status);
  if (action === 'deletecollection') return { 200: { description: 'The objects were deleted', content } };
  return { 200: { description: 'The object was deleted', content }, 202: { description: accepted, content } };
}

function ofVersion(definition: Definition, version: Version): OperationDescription[] {
  const { group, names, scope } = definition.spec;
  const { kind, plural, listKind = `${kind}List` } = names;
  const namespaced = scope === 'Namespaced';
  const base = `/apis/${group}/${version.name}`;
  const collection = `${base}/${namespaced ? 'namespaces/{namespace}/' : ''}${plural}`;
  const prefix = packageOf(group, version.name);
  const object = objectSchema(`${prefix}.${kind}`, definition, version);
  const list = listOf(`${prefix}.${listKind}`, object);
  const about = `${camel(group)}${camel(version.name)}`;
  const inNamespace = parameterOf(inPath('namespace', 'Name of the namespace'));
  const name = parameterOf(inPath('name', 'Name of the object'));

  /** Describes an action. `of`: schema of the request and the response. */
  function operation(
    action: Action,
    path: string,
    { of = object, suffix = '', everywhere = false }: { of?: JSONSchema; suffix?: string; everywhere?: boolean } = {},
  ): OperationDescription {
    const many = action === 'deletecollection' ? 'Collection' : '';
    const scoped = namespaced && !everywhere ? 'Namespaced' : '';
    const inPaths = [
      ...(path.includes('{namespace}') ? [inNamespace] : []),
      ...(path.includes('{name}') ? [name] : []),
    ];
    const all: readonly ParameterDescription<JSONSchema>[] = [...inPaths, ...parametersOf(action)];
    const what = suffix === '' ? kind : `${suffix.toLowerCase()} of the ${kind}`;
    return {
      method: methods[action],
      path,
      operationId: `${verbs[action]}${about}${many}${scoped}${kind}${suffix}${everywhere ? 'ForAllNamespaces' : ''}`,
      tag: tagOf(group, version.name),
      summary: `${summaries[action]} ${what}`,
      ...(version.deprecated === true ? { deprecated: true } : {}),
      parameters: all,
      body: requestBodyOf(action, of),
      responses: responsesOf(action, action === 'list' ? list : of),
      errors: errorsOf(action),
      extensions: {
        'x-kubernetes-action': action,
        'x-kubernetes-group-version-kind':
          of === scale
            ? { group: 'autoscaling', version: 'v1', kind: 'Scale' }
            : { group, version: version.name, kind },
      },
    };
  }

  const one = `${collection}/{name}`;
  const sub = (suffix: string, of: JSONSchema): OperationDescription[] =>
    (['get', 'put', 'patch'] as const).map((action) =>
      operation(action, `${one}/${suffix.toLowerCase()}`, { of, suffix }),
    );
  return [
    ...(namespaced ? [operation('list', `${base}/${plural}`, { everywhere: true })] : []),
    ...(['list', 'post', 'deletecollection'] as const).map((action) => operation(action, collection)),
    ...(['get', 'put', 'patch', 'delete'] as const).map((action) => operation(action, one)),
    ...(version.subresources?.status === undefined ? [] : sub('Status', object)),
    ...(version.subresources?.scale === undefined ? [] : sub('Scale', scale)),
  ];
}
