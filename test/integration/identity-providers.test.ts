/** Identity providers (docs/guides/identity-providers.md), with a real LDAP server and a real OpenID provider. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createHash, generateKeyPairSync, randomUUID } from 'node:crypto';
import { release } from '../../hack/run/chart.ts';
import { sessionsPath } from '../../src/config/names.ts';

import { Browser, formIn, type Page } from '../fakes/browser.ts';
import type { KubeRequest } from '../../src/cluster/client/client.ts';
import { configure } from '../labs/integration/configure.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { call, gateway, nodesPath, secureGateway, type HttpResponse } from '../labs/integration/http.ts';
import { bind, create, get, kube, merge, patch, releasePath, remove, unbind } from '../labs/integration/kube.ts';
import {
  adminToken,
  login,
  passwordForm,
  postForm,
  refreshForm,
  type OAuthProblem,
  type Tokens,
} from '../labs/integration/login.ts';
import { startOpenIDProvider, type OpenIDProvider } from '../labs/integration/openid-provider.ts';
import { passwords } from '../labs/integration/people.ts';
import { remember } from '../labs/integration/secrets.ts';
import { createSlapd, ldapProvider, service, suffix, type Slapd } from '../labs/integration/slapd.ts';
import { createUser, removeUser, userPath, usersPath } from '../labs/integration/user-objects.ts';

const right = 'grüße aus dem LDAP 3390';
const wrong = 'not the password 1188';

const person = (uid: string, more = ''): string => `dn: uid=${uid},ou=people,${suffix}
objectClass: inetOrgPerson
uid: ${uid}
cn: ${uid} of the directory
sn: ${uid}
userPassword: ${right}
${more}`;
const group = (name: string, ...members: string[]): string => `dn: cn=${name},ou=groups,${suffix}
objectClass: groupOfNames
cn: ${name}
${members.map((uid) => `member: uid=${uid},ou=people,${suffix}\n`).join('')}`;
const unit = (name: string): string => `dn: ou=${name},${suffix}\nobjectClass: organizationalUnit\nou: ${name}\n`;

const entries = [
  unit('people'),
  unit('groups'),
  person('erin', 'mail: erin@example.org\n'),
  person('Jane_Doe'),
  person('frank'),
  person('grace'),
  person('heidi'),
  person('ivan'),
  // The platform has a user of this name already.
  person('alice', 'mail: alice@example.com\n'),
  person('twin', 'mail: twins@example.org\n'),
  person('twin2', 'mail: twins@example.org\n'),
  group('engineers', 'erin', 'frank'),
  group('system:masters', 'grace'),
].join('\n');

let slapd: Slapd;
let restore = (): Promise<void> => Promise.resolve();
const bindSecret = 'directory-bind';

const provider = (changes: object = {}, ldap: object = {}): object => ({
  ...ldapProvider(
    slapd,
    { name: bindSecret, key: 'password' },
    { userSearch: { base: `ou=people,${suffix}`, filter: '(|(uid={username})(mail={username}))' }, ...ldap },
  ),
  displayName: 'The company',
  ...changes,
});

async function use(...identityProviders: object[]): Promise<void> {
  await restore();
  restore = await configure(({ authentication }) => {
    authentication['identityProviders'] = identityProviders;
  });
}

beforeAll(async () => {
  remember(right, wrong, service.password);
  slapd = await createSlapd(entries);
  await slapd.start();
  await create(`${releasePath}/secrets`, {
    metadata: { name: bindSecret },
    stringData: { password: service.password },
  });
});
afterAll(async () => {
  await restore();
  await slapd.stop();
  await remove(`${releasePath}/secrets/${bindSecret}`);
});

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (let task = undo.pop(); task !== undefined; task = undo.pop()) await task();
});

/** Deletes a user after the test. A login in the test creates the user. */
const deleteLater = (name: string): string => {
  undo.push(async () => {
    await removeUser(name);
    const token = await adminToken();
    await eventually(`no replica knows ${name} any more`, async () => {
      for (const base of [gateway(0), gateway(1)])
        expect((await call(`${base}/kapis/iam.platform.io/v1alpha2/users/${name}`, { token })).status).toBe(404);
    });
  });
  return name;
};

const attempt = (username: string, password = right, replica: 0 | 1 = 0): Promise<HttpResponse> =>
  postForm(passwordForm(username, password), { base: gateway(replica) });
