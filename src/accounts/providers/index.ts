import { ldap } from './ldap.ts';
import { openID } from './openid.ts';
import type { ProviderTypes } from './provider.ts';

/** All types of identity providers, by their names in the configuration. */
export const providerTypes: ProviderTypes = { LDAP: ldap, OIDC: openID };
