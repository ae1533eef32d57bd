/**
 * Runs programs of test/clients. Each program completes every OAuth flow with a different library. All programs print
 * the same result.
 */
import { join } from 'node:path';
import { output } from '../../../hack/cluster/exec.ts';
import { clients } from './clients.ts';
import type { Configuration } from './configure.ts';
import { secureGateway } from './http.ts';
import { foundPath, lab } from './lab.ts';
import { passwords } from './people.ts';
import { remember } from './secrets.ts';

const username = 'alice';
const callback = 'https://console.example/callback';
// Authlib does not encode credentials for HTTP Basic as RFC 6749 section 2.3.1 requires.
const secrets = { platform: 'platform', console: 'of the console: 90% & more+', robot: 'of the robot, %31921' };

/** Adds the OAuth clients that the programs use. */
export function addLibraryClients({ authentication }: Configuration): void {
  remember(...Object.values(secrets));
  authentication.clients.push(
    {
      name: 'console',
      secret: secrets.console,
      grantTypes: ['authorization_code', 'refresh_token'],
      redirectURIs: [callback],
    },
    { name: 'robot', secret: secrets.robot, grantTypes: ['client_credentials'] },
  );
}

const script = (name: string): readonly [string, string] => [process.execPath, join(clients, 'javascript', name)];

/** Commands by library. */
export const libraries = {
  'x/oauth2 and go-oidc': () => [lab().go.oauth],
  Authlib: () => ['python3', join(clients, 'python/oauth_flows.py')],
  'openid-client': () => script('openid-client.ts'),
  oauth4webapi: () => script('oauth4webapi.ts'),
} as const satisfies Record<string, () => readonly [string, ...string[]]>;

export type Library = keyof typeof libraries;

/** Runs the program for a library, and returns its result. */
export async function completeFlows(library: Library): Promise<unknown> {
  const [program, ...args] = libraries[library]();
  const text = await output(program, [...args, secureGateway()], {
    input: JSON.stringify({ username, password: passwords.alice, callback, clients: secrets }),
    env: {
      SSL_CERT_FILE: lab().authorityFile,
      REQUESTS_CA_BUNDLE: lab().authorityFile,
      NODE_EXTRA_CA_CERTS: lab().authorityFile,
      PYTHONPATH: foundPath(lab().pythonPackages),
      PYTHONDONTWRITEBYTECODE: '1',
    },
    timeout: 120_000,
  });
  return JSON.parse(text);
}

/** Returns the result that each program must print. */
export const completedFlows = (): object => ({
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