const problemOf = (response: HttpResponse): object => ({
  status: response.status,
  error: (response.json as OAuthProblem).error,
});
const refused = { status: 400, error: 'invalid_grant' };
const statusOf = async ({ access_token: token }: Tokens, path = '/kapis', base = gateway()): Promise<number> =>
  (await call(`${base}${path}`, { token })).status;
const whoami = async (token: string): Promise<{ username: string; groups: string[] }> =>
  (
    (await call(`${gateway()}/kapis/iam.platform.io/v1alpha2/whoami`, { token })).json as {
      status: { userInfo: { username: string; groups: string[] } };
    }
  ).status.userInfo;

/** Replica that browsers currently use. */
let replicaNow: 0 | 1 = 0;
const newBrowser = (): Browser =>
  new Browser(async (path, { method = 'GET', headers = {}, body }) => {
    const response = await call(`${secureGateway(replicaNow)}${path}`, {
      method,
      headers: headers as Record<string, string>,
      ...(body === undefined ? {} : { body }),
    });
    return { status: response.status, headers: response.headers, text: response.text };
  });

const authorize = `/oauth/authorize?${new URLSearchParams({
  response_type: 'code',
  client_id: 'platform-cli',
  redirect_uri: 'http://127.0.0.1:1/callback',
  code_challenge: 'a'.repeat(43),
  code_challenge_method: 'S256',
}).toString()}`;
const loggedInAs = (username: string): unknown =>
  expect.stringContaining(`You are logged in as <strong>${username}</strong>`);

// The Secret with the service account's password is read when the configuration names it.
const used = (...identityProviders: object[]): Promise<void> =>
  use(...identityProviders).then(() =>
    eventually('both replicas use the providers', async () => {
      for (const replica of [0, 1] as const)
        expect(problemOf(await attempt(`nobody-${randomUUID()}`, wrong, replica))).toEqual(refused);
    }),
  );

