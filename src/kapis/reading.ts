/** What both doors do before they read: the caller's right to the underlying resource, and a copy that is complete. */
import { demand, type Authorizer } from '../auth/authorizers/authorizer.ts';
import { unauthorized, type StatusError } from '../errors.ts';
import type { RequestContext } from '../http/route.ts';
import { KubeError } from '../kube/kube-error.ts';
import type { Resource } from './resource.ts';

/** A copy that is not complete is waited for so long, in milliseconds; then the caller is told to come again. */
const longestWait = 10_000;

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

/** Runs with a signal that is also aborted, with the reason that `late` makes, after so many milliseconds. */
export async function within<T>(
  signal: AbortSignal,
  milliseconds: number,
  late: () => StatusError,
  run: (limited: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(late()), milliseconds);
  try {
    return await run(AbortSignal.any([signal, limit.signal]));
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves when the first list is complete; throws what `late` makes when that takes too long. */
export async function synced<F>(
  resource: Resource<F>,
  context: RequestContext,
  late: () => StatusError,
): Promise<void> {
  if (resource.hasSynced()) return;
  await within(context.signal, longestWait, late, (signal) => resource.waitForSync(signal));
}

/** What the cluster refused or could not answer becomes our own answer. */
export async function asked(question: Promise<void>): Promise<void> {
  try {
    await question;
  } catch (error) {
    throw error instanceof KubeError ? error.toStatusError() : error;
  }
}
