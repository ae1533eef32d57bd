import { expect, test } from '@jest/globals';
import { builtInClients } from '../../../../src/accounts/directory/clients.ts';

test('the built-in clients for kubectl and the documentation page exist without configuration, each with its own redirect URIs', () => {
  const clients = builtInClients('https://platform.example');
  expect(clients.map(({ name, redirectURIs, consent }) => ({ name, redirectURIs, consent }))).toEqual([
    // Any local program can receive the authorization code, so the user must consent.
    { name: 'platform-cli', redirectURIs: ['http://127.0.0.1/callback', 'http://[::1]/callback'], consent: true },
    { name: 'platform-docs', redirectURIs: ['https://platform.example/docs/callback'], consent: false },
  ]);
  for (const client of clients)
    expect(client).toMatchObject({ public: true, introspection: false, groups: [], postLogoutRedirectURIs: [] });
});
