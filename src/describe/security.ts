/** Who must show what, as the descriptions say it. */
import type { clientScopes } from '../config/schema.ts';
import type { Route } from '../http/route.ts';

export const scopes: Readonly<Record<(typeof clientScopes)[number], string>> = {
  openid: 'An id_token, and /oauth/userinfo',
  profile: 'The name',
  email: 'The e-mail address',
  groups: 'The groups',
  offline_access: 'A refresh token, as every login gets one that may have it',
};

type Security = readonly Readonly<Record<string, readonly string[]>>[];

/** Undefined where it is as everywhere. A client may show its secret in the form too, and a public one has none. */
export function securityOf({ open, credentials }: Route): Security | undefined {
  if (open !== true) return undefined;
  return credentials === undefined
    ? []
    : [...credentials.map((one) => ({ [one]: [] })), ...(credentials.includes('client') ? [{}] : [])];
}