describe('LDAP with the mapping auto', () => {
  beforeAll(() => used(provider()));

  test("LDAP with the mapping auto creates a user at the first login, and prefixes the LDAP groups with the provider's name", async () => {
    deleteLater('erin');
    await bind('directory-test', 'platform-node-reader', { kind: 'Group', name: 'corp:engineers' });
    undo.push(() => unbind('directory-test'));
    const tokens = await login('erin', undefined, right);
    expect(await whoami(tokens.access_token)).toMatchObject({
      username: 'erin',
      groups: expect.arrayContaining(['corp:engineers', 'system:authenticated']) as unknown,
    });
    await eventually('erin reads nodes on both replicas', async () => {
      for (const base of [gateway(0), gateway(1)])
        expect(await statusOf(tokens, `${nodesPath}?limit=1`, base)).toBe(200);
    });
    const { spec, metadata } = await get(userPath('erin'));
    expect(spec).toMatchObject({
      displayName: 'erin of the directory',
      email: 'erin@example.org',
      state: 'Active',
      identities: [{ provider: 'corp', subject: expect.stringMatching(/^[-0-9a-f]{36}$/) as unknown }],
    });
    expect(spec).not.toHaveProperty('groups');
    // A refresh keeps the groups; a later login by e-mail address or on the other replica logs in the same user.
    const refreshed = (await postForm(refreshForm(tokens.refresh_token))).json as Tokens;
    expect((await whoami(refreshed.access_token)).groups).toContain('corp:engineers');
    for (const name of ['erin', 'Erin', 'erin@example.org'])
      expect((await whoami((await login(name, gateway(1), right)).access_token)).username).toBe('erin');
    expect((await get(userPath('erin'))).metadata.uid).toBe(metadata.uid);
  });

  test('LDAP with the mapping auto creates one user for simultaneous logins at both replicas', async () => {
    deleteLater('jane-doe');
    const responses = await Promise.all([attempt('Jane_Doe'), attempt('jane_doe', right, 1)]);
    expect(responses.map(({ status }) => status)).toEqual([200, 200]);
  });

  test('LDAP with the mapping auto updates the displayName and e-mail address of a user at the next login', async () => {
    deleteLater('erin');
    await login('erin', undefined, right);
    await patch(userPath('erin'), { spec: { displayName: 'Somebody', email: null } });
    await eventually('a login updates the User from the LDAP server', async () => {
      await login('erin', undefined, right);
      expect((await get(userPath('erin'))).spec).toMatchObject({
        displayName: 'erin of the directory',
        email: 'erin@example.org',
      });
    });
  });

  test.each([
    ['a wrong password', 'erin', wrong],
    ['an unknown name', 'nobody-at-all', right],
    ['a filter instead of a name', '*)(uid=*', right],
    ['a wildcard instead of a name', '*', right],
    ['a filter that matches an entry', 'erin)(objectClass=*', right],
    ['a name with an LDAP escape', '\\65rin', right],
    ['a name that two entries share', 'twins@example.org', right],
    ['the DN of an entry', `uid=erin,ou=people,${suffix}`, right],
  ])('LDAP with the mapping auto rejects %s with the same response', async (_, username, password) => {
    const response = await attempt(username, password);
    expect(problemOf(response)).toEqual(refused);
    expect((response.json as OAuthProblem).error_description).toBe('incorrect username or password');
  });

  test('LDAP with the mapping auto rejects an empty password without contacting the LDAP server', async () => {
    expect(problemOf(await attempt('erin', ''))).toEqual({ status: 400, error: 'invalid_request' });
  });

  test('LDAP with the mapping auto never logs an LDAP user in as an existing user of the platform', async () => {
    // The LDAP server has a user with this name and password.
    expect(problemOf(await attempt('alice'))).toEqual(refused);
    expect(problemOf(await attempt('Alice'))).toEqual(refused);
    expect(problemOf(await attempt('alice@example.com'))).toEqual(refused);
    expect((await attempt('alice', passwords.alice)).status).toBe(200);
    await createUser('heidi');
    deleteLater('heidi');
    await eventually('the name is taken', async () => {
      expect(problemOf(await attempt('heidi'))).toEqual(refused);
    });
    expect((await get(userPath('heidi'))).spec).not.toHaveProperty('identities');
  });

  test('LDAP with the mapping auto rejects users in a group that Kubernetes reserves', async () => {
    const response = await attempt('grace');
    expect(problemOf(response)).toEqual(refused);
    expect((response.json as OAuthProblem).error_description).toContain("'system:'");
  });

  test('LDAP with the mapping auto limits failed logins per user, whatever the case of the letters in the login name', async () => {
    deleteLater('frank');
    const names = ['frank', 'FRANK', 'fRank', 'frAnk', 'fraNk'];
    for (const name of names) {
      const { status } = await attempt(name, wrong);
      expect([400, 429]).toContain(status);
      if (status === 429) break;
    }
    const response = await attempt('Frank');
    expect(problemOf(response)).toEqual({ status: 429, error: 'invalid_grant' });
    expect(response.headers['retry-after']).toMatch(/^\d+$/);
  });

  test('LDAP with the mapping auto revokes the sessions of a disabled user, and rejects logins with the message for a wrong password', async () => {
    deleteLater('ivan');
    const tokens = await login('ivan', undefined, right);
    await patch(userPath('ivan'), { spec: { state: 'Disabled' } });
    await eventually('the session has ended', async () => expect(await statusOf(tokens)).toBe(401));
    const response = await attempt('ivan');
    expect((response.json as OAuthProblem).error_description).toBe('incorrect username or password');
  });

  test('LDAP with the mapping auto revokes the sessions of a user whose link to the LDAP identity is removed', async () => {
    deleteLater('ivan');
    const tokens = await login('ivan', undefined, right);
    expect(await statusOf(tokens)).toBe(200);
    await patch(userPath('ivan'), { spec: { identities: null } });
    await eventually('the session has ended', async () => expect(await statusOf(tokens)).toBe(401));
    expect((await postForm(refreshForm(tokens.refresh_token))).status).toBe(400);
    // The name now belongs to a user without a link.
    expect(problemOf(await attempt('ivan'))).toEqual(refused);
  });

  test('LDAP with the mapping auto logs users in on the login page, for any client', async () => {
    deleteLater('erin');
    const browser = newBrowser();
    const page = await browser.open(authorize);
    expect(formIn(page.text).action).toBe('/oauth/login');
    const failed = await browser.submit(page, { username: 'erin', password: wrong });
    expect({ status: failed.status, text: failed.text }).toEqual({
      status: 400,
      text: expect.stringContaining('Incorrect username or password.') as unknown,
    });
    const consent = await browser.submit(failed, { username: 'erin', password: right });
    expect(consent.text).toContain('You are logged in as <strong>erin</strong>');
  });
});

