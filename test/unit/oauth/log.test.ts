/** Tests the log lines about tokens and logins. Each line has the request, the actor and the address. */
import { expect, test } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import type { Logger } from '../../../src/runtime/logger.ts';
import { sendRequest, type AppResponse } from '../../fakes/request.ts';
import { Browser } from '../../fakes/browser.ts';
import { craftJWT } from '../../fakes/jwt.ts';
import { logOfLines } from '../../fakes/log.ts';
import { rightPassword } from '../../labs/accounts.ts';
import { createLab, type Fields, type Lab } from '../../labs/oauth.ts';

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';
const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange';
const redirectURI = 'https://console.example/callback';
const clients = [
  {
    name: 'console',
    secret: 'console',
    grantTypes: ['password', 'refresh_token', 'client_credentials', 'authorization_code', deviceGrant, exchangeGrant],
    redirectURIs: [redirectURI],
  },
];
const asUser = { username: 'alice', password: rightPassword };
const client = 'console';
const asClient = { client_id: client, client_secret: 'console' };
const login = { grant_type: 'password', ...asUser, ...asClient };
const refresh = { grant_type: 'refresh_token', refresh_token: 'x', ...asClient };
const sourceIP = '192.0.2.1';
const sid = expect.stringMatching(/^[a-z0-9]{32}$/) as unknown;
const verifier = randomBytes(32).toString('base64url');
const authorize = `/oauth/authorize?${new URLSearchParams({
  response_type: 'code',
  client_id: client,
  redirect_uri: redirectURI,
  code_challenge: createHash('sha256').update(verifier).digest('base64url'),
  code_challenge_method: 'S256',
}).toString()}`;
const exchange = (code: string): Fields => ({
  grant_type: 'authorization_code',
  code,
  redirect_uri: redirectURI,
  code_verifier: verifier,
  ...asClient,
});

const serviceToken = ({ clock }: Lab): string =>
  craftJWT({ alg: 'RS256' }, { iss: 'https://kubernetes.example', exp: Math.floor(clock.now() / 1_000) + 600 });

const lab = async (log: Logger, audit?: 'None'): Promise<Lab> => {
  const made = await createLab({ clients }, { log, level: audit });
  made.cluster.respond('/apis/authentication.k8s.io/v1/tokenreviews', () => ({
    status: { authenticated: true, user: { username: 'system:serviceaccount:a:b', uid: 'u', groups: [] } },
  }));
  return made;
};
const browserOf = ({ app }: Lab): Browser<AppResponse> => new Browser((to, options) => sendRequest(app, to, options));
const open = async (browser: Browser<AppResponse>, path: string): Promise<AppResponse> =>
  await browser.submit(await browser.open(path), asUser);

/** Enters the user code of a device and submits the decision. Returns the last page. */
async function decide(made: Lab, decision: string): Promise<AppResponse> {
  const device = (await made.post('/oauth/device_authorization', asClient)).json();
  const browser = browserOf(made);
  const consent = await browser.submit(await open(browser, '/oauth/device'), {
    user_code: String(device['user_code']),
  });
  return await browser.submit(consent, { decision });
}

const acts: readonly [message: string, act: (made: Lab) => Promise<AppResponse>, fields: object][] = [
  ['login', (made) => made.token(login), { username: 'alice', client, sid }],
  ['login failed', (made) => made.token({ ...login, password: 'wrong' }), { username: 'alice', client }],
  ['client login', (made) => made.token({ grant_type: 'client_credentials', ...asClient }), { client, sid }],
  ['client authentication failed', (made) => made.token({ ...login, client_secret: 'wrong' }), { client }],
  ['refresh refused', (made) => made.token(refresh), { client, reason: 'unknown' }],
  [
    'session revoked',
    async (made) =>
      made.post('/oauth/revoke', { token: String((await made.token(login)).json()['access_token']), ...asClient }),
    { client, sid },
  ],
  [
    'token exchanged',
    (made) =>
      made.token({
        grant_type: exchangeGrant,
        subject_token: serviceToken(made),
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        ...asClient,
      }),
    { username: 'system:serviceaccount:a:b', client, sid },
  ],
  [
    'client authorized',
    async (made) => {
      const browser = browserOf(made);
      return await browser.submit(await open(browser, authorize), { decision: 'allow' });
    },
    { username: 'alice', client },
  ],
  ['authorization code refused', (made) => made.token(exchange('x')), { client, reason: 'unknown' }],
  [
    'logout',
    async (made) => {
      const browser = browserOf(made);
      await open(browser, '/oauth/login');
      return await browser.submit(await browser.open('/oauth/logout'), {});
    },
    { username: 'alice', sid },
  ],
  ['device authorized', (made) => decide(made, 'allow'), { username: 'alice', client, sid }],
  ['device denied', (made) => decide(made, 'deny'), { username: 'alice', client, sid }],
  [
    'unknown user code',
    async (made) => {
      const browser = browserOf(made);
      return await browser.submit(await open(browser, '/oauth/device'), { user_code: 'BBBB-BBBB' });
    },
    { username: 'alice' },
  ],
];

test.each(acts)('the log line "%s" names the request, the user and the client', async (message, act, fields) => {
  const { log, lines } = logOfLines();
  const { headers } = await act(await lab(log));
  const written = lines().map((line) => JSON.parse(line) as Record<string, unknown>);
  const [line = {}] = written.filter((one) => one['message'] === message);
  const common = { level: 'info', message, time: expect.any(String), auditID: headers['audit-id'], sourceIP };
  expect(line).toEqual({ ...common, ...fields });
  expect(written.filter((one) => one['level'] === 'error')).toEqual([]);
});

test.each(acts)('the log line "%s" is written even if the audit level is None', async (message, act) => {
  const { log, lines } = logOfLines();
  const { status } = await act(await lab(log, 'None'));
  expect(status).toBeLessThan(500);
  expect(lines().join('\n')).toContain(`"message":"${message}"`);
});

test('an unknown client is logged with at most 253 characters of its name', async () => {
  const { log, lines } = logOfLines();
  const made = await lab(log);
  await made.token({ ...login, client_id: 'n'.repeat(300) });
  expect(lines().join('\n')).toContain(`"client":"${'n'.repeat(253)}"`);
});

test('the log line "refresh refused" has a reason if the user was disabled during the write of the refresh', async () => {
  const { log, lines } = logOfLines();
  const made = await lab(log);
  const token = String((await made.token(login)).json()['refresh_token']);
  made.client.after = ({ method }) => {
    if (method === 'PUT') made.configure({ clients, users: [{ username: 'alice', state: 'Disabled' }] });
  };
  expect((await made.token({ ...refresh, refresh_token: token })).status).toBe(400);
  const written = lines().map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(written.find(({ message }) => message === 'refresh refused')).toMatchObject({ client, reason: 'ended' });
});
