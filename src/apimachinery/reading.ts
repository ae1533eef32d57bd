/**
 * Checks that /apis and /kapis make before a read: the caller's right to the underlying resource, and the version of
 * the cache.
 */
import { assertAllowed, type Authorizer } from '../auth/authorizers/authorizer.ts';
import { timeout, unauthorized, type StatusError } from '../runtime/errors.ts';
import type { RequestContext } from '../http/route.ts';
import { KubeError } from '../cluster/client/kube-error.ts';
import type { RequestedVersion } from './list/list-options.ts';
import type { Resource } from '../cluster/catalogue/resource.ts';
import { withTimeout } from '../cluster/catalogue/waiting.ts';
import { upstreamIdentityOf, type UserInfo } from '../auth/user.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { asUser } from '../cluster/client/impersonation.ts';

/** Returns a client that impersonates the caller at kube-apiserver. Throws 401 if the request is not authenticated. */
export function asCaller(client: Pick<KubeClient, 'stream'>, user: UserInfo | undefined): Pick<KubeClient, 'stream'> {
  if (user === undefined) throw unauthorized();
  return asUser(client, upstreamIdentityOf(user));
}

/** Milliseconds to wait for a resourceVersion that the cache has not reached. */
const maxVersionWait = 3000;

/** Throws 403 unless the caller is allowed to perform the requested action on the underlying resource. */
export async function assertUnderlyingAllowed<F>(
  authorizer: Authorizer,
  { user, info }: RequestContext,
  { definition: { underlying } }: Resource<F>,
): Promise<void> {
  if (user === undefined) throw unauthorized();
  const { group, resource } = underlying;
  const { verb, namespace, name } = info;
  await assertAllowed(authorizer, user, { verb, group, resource, namespace, name });
}

/**
 * Throws 403 unless the caller is still allowed to make the request. A filter authorized the request when it started.
 */
export async function assertStillAllowed(authorizer: Authorizer, { user, info }: RequestContext): Promise<void> {
  if (user === undefined) throw unauthorized();
  const { verb, group, resource, subresource, namespace, name } = info;
  await assertAllowed(authorizer, user, { verb, group, resource, subresource, namespace, name });
}

const tooLargeVersion = (version: number, current: number): StatusError =>
  timeout(`Timeout: Too large resource version: ${version}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });

/** Throws 504 if the cache has not reached the requested resourceVersion. */
export function assertReached(version: RequestedVersion, current: number): void {
  if (typeof version === 'number' && version > current) throw tooLargeVersion(version, current);
}

/** Waits until the cache reaches the requested resourceVersion. Throws 504 if that takes too long. */
export async function waitForVersion<F>(
  resource: Resource<F>,
  version: RequestedVersion,
  context: RequestContext,
): Promise<void> {
  const { store } = resource;
  if (typeof version !== 'number' || store.resourceVersion >= version) return;
  const late = (): StatusError => tooLargeVersion(version, store.resourceVersion);
  await withTimeout(context.signal, maxVersionWait, late, async (signal) => {
    if (!(await resource.reach(version, signal))) throw signal.reason;
  });
}

/** Waits until it is known whether the history reaches back to the resourceVersion. */
export async function waitForHistory<F>(
  { store, recall }: Pick<Resource<F>, 'store' | 'recall'>,
  version: RequestedVersion | undefined,
  { signal }: Pick<RequestContext, 'signal'>,
): Promise<void> {
  if (typeof version !== 'number' || !store.history.isInDoubt(version)) return;
  await recall(version, signal);
  signal.throwIfAborted();
}

/** Converts errors of kube-apiserver to errors of this server. */
export async function translateKubeErrors(request: Promise<void>): Promise<void> {
  try {
    await request;
  } catch (error) {
    throw error instanceof KubeError ? error.toOwnStatusError() : error;
  }
}
