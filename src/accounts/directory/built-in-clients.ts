import { clientScopes, publicGrantTypes, type ConfiguredClient } from '../../config/schema.ts';

const publicClient: ConfiguredClient = {
  name: '',
  public: true,
  grantTypes: publicGrantTypes,
  scopes: [...clientScopes],
  groups: [],
  redirectURIs: [],
  postLogoutRedirectURIs: [],
  consent: true,
  introspection: false,
};

/** Through which people log in to our own pages. It gets no tokens, and none that is configured takes its place. */
export const pagesClient: ConfiguredClient = { ...publicClient, name: 'platform-pages', grantTypes: [], scopes: [] };

/** Clients that there are without configuration; one that is configured under the name of such takes its place. */
export const builtInClients = (issuer: string): readonly ConfiguredClient[] => [
  // The credential plugin of kubectl; RFC 8252 section 7.3.
  { ...publicClient, name: 'platform-cli', redirectURIs: ['http://127.0.0.1/callback', 'http://[::1]/callback'] },
  // The page that shows the descriptions, which is ours.
  { ...publicClient, name: 'platform-docs', redirectURIs: [`${issuer}/docs/callback`], consent: false },
];
