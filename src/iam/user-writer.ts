/**
 * Writes `users` to kube-apiserver as the caller. Only the displayName of the caller's own user is written as this
 * server.
 */
import type { Account } from '../accounts/directory/account.ts';
import type { Directory } from '../accounts/directory/directory.ts';
import type { User, Users } from '../accounts/directory/users.ts';
import { asCaller } from '../apimachinery/reading.ts';
import type { KubeClient, KubeRequest } from '../cluster/client/client.ts';
import { KubeError } from '../cluster/client/kube-error.ts';
import type { KubeObject, ObjectMeta } from '../cluster/client/kube-object.ts';
import { usersPath } from '../config/names.ts';
import type { authorizedByRoute } from '../http/access.ts';
import type { RouteRequest } from '../http/define-route.ts';
import type { JSONValue } from '../http/request/json-body.ts';
import { writeObject } from '../http/response/pretty.ts';
import { badRequest, forbidden, type StatusError } from '../runtime/errors.ts';
import { readBody } from '../runtime/promises.ts';
import { usersResource, type TargetUser } from './target-user.ts';
import { displayNameIn, jsonPatch, mergePatch } from './display-name.ts';
import { assertJsonPatch } from './json-patch.ts';

export type UserRequest = Pick<RouteRequest<string, typeof authorizedByRoute>, 'req' | 'res' | 'context'>;

/** `isAllowed` is true if the caller has the right by RBAC, and not only because the caller is the user in the path. */
export type Granted = TargetUser & { readonly isAllowed: boolean };

/**
 * Parsed parameters: `pretty` applies to the response of this server, and all other parameters are sent to
 * kube-apiserver.
 */
interface WriteQuery {
  readonly pretty: boolean;
  readonly timeout?: string | undefined;
  readonly dryRun?: string | undefined;
  readonly fieldManager?: string | undefined;
  readonly fieldValidation?: string | undefined;
  readonly propagationPolicy?: string | undefined;
  readonly gracePeriodSeconds?: string | undefined;
}

type WriteRequest = UserRequest & {
  readonly query: WriteQuery;
  readonly body: JSONValue;
  readonly granted: Granted;
};

interface WriterParts {
  readonly client: KubeClient;
  readonly directory: Directory;
  readonly users: Users;
}

export class UserWriter {
  readonly #parts: WriterParts;

  constructor(parts: WriterParts) {
    this.#parts = parts;
  }

  /** Forwards a request to kube-apiserver as the caller. Responds once the cached users include the change. */
  async forward(
    { req, res, context: { user, signal } }: UserRequest,
    username: string,
    { pretty, ...parameters }: WriteQuery,
    request: KubeRequest,
  ): Promise<void> {
    const query = { ...parameters, timeout: undefined };
    const path = request.method === 'POST' ? usersPath : `${usersPath}/${encodeURIComponent(username)}`;
    const { status, headers, body } = await asCaller(this.#parts.client, user).stream(path, {
      ...request,
      query,
      signal,
    });
    const text = (await readBody(body)).toString('utf8');
    // kube-apiserver responds with an internal error to a patch that removes apiVersion.
    if (status === 500 && text.includes("Object 'apiVersion' is missing"))
      throw badRequest('the patch removes apiVersion, which every object must have');
    if (status < 200 || status > 299) throw KubeError.from(status, text).toStatusError();
    const object = JSON.parse(text) as User & { readonly details?: { readonly uid?: string } };
    if (parameters.dryRun === undefined) await this.#waitUntilCached(object, username);
    const { warning } = headers;
    await writeObject(req, res, withoutManagedFields(object), {
      status,
      ...(warning === undefined ? {} : { headers: { warning: [warning].flat().join(', ') } }),
      pretty,
    });
  }

  /**
   * Waits until the cached users include the change, so that the caller can read it. The Status of a deletion has the
   * uid of the user.
   */
  async #waitUntilCached(
    { kind, metadata, details }: User & { readonly details?: { readonly uid?: string } },
    username: string,
  ): Promise<void> {
    const cached = (): User | undefined => this.#parts.users.get(kind === 'User' ? metadata.name : username);
    await this.#parts.directory.waitUntil(() => {
      const now = cached()?.metadata;
      return kind === 'User'
        ? now !== undefined && BigInt(now.resourceVersion ?? 0) >= BigInt(metadata.resourceVersion ?? 0)
        : now === undefined || now.uid !== details?.uid;
    });
  }

  async write(request: WriteRequest, method: 'PUT' | 'PATCH'): Promise<void> {
    const {
      body,
      granted: { username, own, isAllowed },
    } = request;
    if (own !== undefined && !isAllowed) return this.#changeOwn(request, own);
    this.assertStored(username);
    if (body.contentType === jsonPatch) assertJsonPatch(body.value);
    await this.forward(request, username, request.query, { method, body: body.value, contentType: body.contentType });
  }

  /**
   * Throws 403 for a user of the configuration. Called after authorization, so that callers without the right do not
   * learn whether such a user exists.
   */
  assertStored(username: string): void {
    if (this.#parts.directory.configured(username) !== undefined) throw isConfigured(username);
  }

  async #changeOwn(
    { req, res, context: { log, auditID, signal }, query: { pretty, ...parameters }, body }: WriteRequest,
    { username, uid }: Account,
  ): Promise<void> {
    this.assertStored(username);
    const current = this.#parts.users.get(username);
    const change = current && displayNameIn(body, current);
    if (change === undefined)
      throw forbidden(
        usersResource,
        username,
        'you are allowed to change only displayName and the password of your own user',
      );
    const { displayName, resourceVersion } = change;
    const metadata = { uid, ...(resourceVersion === '' ? {} : { resourceVersion }) };
    const object = await this.#parts.client.json<User>(`${usersPath}/${username}`, {
      method: 'PATCH',
      contentType: mergePatch,
      body: { metadata, spec: { displayName } },
      query: { ...parameters, timeout: undefined },
      signal,
    });
    if (parameters.dryRun === undefined) {
      log.info('displayName changed', { auditID, user: username });
      await this.#waitUntilCached(object, username);
    }
    await writeObject(req, res, withoutManagedFields(object), { pretty });
  }
}

const isConfigured = (username: string): StatusError =>
  forbidden(usersResource, username, 'the user is in the cluster configuration object: change the user there');

function withoutManagedFields(object: KubeObject): object {
  // A Status may have no metadata.
  const { managedFields: _, ...metadata } = (object.metadata ?? {}) as ObjectMeta & { managedFields?: unknown };
  return { ...object, metadata };
}