describe('LDAP over StartTLS', () => {
  test('LDAP over StartTLS logs users in, and no credentials are sent without TLS', async () => {
    await used(provider({}, { url: slapd.plain, startTLS: true }));
    deleteLater('erin');
    expect((await attempt('erin')).status).toBe(200);
    await use(provider({}, { url: slapd.plain }));
    // The LDAP server requires TLS, so it rejects the bind whether the password is right or wrong.
    expect(problemOf(await attempt(`nobody-${randomUUID()}`))).toEqual({
      status: 503,
      error: 'temporarily_unavailable',
    });
  });

  test('LDAP over StartTLS rejects a server certificate of another CA', async () => {
    await use(provider({}, { caCertificate: undefined }));
    expect(problemOf(await attempt('erin'))).toEqual({ status: 503, error: 'temporarily_unavailable' });
  });
});

describe('LDAP with the mapping lookup', () => {
  beforeAll(() => used(provider({ mapping: 'lookup' })));

  test('LDAP with the mapping lookup accepts only LDAP users who are linked to a platform user, whatever their usernames', async () => {
    const response = await attempt('frank2');
    expect(problemOf(response)).toEqual(refused);
    const unknown = await attempt('erin');
    expect(problemOf(unknown)).toEqual(refused);
    expect((unknown.json as OAuthProblem).error_description).toContain('no user is linked');
    // The entryUUID is known from a login with the mapping auto.
    await used(provider());
    await login('erin', undefined, right);
    const { spec } = await get(userPath('erin'));
    deleteLater('erin');
    await undo.pop()?.();
    await used(provider({ mapping: 'lookup' }));
    await createUser('e.miller', { identities: spec?.['identities'], displayName: 'Erin M.' });
    deleteLater('e.miller');
    const tokens = await eventually('erin logs in as e.miller', () => login('erin', undefined, right));
    expect((await whoami(tokens.access_token)).username).toBe('e.miller');
    expect((await get(userPath('e.miller'))).spec).toMatchObject({ displayName: 'Erin M.' });
    // If two users have the link by mistake, the login is rejected.
    await createUser('e.miller2', { identities: spec?.['identities'] });
    deleteLater('e.miller2');
    await eventually('the session has ended', async () => expect(await statusOf(tokens)).toBe(401));
    expect(problemOf(await attempt('erin'))).toEqual(refused);
  });
});

describe('an LDAP provider', () => {
  test('logins of LDAP users get 503 while an LDAP provider is down, and logins of platform users still succeed', async () => {
    await used(provider());
    await slapd.stop();
    undo.push(() => slapd.start());
    // A wrong password of a platform user gets the same response.
    for (const name of ['erin', 'alice', `nobody-${randomUUID()}`]) {
      const response = await attempt(name);
      expect(problemOf(response)).toEqual({ status: 503, error: 'temporarily_unavailable' });
      expect(response.headers['retry-after']).toMatch(/^\d+$/);
    }
    expect((await attempt('alice', passwords.alice)).status).toBe(200);
    const { text } = await call(`${gateway(0)}/readyz?verbose`, { token: await adminToken() });
    expect(text).toMatch(/^\[\+\]identity-providers ok \(warning: "corp" failed at \S+ \(ECONNREFUSED\)\)$/m);
  });

  test("an LDAP provider that rejects the service account's password is reported to the administrator", async () => {
    const other = 'directory-bind-wrong';
    await create(`${releasePath}/secrets`, { metadata: { name: other }, stringData: { password: wrong } });
    undo.push(() => remove(`${releasePath}/secrets/${other}`));
    await use(provider({}, { bindPasswordRef: { name: other, key: 'password' } }));
    const token = await adminToken();
    await eventually('the failure is reported', async () => {
      expect((await attempt(`nobody-${randomUUID()}`)).status).toBe(503);
      const { text } = await call(`${gateway(0)}/readyz?verbose`, { token });
      expect(text).toContain(
        `(corp).ldap.bindPasswordRef: the LDAP server rejects the bindDN "${service.dn}" or its password, the key "password" of the Secret "${other}": invalidCredentials (49)`,
      );
    });
  });

  test('removing an LDAP provider from the configuration revokes its sessions', async () => {
    await used(provider());
    deleteLater('erin');
    const tokens = await eventually('the directory responds again', () => login('erin', undefined, right));
    await use();
    await eventually('the session has ended', async () => expect(await statusOf(tokens)).toBe(401));
    expect(problemOf(await attempt('erin'))).toEqual(refused);
  });
});

