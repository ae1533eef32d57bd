/** A password in a URL would be published (issuer, external URL), logged or silently ignored. */
import { expect, test } from '@jest/globals';
import { stringify } from 'yaml';
import { AuthorizationServer } from '../../../src/cli/credential/authorization-server.ts';
import { parseCredentialFlags } from '../../../src/config/flags.ts';
import { formatProblem, parseConfiguration } from '../../../src/config/parse.ts';

const http = 'https://erin:hunter2@a.example';
const expected = 'must be an https URL without username and password';

interface Sections {
  readonly authentication?: object;
  readonly gateway?: object;
  readonly logging?: object;
  readonly requests?: object;
  readonly audit?: object;
}

const client = (changes: object): object => ({ clients: [{ name: 'web', secret: 'x', ...changes }] });
const provider = (changes: object): object => ({ identityProviders: [{ name: 'corp', ...changes }] });
const secretRef = { name: 'a', key: 'b' };

test.each<[string, Sections, string]>([
  ['authentication.issuer', { authentication: { issuer: http } }, expected],
  ['authentication.issuer', { authentication: { issuer: 'https://hunter2@a.example' } }, expected],
  ['gateway.externalURL', { gateway: { externalURL: http } }, `${expected}, or empty`],
  [
    'authentication.clients[0] (web).redirectURIs[0]',
    { authentication: client({ redirectURIs: ['com.example.app://erin:hunter2@a/'] }) },
    'without fragment, username and spaces',
  ],
  [
    'authentication.clients[0] (web).postLogoutRedirectURIs[0]',
    { authentication: client({ postLogoutRedirectURIs: [http] }) },
    'without fragment, username and spaces',
  ],
  [
    'authentication.identityProviders[0] (corp).oidc.issuer',
    { authentication: provider({ type: 'OIDC', oidc: { issuer: http, clientID: 'a', clientSecretRef: secretRef } }) },
    expected,
  ],
  [
    'authentication.identityProviders[0] (corp).ldap.url',
    {
      authentication: provider({ type: 'LDAP', ldap: { url: 'ldaps://erin:hunter2@a', userSearch: { base: 'dc=a' } } }),
    },
    'must be ldaps://host[:port] or ldap://host[:port]',
  ],
  ['logging.opensearch.url', { logging: { store: 'opensearch', opensearch: { url: http } } }, 'without user'],
  ['requests.corsAllowedOrigins[0]', { requests: { corsAllowedOrigins: [http] } }, 'must be an origin'],
  ['audit.webhook.url', { audit: { webhook: { url: http } } }, 'without username and password'],
])(
  'a URL with a password is rejected for the key %s, and the error does not contain the password',
  (path, { authentication, ...sections }, message) => {
    const parsed = parseConfiguration(
      stringify({
        apiVersion: 'config.platform.io/v1alpha1',
        kind: 'PlatformConfiguration',
        authentication: { issuer: 'https://a.example', ...authentication },
        ...sections,
      }),
    );
    const problems = parsed.ok ? [] : parsed.problems.map(formatProblem);
    expect(problems).toEqual([expect.stringContaining(message)]);
    expect(problems[0]?.split(': ')[0]).toBe(path);
    expect(problems[0]).not.toContain('hunter2');
  },
);

test.each([
  ['--server', () => parseCredentialFlags([`--server=${http}`])],
  ['the server', () => new AuthorizationServer(http, undefined)],
])(
  'the credential plugin rejects a URL with a password as the value of %s, and the error does not contain the password',
  (name, parse) => {
    expect(parse).toThrow(new RegExp(`^${name} ${expected}$`));
  },
);
