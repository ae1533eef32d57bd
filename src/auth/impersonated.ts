import type { Impersonated } from '../cluster/client/impersonation.ts';
import type { UserInfo } from './user.ts';

/** Returns the user to impersonate at kube-apiserver. `system:` names are allowed only if kube-apiserver has proved the identity itself. */
export const impersonatedOf = (user: UserInfo): Impersonated => ({ ...user, proved: user.via !== 'token' });
