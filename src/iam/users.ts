/**
 * `users` of iam.platform.io: read from the copy that every replica has of them, written as the caller, so that the rights and the
 * audit log of kube-apiserver see the person. One's own may always be read, and of it the displayName changed, by the server itself.
 */
import type { Account } from '../accounts/directory/account.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import type { User, Users } from '../accounts/directory/users.ts';
import type { Authorizer } from '../auth/authorizers/authorizer.ts';
import { usersPath } from '../config/names.ts';
import { alreadyExists, badRequest, forbidden, notFound, serviceUnavailable, StatusError } from '../runtime/errors.ts';
import { authenticated } from '../http/access.ts';
import { inQuery, json, type ParameterDescription, type Handler, type Route } from '../http/route.ts';
import { jsonPatchSchema } from '../http/meta.ts';
import { demandJson } from '../http/request/negotiate.ts';
import { count, oneOrNone } from '../http/schema.ts';
import { writeJson } from '../http/response/write.ts';
import type { KubeClient, KubeRequest } from '../cluster/client/client.ts';
import { KubeError } from '../cluster/client/kube-error.ts';
import type { KubeObject, ObjectMeta } from '../cluster/client/kube-object.ts';
import { readBody } from '../runtime/read-body.ts';
import { asCaller, demandReached } from '../apimachinery/reading.ts';
import { ResourceResponses } from '../apimachinery/list/resource-responses.ts';
import { parseOldest } from '../apimachinery/list/list-options.ts';
import {
  commonNames,
  demandKnown,
  demandNoParameters,
  names,
  parseGetQuery,
  parseListQuery,
  parsePretty,
} from '../apimachinery/list/query.ts';
import { commonParameters, getParameters, listParameters } from '../apimachinery/list/parameters.ts';
import { readJson, recordOf, type JsonBody } from '../http/request/json-body.ts';
import { attributesOf, callerOf, demandOn, nameInPath, targetOf, usersResource, type Target } from './caller.ts';
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

/** What kube-apiserver is told of a write: it refuses fields that it does not know, unless the caller wants it otherwise. */
const dryRun = inQuery('dryRun', 'All: judge it and write nothing', oneOrNone('All'));
const handedOn = {
  write: [
    dryRun,
    inQuery('fieldManager', 'Who writes, in metadata.managedFields'),
    inQuery(
      'fieldValidation',
      'What is done about fields that it does not know; by default Strict',
      oneOrNone('Strict', 'Warn', 'Ignore').default('Strict'),
    ),
  ],
  delete: [
    dryRun,
    inQuery('propagationPolicy', 'When what belongs to it is deleted', oneOrNone('Orphan', 'Background', 'Foreground')),
    inQuery('gracePeriodSeconds', 'Until it is deleted', count),
  ],
} as const satisfies Readonly<Record<string, readonly ParameterDescription[]>>;
const jsonType = 'application/json';

