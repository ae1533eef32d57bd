/** Users, clients and providers that let the server process every string of a request as far as possible. */
import { deviceGrantType } from '../../../src/oauth/grants/device-code.ts';

export const password = 'correct horse battery';
/** bcrypt hash of `password`, at a cost suitable only for tests. */
const passwordHash = '$2b$04$PVYFFzvPKAZ5s.rDfx34..PB6WWeDAm4X5T0Fqize59IEWhtVe4tS';
export const callback = 'https://console.example/callback';

export const users = [{ username: 'alice', email: 'alice@example.org', groups: ['readers'], passwordHash }];
export const client = { client_id: 'tester', client_secret: 'of-the-tester' };
export const clients = [
  {
    name: client.client_id,
    secret: client.client_secret,
    grantTypes: [
      'password',
      'refresh_token',
      'authorization_code',
      'client_credentials',
      deviceGrantType,
      'urn:ietf:params:oauth:grant-type:token-exchange',
    ],
    redirectURIs: [callback],
  },
];
const many = 1_000_000_000;
export const loginLimit = { maxTries: 1_000, perAddress: many, perClient: many };
/** Object named in the paths of requests. */
export const pod = { namespace: 'default', name: 'n1' };
