/**
 * `users` of iam.platform.io: read from the cache, and written as the caller, so that kube-apiserver authorizes and audits the person.
 * Users may read their own user and change its displayName; the server writes that.
 */
import type { Account } from '../accounts/directory/account.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import type { User, Users } from '../accounts/directory/users.ts';
import { demand, type Authorizer } from '../auth/authorizers/authorizer.ts';
import { usersPath } from '../config/names.ts';
import { alreadyExists, badRequest, forbidden, notFound, serviceUnavailable, StatusError } from '../runtime/errors.ts';
import { authenticated, authenticatedToChangePassword } from '../http/access.ts';
import { defineRoute, type RouteRequest } from '../http/define-route.ts';
import { json, type Route } from '../http/route.ts';
import { queryParameters } from '../http/request/parameters.ts';
import { jsonPatchSchema } from '../http/meta.ts';
import { demandJson } from '../http/request/negotiate.ts';
import { described, oneOrNone, text as anyText } from '../http/schema.ts';
import { writeJson } from '../http/response/write.ts';
import type { KubeClient, KubeRequest } from '../cluster/client/client.ts';
import { KubeError } from '../cluster/client/kube-error.ts';
import type { KubeObject, ObjectMeta } from '../cluster/client/kube-object.ts';
import { readBody } from '../runtime/promises.ts';
import { asCaller, demandReached } from '../apimachinery/reading.ts';
import { ResourceResponses } from '../apimachinery/list/resource-responses.ts';
import { queriesOf } from '../apimachinery/list/query.ts';
import { commonParameters, commonShape } from '../apimachinery/common-parameters.ts';
import { getParameters } from '../apimachinery/list/parameters.ts';
import { recordOf, unparsedBody, type JSONValue } from '../http/request/json-body.ts';
import {
  attributesOf,
  authorizeOn,
  authorizeOnOthers,
  targetOf,
  usernameInPath,
  usersResource,
  type Target,
} from './caller.ts';
import { displayNameIn, jsonPatch, mergePatch } from './display-name.ts';
import { demandJsonPatch } from './json-patch.ts';
import { deletedUserSchema, deleteOptionsSchema, userListSchema, userPatchSchema, userSchema } from './schemas.ts';
import { base, usersDefinition, UserStore } from './user-store.ts';

export interface UsersParts {
  readonly client: KubeClient;
  readonly authorizer: Authorizer;
  readonly directory: Directory;
  readonly users: Users;
}