export function usersRoutes({ client, authorizer, directory, users }: UsersParts): Route[] {
  const store = new UserStore({ directory, users });
  const answers = new ResourceResponses(usersDefinition);

  function demandCurrent(): void {
    if (!users.isCurrent()) throw serviceUnavailable('the users cannot be read from the cluster now');
  }

  const list: Handler = async (req, res, context) => {
    demandJson(req.headers);
    if (context.info.verb === 'watch')
      throw badRequest(
        'watch: users are watched at /kapis/resources.platform.io/v1alpha3/users.iam.platform.io, without the configured ones',
      );
    await demandOn(authorizer, context, { caller: callerOf(context), username: '' });
    const query = parseListQuery(context.query, usersDefinition);
    const oldest = parseOldest(context.query);
    demandCurrent();
    const all = store.store;
    demandReached(oldest, all.resourceVersion);
    await answers.list(req, res, context, query, { store: all, lasting: false });
  };

  const get: Handler = async (req, res, context) => {
    demandJson(req.headers);
    const target = targetOf(directory, context);
    if (target.own === undefined) await demandOn(authorizer, context, target);
    const query = parseGetQuery(context.query);
    demandCurrent();
    const object = store.get(target.username);
    if (object === undefined) throw notFound(usersResource, target.username);
    await answers.object(req, res, context, query, object);
  };

  /** Asks kube-apiserver as the caller and answers what it says, once the copy here shows it too. */
  async function pass(
    [req, res, context]: Parameters<Handler>,
    { caller, username }: Pick<Target, 'caller' | 'username'>,
    request: KubeRequest,
  ): Promise<void> {
    const { query, signal } = context;
    const handed = names(handedOn[request.method === 'DELETE' ? 'delete' : 'write']);
    demandKnown(query, [...handed, ...commonNames]);
    const path = request.method === 'POST' ? usersPath : `${usersPath}/${encodeURIComponent(username)}`;
    const { status, headers, body } = await asCaller(client, caller).stream(path, {
      ...request,
      query: {
        ...(request.method === 'DELETE' ? {} : { fieldValidation: 'Strict' }),
        ...Object.fromEntries(handed.flatMap((name) => (query.has(name) ? [[name, query.get(name)]] : []))),
      },
      signal,
    });
    const text = (await readBody(body)).toString('utf8');
    // kube-apiserver reports such a patch as an internal error.
    if (status === 500 && text.includes("Object 'apiVersion' is missing"))
      throw badRequest('the patch removes apiVersion, which every object must have');
    if (status < 200 || status > 299) throw KubeError.from(status, text).toStatusError();
    const object = JSON.parse(text) as User & { readonly details?: { readonly uid?: string } };
    if (!query.has('dryRun')) await shown(object, username);
    const { warning } = headers;
    await writeJson(req, res, withoutManagedFields(object), {
      status,
      ...(warning === undefined ? {} : { headers: { warning: [warning].flat().join(', ') } }),
      pretty: parsePretty(query),
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

  const create: Handler = async (...request) => {
    const [req, , context] = request;
    const caller = callerOf(context);
    await demandOn(authorizer, context, { caller, username: '' });
    const { value } = await readJson(req, [jsonType]);
    const { name, resourceVersion = '' } = recordOf(recordOf(value)?.['metadata']) ?? {};
    // kube-apiserver says so with a 500.
    if (resourceVersion !== '') throw badRequest('metadata.resourceVersion is not for what is yet to be made');
    const username = typeof name === 'string' ? name : '';
    if (directory.configured(username) !== undefined) throw alreadyExists(usersResource, username);
    await pass(request, { caller, username }, { method: 'POST', body: value });
  };

  const write: Handler = async (...request) => {
    const [req, , context] = request;
    const target = targetOf(directory, context);
    const { username, caller, own } = target;
    const method = req.method === 'PUT' ? 'PUT' : 'PATCH';
    if (own === undefined) await demandOn(authorizer, context, target);
    const { allowed } = await authorizer.authorize(caller, attributesOf(context, username));
    const body = await readJson(req, method === 'PUT' ? [jsonType] : [mergePatch, jsonPatch]);
    if (own !== undefined && !allowed) return changeOwn(request, own, body);
    demandStored(username);
    if (body.contentType === jsonPatch) demandJsonPatch(body.value);
    await pass(request, target, { method, body: body.value, contentType: body.contentType });
  };

  const remove: Handler = async (...request) => {
    const [req, , context] = request;
    const target = targetOf(directory, context);
    await demandOn(authorizer, context, target);
    const { value } = await readJson(req, [jsonType]);
    demandStored(target.username);
    await pass(request, target, { method: 'DELETE', ...(value === undefined ? {} : { body: value }) });
  };

  /** Throws for a user of the configuration. Only callers who may write users learn of it. */
  function demandStored(username: string): void {
    if (directory.configured(username) !== undefined) throw isConfigured(username);
  }

  async function changeOwn(
    [req, res, { query, log, auditID, signal }]: Parameters<Handler>,
    { username, uid }: Account,
    body: JsonBody,
  ): Promise<void> {
    demandStored(username);
    demandNoParameters({ query });
    const current = users.get(username);
    const wanted = current && displayNameIn(body, current);
    if (wanted === undefined)
      throw forbidden(usersResource, username, 'of your own user you may change displayName, and the password');
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

  const path = `${base}/users`;
  const writeParameters = [...handedOn.write, ...commonParameters];
  const written = { parameters: [nameInPath, ...writeParameters], refusals: [409, 422, 502] };
  return [
    {
      method: 'get',
      path,
      summary: 'List the users, configured ones too',
      access: authenticated,
      parameters: listParameters(usersDefinition),
      answers: json(userListSchema),
      refusals: [422],
      handler: list,
    },
    {
      method: 'post',
      path,
      summary: 'Make a user',
      access: authenticated,
      ...written,
      parameters: writeParameters,
      body: { required: true, content: { [jsonType]: userSchema } },
      answers: { 201: { description: 'Made', content: { [jsonType]: userSchema } } },
      handler: create,
    },
    {
      method: 'get',
      path: `${path}/:name`,
      summary: 'Read a user; your own you always may',
      access: { kind: 'authenticated', passwordChange: true },
      parameters: [nameInPath, ...getParameters],
      answers: json(userSchema),
      handler: get,
    },
    {
      method: 'put',
      path: `${path}/:name`,
      summary: 'Replace a user; of your own you always may change displayName',
      access: authenticated,
      ...written,
      body: { required: true, content: { [jsonType]: userSchema } },
      answers: json(userSchema),
      handler: write,
    },
    {
      method: 'patch',
      path: `${path}/:name`,
      summary: 'Change a user; of your own you always may change displayName',
      access: authenticated,
      ...written,
      body: { required: true, content: { [mergePatch]: userPatchSchema, [jsonPatch]: jsonPatchSchema } },
      answers: json(userSchema),
      handler: write,
    },
    {
      method: 'delete',
      path: `${path}/:name`,
      summary: 'Delete a user, which ends all that was begun as that user',
      access: authenticated,
      ...written,
      parameters: [nameInPath, ...handedOn.delete, ...commonParameters],
      body: { required: false, content: { [jsonType]: deleteOptionsSchema } },
      answers: json(deletedUserSchema, 'Deleted; or, while finalizers hold it, the user as it is'),
      handler: remove,
    },
  ];
}

const isConfigured = (username: string): StatusError =>
  forbidden(usersResource, username, 'the user stands in the cluster configuration object, and is changed there');

function withoutManagedFields(object: KubeObject): object {
  // A Status may have none.
  const { managedFields: _, ...metadata } = (object.metadata ?? {}) as ObjectMeta & { managedFields?: unknown };
  return { ...object, metadata };
}
