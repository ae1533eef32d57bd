/** What both doors do before they read: the caller's right to the underlying resource, and a copy that is complete. */
import { demand, type Authorizer } from '../auth/authorizers/authorizer.ts';
import { timeout, unauthorized, type StatusError } from '../runtime/errors.ts';
import type { RequestContext } from '../http/route.ts';
import { KubeError } from '../cluster/client/kube-error.ts';
import type { RequestedVersion } from './list/list-options.ts';
import type { Resource } from '../cluster/catalogue/resource.ts';
import { within } from '../cluster/catalogue/waiting.ts';
import { upstreamIdentityOf, type UserInfo } from '../auth/user.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { asUser } from '../cluster/client/impersonation.ts';

/** kube-apiserver, asked as the caller. Throws 401 where there is none. */
export function asCaller(client: Pick<KubeClient, 'stream'>, user: UserInfo | undefined): Pick<KubeClient, 'stream'> {
  if (user === undefined) throw unauthorized();
  return asUser(client, upstreamIdentityOf(user));
}

/** How long a resourceVersion that lies ahead is waited for, in milliseconds. */
const aheadWait = 3000;

/** Throws 403 unless the caller may do on the underlying resource what the request does here. */
export async function demandUnderlying<F>(
  authorizer: Authorizer,
  { user, info }: RequestContext,
  { definition: { underlying } }: Resource<F>,
): Promise<void> {
  if (user === undefined) throw unauthorized();
  const { group, resource } = underlying;
  const { verb, namespace, name } = info;
  await demand(authorizer, user, { verb, group, resource, namespace, name });
}

/** Throws 403 unless the caller may still do what the request does to the resource that it names: at first the chain has asked. */
export async function demandServed(authorizer: Authorizer, { user, info }: RequestContext): Promise<void> {
  if (user === undefined) throw unauthorized();
  const { verb, group, resource, subresource, namespace, name } = info;
  await demand(authorizer, user, { verb, group, resource, subresource, namespace, name });
}

const tooLargeVersion = (version: number, current: number): StatusError =>
  timeout(`Timeout: Too large resource version: ${version}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });

/** Throws what says that a resourceVersion which was asked for is not reached. */
export function demandReached(version: RequestedVersion, current: number): void {
  if (typeof version === 'number' && version > current) throw tooLargeVersion(version, current);
}

/** Waits for a resourceVersion that lies ahead; throws 504 when it does not come. */
export async function reached<F>(
  resource: Resource<F>,
  version: RequestedVersion,
  context: RequestContext,
): Promise<void> {
  const { store } = resource;
  if (typeof version !== 'number' || store.resourceVersion >= version) return;
  const late = (): StatusError => tooLargeVersion(version, store.resourceVersion);
  await within(context.signal, aheadWait, late, async (signal) => {
    if (!(await resource.reach(version, signal))) throw signal.reason;
  });
}

/** Where the history seems not to reach back to a resourceVersion, waits until that is known. */
export async function recalled<F>(
  { store, recall }: Pick<Resource<F>, 'store' | 'recall'>,
  version: RequestedVersion | undefined,
  { signal }: Pick<RequestContext, 'signal'>,
): Promise<void> {
  if (typeof version !== 'number' || !store.history.isInDoubt(version)) return;
  await recall(version, signal);
  signal.throwIfAborted();
}

/** What the cluster refused or could not answer becomes our own answer. */
export async function asked(question: Promise<void>): Promise<void> {
  try {
    await question;
  } catch (error) {
    throw error instanceof KubeError ? error.toOwnStatusError() : error;
  }
}
