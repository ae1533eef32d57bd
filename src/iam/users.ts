/**
 * Serves `users` of iam.platform.io. Reads come from the cache. Writes are sent as the caller, so that kube-apiserver
 * authorizes and audits the caller. Users are allowed to read their own user and change its displayName, which is
 * written as this server.
 */
import type { Directory } from '../accounts/directory/directory.ts';
import type { Users } from '../accounts/directory/users.ts';
import { assertAllowed, type Authorizer } from '../auth/authorizers/authorizer.ts';
import { alreadyExists, badRequest, notFound, serviceUnavailable } from '../runtime/errors.ts';
import { authorizedByRoute } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { jsonOrYAML, objectResponse, type Route } from '../http/route.ts';
import { queryParameters } from '../http/request/parameters.ts';
import { jsonPatchSchema } from '../http/meta-schemas.ts';
import { described, oneOrNone, text as anyText } from '../http/schema.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import type { FieldSchemas } from '../cluster/field-schemas.ts';
import { assertReached } from '../apimachinery/reading.ts';
import { warnOfFields } from '../apimachinery/list/field-warnings.ts';
import { assertAcceptsObjects, ResourceResponses } from '../apimachinery/list/resource-responses.ts';
import { queriesOf } from '../apimachinery/list/query.ts';
import { commonShape } from '../apimachinery/common-parameters.ts';
import { getParameters } from '../apimachinery/list/kapis-parameters.ts';
import { recordOf, unparsedBody } from '../http/request/json-body.ts';
import {
  attributesOf,
  authorizeOn,
  authorizeOnOthers,
  targetUserOf,
  usernameInPath,
  usersResource,
} from './target-user.ts';
import { jsonPatch, mergePatch } from './display-name.ts';
import { deletedUserSchema, deleteOptionsSchema, userListSchema, userPatchSchema, userSchema } from './schemas.ts';
import { base, usersDefinition, UserStore } from './user-store.ts';
import { UserWriter, type Granted, type UserRequest } from './user-writer.ts';

export interface UsersParts {
  readonly client: KubeClient;
  readonly authorizer: Authorizer;
  readonly directory: Directory;
  readonly users: Users;
  readonly fieldSchemas: FieldSchemas;
}

/** Parameters that kube-apiserver validates. */
const dryRun = described('`All`: validate the request and write nothing', oneOrNone('All').optional());
const writeShape = {
  dryRun,
  fieldManager: described('Name of the writer, recorded in `metadata.managedFields`', anyText.optional()),
  fieldValidation: described(
    'Handling of unknown fields: `Strict` rejects them, `Warn` drops them and sends a `Warning` header, `Ignore` drops them',
    oneOrNone('Strict', 'Warn', 'Ignore').default('Strict'),
  ),
};
const deleteShape = {
  dryRun,
  propagationPolicy: described(
    'Handling of dependent objects: `Background` deletes them after the user, `Foreground` before, `Orphan` keeps them',
    oneOrNone('Orphan', 'Background', 'Foreground').optional(),
  ),
  gracePeriodSeconds: described(
    'Seconds before the user is deleted',
    anyText.meta({ type: 'integer', minimum: 0 }).optional(),
  ),
};
const writeParameters = queryParameters({ ...writeShape, ...commonShape });
const deleteParameters = queryParameters({ ...deleteShape, ...commonShape });

const ownUser = 'Without this right, you can change only the `displayName` of your own user.';
const grants =
  'Adding a group also requires the right to `impersonate` that group. Adding an identity requires the rights to `update users/identities` and to `impersonate` the user and each group of the user.';
const configuredUsers =
  'Users of the cluster configuration object can be changed and deleted only in that object; requests for such users get 403.';

const userBody = unparsedBody(jsonOrYAML(userSchema));

const path = `${base}/users` as const;
const userPath = `${path}/:name` as const;
const errors = [409, 422, 502];

export function usersRoutes(parts: UsersParts): Route[] {
  const writer = new UserWriter(parts);
  return [...readRoutes(parts), createRoute(parts, writer), ...changeRoutes(parts, writer), deleteRoute(parts, writer)];
}