/** Presses the button and returns the address to which it leads. */
async function pressButton(browser: Browser, name = 'sso'): Promise<string> {
  const page = await browser.open(authorize);
  expect(page.text).toContain('Log in with Single Sign-On');
  const { fields } = formIn(page.text);
  const { form_token = '', next = '' } = fields;
  const response = await eventually('the provider is available', async () => {
    const left = await browser.send(`/oauth/login/${name}`, { form_token, next });
    expect({ status: left.status, text: left.text }).toEqual({
      status: 200,
      text: expect.stringContaining('Continue to Single Sign-On') as unknown,
    });
    return left;
  });
  return String(response.headers['refresh']).replace('0; url=', '');
}
const back = (browser: Browser, query: URLSearchParams, name = 'sso'): Promise<Page> =>
  browser.open(`/oauth/callback/${name}?${query.toString()}`);

/** Expects an error page, and that nobody is logged in. */
async function expectRefused(browser: Browser, response: Page, status: number, text: string): Promise<void> {
  expect({ status: response.status, text: response.text }).toEqual({
    status,
    text: expect.stringContaining(text) as unknown,
  });
  expect((await browser.open(authorize)).text).toContain('Log in with Single Sign-On');
}

describe('an OpenID provider', () => {
  let openid: OpenIDProvider;
  const secret = 'openid-client';
  const oidc = (changes: object = {}): object => ({
    name: 'sso',
    type: 'OIDC',
    displayName: 'Single Sign-On',
    mapping: 'auto',
    oidc: {
      issuer: openid.issuer,
      clientID: 'platform',
      clientSecretRef: { name: secret, key: 'secret' },
      caCertificate: openid.caCertificate,
      scopes: ['openid', 'profile', 'email', 'groups'],
      claims: { groups: 'groups' },
    },
    ...changes,
  });

  beforeAll(async () => {
    const { issuer } = (await call(`${gateway()}/.well-known/openid-configuration`)).json as { issuer: string };
    openid = await startOpenIDProvider(['sso', 'other'].map((name) => `${issuer}/oauth/callback/${name}`));
    await create(`${releasePath}/secrets`, { metadata: { name: secret }, stringData: { secret: openid.clientSecret } });
    openid.people.set('o-1', {
      preferred_username: 'Olivia',
      name: 'Olivia O.',
      email: 'olivia@example.org',
      email_verified: true,
      groups: ['engineers'],
    });
    await use(oidc());
  });
  afterAll(async () => {
    await openid.stop();
    await remove(`${releasePath}/secrets/${secret}`);
  });

  async function logIn(browser: Browser, subject = 'o-1'): Promise<Page> {
    return await back(browser, await openid.login(await pressButton(browser), subject));
  }
  test('a login at an OpenID provider creates the user, whichever replica receives the response of the provider', async () => {
    deleteLater('olivia');
    const browser = newBrowser();
    const url = await pressButton(browser);
    expect(Object.fromEntries(new URL(url).searchParams)).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      state: expect.stringMatching(/^[\w-]{43}$/) as unknown,
      nonce: expect.stringMatching(/^[\w-]{43}$/) as unknown,
    });
    const query = await openid.login(url, 'o-1');
    replicaNow = 1;
    undo.push(async () => {
      replicaNow = 0;
    });
    expect((await back(browser, query)).text).toEqual(loggedInAs('olivia'));
    expect((await get(userPath('olivia'))).spec).toMatchObject({
      displayName: 'Olivia O.',
      email: 'olivia@example.org',
      identities: [{ provider: 'sso', subject: 'o-1' }],
    });
    const sessions = await get<{ items: { spec: { userName: string; groups?: string[]; clientID: string } }[] }>(
      sessionsPath(release.namespace),
    );
    expect(sessions.items.find(({ spec }) => spec.userName === 'olivia')?.spec).toMatchObject({
      clientID: 'platform-pages',
      groups: ['sso:engineers'],
    });
    // The same response cannot be used again.
    const again = await back(browser, query);
    expect({ status: again.status, text: again.text }).toEqual({
      status: 400,
      text: expect.stringContaining('start again') as unknown,
    });
  });

  test("an OpenID provider's groups apply to the tokens of the client that started the login", async () => {
    deleteLater('olivia');
    await bind('openid-test', 'platform-node-reader', { kind: 'Group', name: 'sso:engineers' });
    undo.push(() => unbind('openid-test'));
    const browser = newBrowser();
    const verifier = randomUUID() + randomUUID();
    const url = new URL(authorize, 'https://platform.example');
    url.searchParams.set('code_challenge', createHash('sha256').update(verifier).digest('base64url'));
    await logIn(browser);
    const consent = await browser.open(`${url.pathname}${url.search}`);
    const { headers } = await browser.submit(consent, { decision: 'allow' });
    const code = new URL(headers.location ?? '').searchParams.get('code') ?? '';
    const tokens = (
      await postForm({
        grant_type: 'authorization_code',
        client_id: 'platform-cli',
        redirect_uri: 'http://127.0.0.1:1/callback',
        code,
        code_verifier: verifier,
      })
    ).json as Tokens;
    expect((await whoami(tokens.access_token)).groups).toContain('sso:engineers');
    await eventually('olivia reads nodes', async () =>
      expect(await statusOf(tokens, `${nodesPath}?limit=1`)).toBe(200),
    );
    await patch(userPath('olivia'), { spec: { state: 'Disabled' } });
    await eventually('the session has ended', async () => expect(await statusOf(tokens)).toBe(401));
    const response = await logIn(browser);
    await expectRefused(browser, response, 403, 'disabled');
  });

  test('login responses of an OpenID provider for another browser, provider or state are rejected', async () => {
    const browser = newBrowser();
    const query = await openid.login(await pressButton(browser), 'o-1');
    const other = newBrowser();
    await expectRefused(other, await back(other, query), 400, 'not started in this browser');
    // An attacker who puts the cookie of the login into a victim's browser does not succeed either.
    await other.open(authorize);
    other.cookies.set('__Host-platform-provider', browser.cookies.get('__Host-platform-provider') ?? '');
    await expectRefused(other, await back(other, query), 400, 'not started in this browser');
    await expectRefused(browser, await back(browser, query, 'other'), 400, 'not started in this browser');
    const changed = new URLSearchParams(query);
    changed.set('state', `${'A'.repeat(42)}A`);
    await expectRefused(browser, await back(browser, changed), 400, 'not started in this browser');
  });

  test('a login response with the issuer of another OpenID provider is rejected (RFC 9207)', async () => {
    const browser = newBrowser();
    const query = await openid.login(await pressButton(browser), 'o-1');
    query.set('iss', 'https://attacker.example');
    await expectRefused(browser, await back(browser, query), 400, 'does not match');
  });

  test('a login that the OpenID provider denies leads to an error page', async () => {
    const browser = newBrowser();
    const state = new URL(await pressButton(browser)).searchParams.get('state') ?? '';
    const query = new URLSearchParams({ error: 'access_denied', state, iss: openid.issuer });
    await expectRefused(browser, await back(browser, query), 403, 'refused the login: access_denied');
  });

  test.each<[string, (nonce: string) => object, boolean?, string?, number?]>([
    // The other id_tokens are rejected before the server sends the access token to the userinfo endpoint.
    [
      'issued with an access token that the userinfo endpoint rejects',
      (nonce) => ({ nonce }),
      false,
      'is unavailable',
      503,
    ],
    ['for another client', (nonce) => ({ nonce, aud: 'another' })],
    ['of another issuer', (nonce) => ({ nonce, iss: 'https://attacker.example' })],
    ['of another login', () => ({ nonce: 'another' })],
    ['without a nonce', () => ({})],
    ['that has expired', (nonce) => ({ nonce, exp: Math.floor(Date.now() / 1_000) - 600 })],
    ['signed by another key', (nonce) => ({ nonce }), true],
  ])(
    'a login at an OpenID provider is rejected for an id_token %s',
    async (_, claims, isForeign = false, text = 'does not match', status = 400) => {
      const browser = newBrowser();
      const url = await pressButton(browser);
      const query = await openid.login(url, 'o-1');
      undo.push(async () => openid.forge(undefined));
      const now = Math.floor(Date.now() / 1_000);
      const nonce = new URL(url).searchParams.get('nonce') ?? '';
      const key = isForeign ? generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey : undefined;
      openid.forge({ sub: 'o-1', iat: now, exp: now + 600, ...claims(nonce) }, key);
      await expectRefused(browser, await back(browser, query), status, text);
    },
  );

  test('an OpenID provider with the mapping lookup logs in linked users, and other users see the reason for the rejection', async () => {
    await use(oidc({ mapping: 'lookup' }));
    undo.push(() => use(oidc()));
    const browser = newBrowser();
    await expectRefused(browser, await logIn(browser), 403, 'No user is linked');
    await createUser('o.two', { identities: [{ provider: 'sso', subject: 'o-1' }] });
    deleteLater('o.two');
    await eventually('both replicas know the link', async () => {
      expect((await logIn(newBrowser())).text).toEqual(loggedInAs('o.two'));
    });
  });

  test('removing an OpenID provider from the configuration revokes its sessions and removes its login button', async () => {
    deleteLater('olivia');
    const browser = newBrowser();
    expect((await logIn(browser)).text).toEqual(loggedInAs('olivia'));
    await use();
    undo.push(() => use(oidc()));
    const page = await browser.open(authorize);
    expect(formIn(page.text).action).toBe('/oauth/login');
    expect(page.text).not.toContain('Single Sign-On');
  });

  test('the error page for a login names the OpenID provider that is down', async () => {
    await use(oidc({ oidc: { ...(oidc() as { oidc: object }).oidc, issuer: 'https://127.0.0.1:1' } }));
    undo.push(() => use(oidc()));
    const browser = newBrowser();
    const { form_token = '', next = '' } = formIn((await browser.open(authorize)).text).fields;
    const response = await browser.send('/oauth/login/sso', { form_token, next });
    expect({ status: response.status, text: response.text }).toEqual({
      status: 503,
      text: expect.stringMatching(/The identity provider .*Single Sign-On.* is unavailable/) as unknown,
    });
    expect((await browser.send('/oauth/login/nobody', { form_token, next })).status).toBe(404);
    expect((await newBrowser().send('/oauth/login/sso', { next })).status).toBe(403);
  });
});

