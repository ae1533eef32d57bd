import { impersonatedOf } from '../auth/impersonated.ts';
import type { UserInfo } from '../auth/user.ts';
import { unauthorized } from '../runtime/errors.ts';
import type { KubeClient } from '../cluster/client/client.ts';
import { asUser } from '../cluster/client/impersonation.ts';

/** kube-apiserver, asked as the caller. Throws 401 where there is none. */
export function asCaller(client: Pick<KubeClient, 'stream'>, user: UserInfo | undefined): Pick<KubeClient, 'stream'> {
  if (user === undefined) throw unauthorized();
  return asUser(client, impersonatedOf(user));
}
