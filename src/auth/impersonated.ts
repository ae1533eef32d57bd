import type { Impersonated } from '../kube/impersonation.ts';
import type { UserInfo } from './user.ts';

/** The user as kube-apiserver is asked to act: names of its own are allowed only where it has proved the identity itself. */
export const impersonatedOf = (user: UserInfo): Impersonated => ({ ...user, proved: user.via !== 'token' });
