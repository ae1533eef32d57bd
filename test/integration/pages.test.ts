/**
 * Logins on the pages with two replicas: codes, devices and logout (RFC 6749, RFC 8628), and the objects they create in
 * the cluster.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Browser, type Page } from '../fakes/browser.ts';
import { configure } from '../labs/integration/configure.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { call, gateway, nodesPath, secureGateway } from '../labs/integration/http.ts';
import { decodeToken } from '../labs/integration/jwt.ts';
import { create, get, patch, releasePath } from '../labs/integration/kube.ts';
import { passwordOf, postForm, type OAuthProblem, type Tokens } from '../labs/integration/login.ts';
import { remember } from '../labs/integration/secrets.ts';

const redirectURI = 'https://console.example/callback';
const asConsole = { client_id: 'console', client_secret: 'of-the-console' };
const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';
const sessions = `${releasePath.replace('/api/v1', '/apis/iam.platform.io/v1alpha2')}/sessions`;
const credentials = (): Record<string, string> => ({ username: 'admin', password: passwordOf('admin') });

let restore: () => Promise<void>;
beforeAll(async () => {
  restore = await configure(({ authentication }) => {
    authentication.clients.push({
      name: 'console',
      secret: asConsole.client_secret,
      grantTypes: ['authorization_code', 'refresh_token'],
      redirectURIs: [redirectURI],
      postLogoutRedirectURIs: ['https://console.example/bye'],
    });
  });
});
afterAll(() => restore());

/** Returns a browser whose requests alternate between the replicas. */
function browser(): Browser {
  let count = 0;
  return new Browser(async (path, { method = 'GET', headers = {}, body }) => {
    count += 1;
    const response = await call(`${secureGateway(count % 2 === 0 ? 0 : 1)}${path}`, {
      method,
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
      ...(body === undefined ? {} : { body }),
    });
    for (const cookie of response.headers['set-cookie'] ?? []) remember(/=([^;]+)/.exec(cookie)?.[1]);
    return response;
  });
}

const verifier = randomBytes(32).toString('base64url');
const authorize = `/oauth/authorize?${new URLSearchParams({
  response_type: 'code',
  client_id: 'console',
  redirect_uri: redirectURI,
  scope: 'openid profile',
  state: 's1',
  code_challenge: createHash('sha256').update(verifier).digest('base64url'),
  code_challenge_method: 'S256',
}).toString()}`;

function codeIn({ status, headers: { location = '' } }: Page): string {
  expect({ status, location }).toEqual({ status: 303, location: expect.stringContaining(redirectURI) });
  const code = new URL(location).searchParams.get('code') ?? '';
  remember(code);
  return code;
}

const exchange = (code: string, base: string): ReturnType<typeof postForm> =>
  postForm(
    { grant_type: 'authorization_code', code, redirect_uri: redirectURI, code_verifier: verifier, ...asConsole },
    { base },
  );

const statusWith = async (token: string, replica: 0 | 1): Promise<number> =>
  (await call(`${gateway(replica)}${nodesPath}?limit=0`, { token })).status;

async function logIn(): Promise<{ readonly at: Browser; readonly tokens: Tokens }> {
  const at = browser();
  const consent = await at.submit(await at.open(authorize), credentials());
  const code = codeIn(await at.submit(consent, { decision: 'allow' }));
  return { at, tokens: (await exchange(code, gateway(1))).json as Tokens };
}