/** Parameters that kube-apiserver validates. */
const dryRun = described('`All`: validate the request and write nothing', oneOrNone('All').optional());
const writeShape = {
  dryRun,
  fieldManager: described('Name of the writer in `metadata.managedFields`', anyText.optional()),
  fieldValidation: described(
    'Handling of unknown fields: `Strict` rejects them, `Warn` drops them with the header `Warning`, `Ignore` drops them',
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

const ownUser = 'Without it you can change only the `displayName` of your own user.';
const grants =
  'Adding a group also requires the right to `impersonate` that group. Adding an identity requires the rights to `update users/identities` and to `impersonate` the user and each group of the user.';
const configuredUsers =
  'For a user of the cluster configuration object, which is changed and deleted only there, the response is 403.';

const jsonType = 'application/json';
const userBody = unparsedBody({ [jsonType]: userSchema });

type UserRequest = Pick<RouteRequest<string, typeof authenticated>, 'req' | 'res' | 'context'>;
type WriteQuery = ReturnType<typeof writeParameters.parse>;

/** `isAllowed`: the caller has the right, beside what one may do with one's own user. */
type Granted = Target & { readonly isAllowed: boolean };

export function usersRoutes(parts: UsersParts): Route[] {
  const { client, authorizer, directory, users } = parts;
  const store = new UserStore({ directory, users });
  const responses = new ResourceResponses(usersDefinition);

  function demandCurrent(): void {
    if (!users.isCurrent()) throw serviceUnavailable('the users cannot be read from the cluster now');
  }

  async function authorizeWrite({ context }: UserRequest): Promise<Granted> {
    const target = targetOf(directory, context);
    const attributes = attributesOf(context, target.username);
    if (target.own === undefined) await demand(authorizer, target.caller, attributes);
    const isAllowed = target.own === undefined || (await authorizer.authorize(target.caller, attributes)).allowed;
    return { ...target, isAllowed };
  }

  /** Sends a request to kube-apiserver as the caller, and responds once the users cached here have the change. */
  async function pass(
    { req, res, context: { user, signal } }: UserRequest,
    username: string,
    { pretty, ...parameters }: WriteQuery | ReturnType<typeof deleteParameters.parse>,
    request: KubeRequest,
  ): Promise<void> {
    const query = { ...parameters, timeout: undefined };
    const path = request.method === 'POST' ? usersPath : `${usersPath}/${encodeURIComponent(username)}`;
    const { status, headers, body } = await asCaller(client, user).stream(path, { ...request, query, signal });
    const text = (await readBody(body)).toString('utf8');
    // kube-apiserver reports such a patch as an internal error.
    if (status === 500 && text.includes("Object 'apiVersion' is missing"))
      throw badRequest('the patch removes apiVersion, which every object must have');
    if (status < 200 || status > 299) throw KubeError.from(status, text).toStatusError();
    const object = JSON.parse(text) as User & { readonly details?: { readonly uid?: string } };
    if (query.dryRun === undefined) await shown(object, username);
    const { warning } = headers;
    await writeJson(req, res, withoutManagedFields(object), {
      status,
      ...(warning === undefined ? {} : { headers: { warning: [warning].flat().join(', ') } }),
      pretty,
    });
  }

  /** Who reads after a write reads what was written. A deletion answers with a Status that has the uid of what is gone. */
  async function shown(
    { kind, metadata, details }: User & { readonly details?: { readonly uid?: string } },
    username: string,
  ): Promise<void> {
    const present = (): User | undefined => users.get(kind === 'User' ? metadata.name : username);
    await directory.seen(() => {
      const now = present()?.metadata;
      return kind === 'User'
        ? now !== undefined && BigInt(now.resourceVersion ?? 0) >= BigInt(metadata.resourceVersion ?? 0)
        : now === undefined || now.uid !== details?.uid;
    });
  }

  async function write(
    request: UserRequest & { readonly query: WriteQuery; readonly body: JSONValue; readonly granted: Granted },
    method: 'PUT' | 'PATCH',
  ): Promise<void> {
    const {
      body,
      granted: { username, own, isAllowed },
    } = request;
    if (own !== undefined && !isAllowed) return changeOwn(request, own, body);
    demandStored(username);
    if (body.contentType === jsonPatch) demandJsonPatch(body.value);
    await pass(request, username, request.query, { method, body: body.value, contentType: body.contentType });
  }

  /** Throws for a user of the configuration. Only callers who may write users learn of it. */
  function demandStored(username: string): void {
    if (directory.configured(username) !== undefined) throw isConfigured(username);
  }

  async function changeOwn(
    { req, res, context: { query, log, auditID, signal } }: UserRequest,
    { username, uid }: Account,
    body: JSONValue,
  ): Promise<void> {
    demandStored(username);
    commonParameters.parse(query);
    const current = users.get(username);
    const wanted = current && displayNameIn(body, current);
    if (wanted === undefined)
      throw forbidden(usersResource, username, 'only displayName and the password of your own user may be changed');
    const { displayName, resourceVersion } = wanted;
    const metadata = { uid, ...(resourceVersion === '' ? {} : { resourceVersion }) };
    const object = await client.json<User>(`${usersPath}/${username}`, {
      method: 'PATCH',
      contentType: mergePatch,
      body: { metadata, spec: { displayName } },
      signal,
    });
    log.info('a user changed their displayName', { auditID, user: username });
    await shown(object, username);
    await writeJson(req, res, withoutManagedFields(object));
  }

  const path = `${base}/users` as const;
  const userPath = `${path}/:name` as const;
  const errors = [409, 422, 502];
  return [
    defineRoute({
      method: 'get',
      path,
      summary: 'List users',
      description:
        'Returns the User objects and the users of the cluster configuration object, which have the annotation `iam.platform.io/source`. Requires the right to `list users` in `iam.platform.io`. User objects are watched at `/kapis/resources.platform.io/v1alpha3/users.iam.platform.io`.',
      access: authenticated,
      query: queriesOf(usersDefinition).list,
      responses: json(userListSchema, 'A page of users'),
      errors: [422],
      authorize(request) {
        demandJson(request.req.headers);
        if (request.context.info.verb === 'watch')
          throw badRequest(
            'watch is not supported here; watch User objects at /kapis/resources.platform.io/v1alpha3/users.iam.platform.io',
          );
        return authorizeOn(parts)(request);
      },
      async handler({ req, res, context, query }) {
        demandCurrent();
        const all = store.store;
        demandReached(query.oldest, all.resourceVersion);
        await responses.list(req, res, context, query, { store: all, lasting: false });
      },
    }),
    defineRoute({
      method: 'post',
      path,
      summary: 'Create a user',
      description: `Requires the right to \`create users\` in \`iam.platform.io\`. ${grants} Set the password with a second request, \`PUT …/users/{name}/password\`.`,
      access: authenticated,
      query: writeParameters,
      body: userBody,
      responses: { 201: { description: 'The user was created', content: { [jsonType]: userSchema } } },
      errors,
      authorize: authorizeOn(parts),
      async handler(request) {
        const { value } = request.body;
        const { name, resourceVersion = '' } = recordOf(recordOf(value)?.['metadata']) ?? {};
        // kube-apiserver says so with a 500.
        if (resourceVersion !== '') throw badRequest('metadata.resourceVersion must not be set on a new object');
        const username = typeof name === 'string' ? name : '';
        if (directory.configured(username) !== undefined) throw alreadyExists(usersResource, username);
        await pass(request, username, request.query, { method: 'POST', body: value });
      },
    }),
    defineRoute({
      method: 'get',
      path: userPath,
      summary: 'Get a user',
      description:
        'Requires the right to `get users` in `iam.platform.io`. Your own user needs no right; a token that only allows changing the password is accepted.',
      access: authenticatedToChangePassword,
      pathParameters: usernameInPath,
      query: getParameters,
      responses: json(userSchema, 'The user'),
      authorize(request) {
        demandJson(request.req.headers);
        return authorizeOnOthers(parts)(request);
      },
      async handler({ req, res, context, query, granted: { username } }) {
        demandCurrent();
        const object = store.get(username);
        if (object === undefined) throw notFound(usersResource, username);
        await responses.object(req, res, context, query, object);
      },
    }),
    defineRoute({
      method: 'put',
      path: userPath,
      summary: 'Replace a user',
      description: `Requires the right to \`update users\` in \`iam.platform.io\`. ${ownUser} ${grants} ${configuredUsers}`,
      access: authenticated,
      pathParameters: usernameInPath,
      query: writeParameters,
      body: userBody,
      responses: json(userSchema, 'The replaced user'),
      errors,
      authorize: authorizeWrite,
      handler: (request) => write(request, 'PUT'),
    }),
    defineRoute({
      method: 'patch',
      path: userPath,
      summary: 'Change a user',
      description: `Requires the right to \`patch users\` in \`iam.platform.io\`. ${ownUser} ${grants} ${configuredUsers}`,
      access: authenticated,
      pathParameters: usernameInPath,
      query: writeParameters,
      body: unparsedBody({ [mergePatch]: userPatchSchema, [jsonPatch]: jsonPatchSchema }),
      responses: json(userSchema, 'The changed user'),
      errors,
      authorize: authorizeWrite,
      handler: (request) => write(request, 'PATCH'),
    }),
    defineRoute({
      method: 'delete',
      path: userPath,
      summary: 'Delete a user',
      description: `Deletes the password, the sessions and the login records too, so every replica refuses the tokens of the user. Role bindings to the name stay, and apply to a later user of that name. Requires the right to \`delete users\` in \`iam.platform.io\`. ${configuredUsers}`,
      access: authenticated,
      pathParameters: usernameInPath,
      query: deleteParameters,
      body: unparsedBody({ [jsonType]: deleteOptionsSchema }, false),
      responses: json(deletedUserSchema, 'The user was deleted, or will be once its finalizers are removed'),
      errors,
      authorize: authorizeOn(parts),
      async handler(request) {
        const { username } = request.granted;
        demandStored(username);
        const { value } = request.body;
        await pass(request, username, request.query, {
          method: 'DELETE',
          ...(value === undefined ? {} : { body: value }),
        });
      },
    }),
  ];
}

const isConfigured = (username: string): StatusError =>
  forbidden(usersResource, username, 'the user is in the cluster configuration object: change it there');

function withoutManagedFields(object: KubeObject): object {
  // A Status may have none.
  const { managedFields: _, ...metadata } = (object.metadata ?? {}) as ObjectMeta & { managedFields?: unknown };
  return { ...object, metadata };
}
