/**
 * Tests that each log store, grant and identity provider consists of one file or folder, one line in an index and one
 * block of the configuration schema, and that no other file of src contains its name.
 */
import { expect, test } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';
import { clientGrantTypes } from '../../src/config/schema.ts';

const identityProvider = ['config/identity-providers.ts', 'accounts/providers/index.ts'];
const logStore = ['config/log-stores.ts', 'logs/stores/index.ts'];
const grant = ['config/schema.ts', 'oauth/grants/index.ts'];
/** Clients of the token endpoint: the credential plugin and the page at /docs. */
const [plugin, page] = ['cli/credential/', 'docs/explorer/browser/'];

/** Log stores, grants and identity providers. `places` are the only files and folders of src that contain the name. */
const additions: readonly (readonly [what: string, name: RegExp, places: readonly string[]])[] = [
  ['log store loki', /loki/i, [...logStore, 'logs/stores/loki/']],
  // OpenSearch and Elasticsearch share a query language, and therefore a folder.
  ['log store opensearch', /opensearch/i, [...logStore, 'logs/stores/search/']],
  ['log store elasticsearch', /elasticsearch/i, [...logStore, 'logs/stores/search/']],
  // These words also occur outside of grants, with other meanings.
  ['grant password', /passwordGrant|grant.*'password'/i, [...grant, 'oauth/grants/password.ts', plugin]],
  [
    'grant refresh_token',
    /refreshTokenGrant|grant.*'refresh_token'/i,
    [...grant, 'oauth/grants/refresh-token.ts', plugin, page],
  ],
  [
    'grant authorization_code',
    /(?<!client\.)authorizationCodeGrant\b|authorization_code/,
    [...grant, 'oauth/grants/authorization-code.ts', page],
  ],
  [
    'grant client_credentials',
    /clientCredentialsGrant|client_credentials/,
    [...grant, 'oauth/grants/client-credentials.ts'],
  ],
  [
    'grant urn:ietf:params:oauth:grant-type:device_code',
    /deviceCodeGrant|grant-type:device_code/,
    [...grant, 'oauth/grants/device-code.ts', plugin],
  ],
  [
    'grant urn:ietf:params:oauth:grant-type:token-exchange',
    /tokenExchangeGrant|grant-type:token-exchange/,
    [...grant, 'oauth/grants/token-exchange.ts'],
  ],
  [
    'identity provider LDAP',
    /ldap/i,
    [...identityProvider, 'accounts/providers/ldap.ts', 'accounts/providers/ldap-connection.ts'],
  ],
  [
    'identity provider OIDC',
    /OIDC|openid-client|openIDPro|\boidc\./,
    [...identityProvider, 'accounts/providers/openid.ts', 'accounts/providers/https-fetch.ts'],
  ],
];

const sources = globSync('**/*.ts', { cwd: 'src' }).map((file) => ({
  file,
  text: readFileSync(`src/${file}`, 'utf8'),
}));

const isIn = (file: string, place: string): boolean =>
  file === place || (place.endsWith('/') && file.startsWith(place));

test.each(additions)(
  'the %s is named only in its own files, its index and its section of the configuration',
  (_, name, places) => {
    const files = sources.filter(({ file, text }) => name.test(file) || name.test(text)).map(({ file }) => file);
    expect({
      elsewhere: files.filter((file) => !places.some((place) => isIn(file, place))),
      missing: places.filter((place) => !files.some((file) => isIn(file, place))),
    }).toEqual({ elsewhere: [], missing: [] });
  },
);

test('each grant of the configuration is in the list of additions of this test', () => {
  const listed = additions.map(([what]) => what).filter((what) => what.startsWith('grant '));
  expect(listed).toEqual(clientGrantTypes.map((grantType) => `grant ${grantType}`));
});
