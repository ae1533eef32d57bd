/** Unmodified OAuth clients in Python and Go: every flow, over TLS, at the issuer's address. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { join } from 'node:path';
import { output } from '../../hack/cluster/exec.ts';
import { configure } from '../labs/integration/configure.ts';
import { secureGateway } from '../labs/integration/http.ts';
import { foundPath, lab } from '../labs/integration/lab.ts';
import { passwords } from '../labs/integration/people.ts';
import { remember } from '../labs/integration/secrets.ts';

const username = 'alice';
const callback = 'https://console.example/callback';
// Authlib does not encode credentials for HTTP Basic as RFC 6749 section 2.3.1 requires.
const secrets = { platform: 'platform', console: 'of the console: 90% & more+', robot: 'of the robot, %31921' };

let restore: () => Promise<void>;
beforeAll(async () => {
  remember(...Object.values(secrets));
  restore = await configure(({ authentication }) => {
    // The clients resolve the issuer without cluster DNS.
    authentication['issuer'] = secureGateway();
    authentication.clients.push(
      {
        name: 'console',
        secret: secrets.console,
        grantTypes: ['authorization_code', 'refresh_token'],
        redirectURIs: [callback],
      },
      { name: 'robot', secret: secrets.robot, grantTypes: ['client_credentials'] },
    );
  });
});
afterAll(() => restore());

const python = join(import.meta.dirname, '../clients/python/oauth_flows.py');

test.each<[string, () => readonly [string, ...string[]]]>([
  ['golang.org/x/oauth2 and go-oidc', () => [lab().go.oauth]],
  ['Authlib', () => ['python3', python]],
])('%s completes every OAuth flow', async (_, command) => {
  const [program, ...args] = command();
  const seen = await output(program, [...args, secureGateway()], {
    input: JSON.stringify({ username, password: passwords.alice, callback, clients: secrets }),
    env: {
      SSL_CERT_FILE: lab().authorityFile,
      REQUESTS_CA_BUNDLE: lab().authorityFile,
      PYTHONPATH: foundPath(lab().pythonPackages),
      PYTHONDONTWRITEBYTECODE: '1',
    },
    timeout: 120_000,
  });
  expect(JSON.parse(seen)).toEqual({
    issuer: secureGateway(),
    'authorization code': {
      scope: 'openid profile',
      user: username,
      userinfo: username,
      rotated: true,
      'same user': true,
      introspected: [true, 'console', username],
      revoked: [401, 'invalid_grant', false],
    },
    password: { user: username, introspected: [true, 'platform', username] },
    'wrong password': 'invalid_grant',
    'client credentials': { 'refresh token': false, introspected: [true, 'robot', 'platform:client:robot'] },
  });
});