const identityOf = (subject: string): object => ({ identities: [{ provider: 'corp', subject }] });
const rules = (...resources: string[]): object[] => [
  { apiGroups: ['iam.platform.io'], resources, verbs: ['create', 'update', 'patch'] },
];

/** Creates a user without rights other than those of the group. */
const asLinker = (request: KubeRequest & { path?: string }): Promise<string> =>
  kube()
    .json(request.path ?? usersPath, {
      ...request,
      headers: { 'impersonate-user': 'linker', 'impersonate-group': 'linkers' },
    })
    .then(
      () => 'accepted',
      (error: unknown) => String(error),
    );

const linkedBy = (name: string, spec: object): Promise<string> =>
  asLinker({
    method: 'POST',
    body: { apiVersion: 'iam.platform.io/v1alpha2', kind: 'User', metadata: { name }, spec },
  });

test('linking a user to an identity requires the right to write links and to impersonate the user and all groups', async () => {
  const roles = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
  await create(roles, { metadata: { name: 'linkers' }, rules: rules('users') });
  undo.push(() => remove(`${roles}/linkers`));
  await bind('linkers', 'linkers', { kind: 'Group', name: 'linkers' });
  undo.push(() => unbind('linkers'));
  deleteLater('kim');
  await eventually('the right to create users is in effect', async () => {
    await removeUser('kim');
    expect(await linkedBy('kim', {})).toBe('accepted');
  });
  expect(await linkedBy('judy', identityOf(randomUUID()))).toContain('users/identities');
  const linking = rules('users', 'users/identities');
  await patch(`${roles}/linkers`, { rules: linking });
  await createUser(deleteLater('judy'), { groups: ['platform:admins'] });
  const link = (name: string): Promise<string> =>
    asLinker({ path: userPath(name), method: 'PATCH', contentType: merge, body: { spec: identityOf(randomUUID()) } });
  await eventually('the right to impersonate the user is missing', async () =>
    expect(await link('kim')).toContain('to impersonate the user'),
  );
  await patch(`${roles}/linkers`, {
    rules: [...linking, { apiGroups: [''], resources: ['users'], verbs: ['impersonate'] }],
  });
  await eventually('a user without groups can be linked', async () => expect(await link('kim')).toBe('accepted'));
  expect(await link('judy')).toContain('platform:admins');
});
