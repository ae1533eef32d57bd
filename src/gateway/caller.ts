/** In whose name a request is passed on. */
import { impersonatedOf } from '../auth/impersonated.ts';
import type { UserInfo } from '../auth/user.ts';
import { unauthorized } from '../runtime/errors.ts';
import type { RequestContext } from '../http/route.ts';
import type { Impersonated } from '../cluster/client/impersonation.ts';

const known = new WeakMap<UserInfo, Impersonated>();

/** The caller, or whom the caller may impersonate and asked to be. */
export function callerOf({ user, impersonated = user }: RequestContext): Impersonated {
  if (impersonated === undefined) throw unauthorized();
  let caller = known.get(impersonated);
  if (caller === undefined) {
    caller = impersonatedOf(impersonated);
    known.set(impersonated, caller);
  }
  return caller;
}