describe('an authorization code', () => {
  test('an authorization code from one replica is exchanged at the other for a token that is valid at both', async () => {
    const { at, tokens } = await logIn();
    expect(decodeToken(tokens.access_token).claims).toMatchObject({ username: 'admin', client_id: 'console' });
    expect([await statusWith(tokens.access_token, 0), await statusWith(tokens.access_token, 1)]).toEqual([200, 200]);
    // The user is logged in and has consented already.
    expect(codeIn(await at.open(authorize))).not.toBe('');
  });

  // evidence: code-once-replicas
  test('an authorization code sent to both replicas at once is exchanged once, and the second attempt revokes the session', async () => {
    const { at } = await logIn();
    const code = codeIn(await at.open(authorize));
    const responses = await Promise.all([0, 1].map((replica) => exchange(code, gateway(replica as 0 | 1))));
    expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 400]);
    const [{ access_token }] = responses.filter(({ status }) => status === 200).map(({ json }) => json) as [Tokens];
    await eventually('the session has ended', async () => {
      expect([await statusWith(access_token, 0), await statusWith(access_token, 1)]).toEqual([401, 401]);
    });
  });
});

describe('a device', () => {
  test('a device requests a code at one replica and is authorized at the other', async () => {
    const started = await call(`${gateway(0)}/oauth/device_authorization`, {
      method: 'POST',
      body: 'client_id=platform-cli&scope=openid',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    const { device_code, user_code } = started.json as { device_code: string; user_code: string };
    remember(device_code);
    const poll = (replica: 0 | 1): ReturnType<typeof postForm> =>
      postForm({ grant_type: deviceGrant, device_code, client_id: 'platform-cli' }, { base: gateway(replica) });
    expect(((await poll(0)).json as OAuthProblem).error).toBe('authorization_pending');
    const at = browser();
    const page = await at.submit(await at.open(`/oauth/device?user_code=${user_code}`), credentials());
    const done = await at.submit(await at.submit(page, {}), { decision: 'allow' });
    expect(done.text).toContain('Device authorized');
    // A device that polls too early must slow down (RFC 8628 section 3.5).
    let response = await poll(1);
    while (response.status !== 200) {
      expect((response.json as OAuthProblem).error).toBe('authorization_pending');
      await sleep(6_000);
      response = await poll(1);
    }
    const tokens = response.json as Tokens;
    expect([await statusWith(tokens.access_token, 0), await statusWith(tokens.access_token, 1)]).toEqual([200, 200]);
  });
});

describe('a session object in the cluster', () => {
  // evidence: session-object-code
  test('a session object in the cluster contains the code challenge of a started login, but no code in plain text', async () => {
    const { tokens } = await logIn();
    const path = `${sessions}/${String(decodeToken(tokens.access_token).claims['sid'])}`;
    const stored = JSON.stringify(await get(path));
    expect(stored).toContain('"challenge"');
    expect(stored).not.toContain(tokens.refresh_token);
    const body = { spec: { userName: 'somebody-else' } };
    await expect(patch(path, body)).rejects.toThrow(/immutable/);
  });

  test('a session object in the cluster cannot be created without a userName and a userUID', async () => {
    const spec = {
      userName: '',
      userUID: '',
      clientID: 'console',
      createdAt: new Date(0).toISOString(),
      expiresAt: new Date(1e12).toISOString(),
    };
    const body = {
      apiVersion: 'iam.platform.io/v1alpha2',
      kind: 'Session',
      metadata: { name: 'of-nobody' },
      spec,
      status: { phase: 'Active' },
    };
    await expect(create(sessions, body)).rejects.toThrow(/must have a userName and a userUID/);
  });
});

test('a logout at one replica requires a new login, and revokes the session of the client at both replicas', async () => {
  const { at, tokens } = await logIn();
  const query = new URLSearchParams({
    id_token_hint: tokens.id_token ?? '',
    post_logout_redirect_uri: 'https://console.example/bye',
  });
  const response = await at.open(`/oauth/logout?${query.toString()}`);
  expect(response.headers.location).toBe('https://console.example/bye');
  await eventually('the token is rejected', async () => {
    expect([await statusWith(tokens.access_token, 0), await statusWith(tokens.access_token, 1)]).toEqual([401, 401]);
  });
  expect((await at.open(authorize)).text).toContain('action="/oauth/login"');
});