function readRoutes({ users, ...parts }: UsersParts): Route[] {
  const store = new UserStore({ directory: parts.directory, users });
  const responses = new ResourceResponses(usersDefinition);
  const assertCurrent = (): void => {
    if (!users.isCurrent()) throw serviceUnavailable('users cannot be read from the cluster at the moment');
  };
  const warn = (exchange: Parameters<typeof warnOfFields>[3]): Promise<void> =>
    warnOfFields(parts.fieldSchemas, usersDefinition, '', exchange);
  return [
    defineRoute({
      method: 'get',
      path,
      summary: 'List users',
      description:
        'Returns the User objects and the users of the cluster configuration object, which have the annotation `iam.platform.io/source`. Requires the right to `list users` in `iam.platform.io`; with `fieldSelector=metadata.name=NAME` the right to that user is enough. Watch User objects at `/kapis/resources.platform.io/v1alpha3/users.iam.platform.io`.',
      access: authorizedByRoute,
      query: queriesOf(usersDefinition).list,
      responses: objectResponse(userListSchema, 'A page of users'),
      errors: [422],
      async authorize(request) {
        const granted = await authorizeOn(parts)(request);
        // This check precedes the parsing of the query, which may reject the parameters of a watch for other reasons.
        if (request.context.info.verb === 'watch')
          throw badRequest(
            'watch is not supported on this path; watch User objects at /kapis/resources.platform.io/v1alpha3/users.iam.platform.io',
          );
        return granted;
      },
      async handler({ req, res, context, query }) {
        assertAcceptsObjects(req);
        assertCurrent();
        const all = store.store;
        assertReached(query.oldest, all.resourceVersion);
        await warn({ res, context });
        await responses.list(req, res, context, query, { store: all, lasting: false });
      },
    }),
    defineRoute({
      method: 'get',
      path: userPath,
      summary: 'Get a user',
      description:
        'Requires the right to `get users` in `iam.platform.io`. No right is required for your own user, which you can also get with a token that only allows changing the password.',
      access: { ...authorizedByRoute, passwordChange: true },
      pathParameters: usernameInPath,
      query: getParameters,
      responses: objectResponse(userSchema, 'The user'),
      authorize: authorizeOnOthers(parts),
      async handler({ req, res, context, query, granted: { username } }) {
        assertAcceptsObjects(req);
        assertCurrent();
        await warn({ res, context });
        const object = store.get(username);
        if (object === undefined) throw notFound(usersResource, username);
        await responses.object(req, res, context, query, object);
      },
    }),
  ];
}

const createRoute = (parts: UsersParts, writer: UserWriter): Route =>
  defineRoute({
    method: 'post',
    path,
    summary: 'Create a user',
    description: `Requires the right to \`create users\` in \`iam.platform.io\`. ${grants} Set the password with a second request, \`PUT …/users/{name}/password\`.`,
    access: authorizedByRoute,
    query: writeParameters,
    body: userBody,
    responses: { 201: { description: 'The user was created', content: jsonOrYAML(userSchema) } },
    errors,
    authorize: authorizeOn(parts),
    async handler(request) {
      const { value } = request.body;
      const { name, resourceVersion = '' } = recordOf(recordOf(value)?.['metadata']) ?? {};
      // kube-apiserver would respond with status 500 to a new object that has a resourceVersion.
      if (resourceVersion !== '') throw badRequest('metadata.resourceVersion must not be set on a new object');
      const username = typeof name === 'string' ? name : '';
      if (parts.directory.configured(username) !== undefined) throw alreadyExists(usersResource, username);
      await writer.forward(request, username, request.query, { method: 'POST', body: value });
    },
  });

const authorizeWrite =
  ({ authorizer, directory }: UsersParts) =>
  async ({ context }: UserRequest): Promise<Granted> => {
    const target = targetUserOf(directory, context);
    const attributes = attributesOf(context, target.username);
    if (target.own === undefined) await assertAllowed(authorizer, target.caller, attributes);
    const isAllowed = target.own === undefined || (await authorizer.authorize(target.caller, attributes)).allowed;
    return { ...target, isAllowed };
  };

const changeRoutes = (parts: UsersParts, writer: UserWriter): Route[] => [
  defineRoute({
    method: 'put',
    path: userPath,
    summary: 'Replace a user',
    description: `Requires the right to \`update users\` in \`iam.platform.io\`. ${ownUser} ${grants} ${configuredUsers}`,
    access: authorizedByRoute,
    pathParameters: usernameInPath,
    query: writeParameters,
    body: userBody,
    responses: objectResponse(userSchema, 'The replaced user'),
    errors,
    authorize: authorizeWrite(parts),
    handler: (request) => writer.write(request, 'PUT'),
  }),
  defineRoute({
    method: 'patch',
    path: userPath,
    summary: 'Change a user',
    description: `A body of the type \`application/yaml\` is a merge patch. Requires the right to \`patch users\` in \`iam.platform.io\`. ${ownUser} ${grants} ${configuredUsers}`,
    access: authorizedByRoute,
    pathParameters: usernameInPath,
    query: writeParameters,
    body: unparsedBody({
      [mergePatch]: userPatchSchema,
      [jsonPatch]: jsonPatchSchema,
      'application/yaml': userPatchSchema,
    }),
    responses: objectResponse(userSchema, 'The changed user'),
    errors,
    authorize: authorizeWrite(parts),
    handler: (request) => writer.write(request, 'PATCH'),
  }),
];

const deleteRoute = (parts: UsersParts, writer: UserWriter): Route =>
  defineRoute({
    method: 'delete',
    path: userPath,
    summary: 'Delete a user',
    description: `Also deletes the password, the sessions and the login records, so every replica rejects the tokens of the user. Role bindings that name the user remain, and apply to a later user of the same name. Requires the right to \`delete users\` in \`iam.platform.io\`. ${configuredUsers}`,
    access: authorizedByRoute,
    pathParameters: usernameInPath,
    query: deleteParameters,
    body: unparsedBody(jsonOrYAML(deleteOptionsSchema), false),
    responses: objectResponse(deletedUserSchema, 'The user was deleted, or will be once its finalizers are removed'),
    errors,
    authorize: authorizeOn(parts),
    async handler(request) {
      const { username } = request.granted;
      writer.assertStored(username);
      const { value } = request.body;
      await writer.forward(request, username, request.query, {
        method: 'DELETE',
        ...(value === undefined ? {} : { body: value }),
      });
    },
  });
