import { ldap } from './ldap.ts';
import { openID } from './openid.ts';
import type { ProviderTypes } from './provider.ts';

/** Every type of identity provider, under its name in the configuration. */
export const providerTypes: ProviderTypes = { LDAP: ldap, OIDC: openID };
