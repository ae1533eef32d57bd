/** Logins at an OpenID provider in the test process. Each test sets the responses of the provider. */
// evidence: openid-login
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createHash, createPrivateKey } from 'node:crypto';
import { IdentityProviders } from '../../../../src/accounts/providers/identity-providers.ts';
import { providerTypes } from '../../../../src/accounts/providers/index.ts';
import { RedirectProviders } from '../../../../src/accounts/providers/redirect-providers.ts';
import { PersonRefused } from '../../../../src/accounts/providers/person.ts';
import { LiveConfiguration } from '../../../../src/config/live.ts';
import { configuration, issuer } from '../../../fakes/configuration.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { clientID, OpenIDServer } from '../../../fakes/openid-server.ts';
import { keyMaker } from '../../../fakes/signing-keys.ts';
import { FakeClock } from '../../../labs/cluster-fakes.ts';

const request = { state: 'the-state', nonce: 'the-nonce', verifier: 'v'.repeat(43) };
const address = '192.0.2.1';
const hour = 3_600_000;
const discovery = '/.well-known/openid-configuration';
const ref = { name: 'openid', key: 'secret' };

let server: OpenIDServer;
let clock: FakeClock;
let live: LiveConfiguration;
let providers: RedirectProviders;
let lines: () => string[];
let secret: string | undefined;

/** Configures the provider with these changes. */
function configure(changes: object = {}, oidc: object = {}): void {
  const { caCertificate } = server;
  const settings = { issuer: server.issuer, clientID, clientSecretRef: ref, caCertificate, ...oidc };
  const ldap = { url: 'ldaps://directory.example', userSearch: { base: 'dc=example' } };
  live.accept(
    configuration({
      authentication: {
        maximumClockSkew: '10s',
        identityProviders: [
          { name: 'directory', type: 'LDAP', ldap },
          { name: 'sso', displayName: 'Our SSO', type: 'OIDC', oidc: settings, ...changes },
        ],
      },
    }),
  );
}

beforeEach(async () => {
  server = new OpenIDServer();
  await server.start();
  server.claims = { nonce: request.nonce };
  clock = new FakeClock();
  live = new LiveConfiguration();
  configure();
  secret = 'the-secret';
  const log = logOfLines();
  ({ lines } = log);
  providers = new RedirectProviders(
    new IdentityProviders({ config: live, secrets: { read: () => secret }, types: providerTypes, clock, log: log.log }),
  );
});
afterEach(() => server.stop());

const leave = (again = false, from = address): Promise<string> =>
  providers.authorizationURL('sso', request, again, from);
const comeBack = (query: Readonly<Record<string, string>> = {}) =>
  providers.person('sso', new URLSearchParams({ code: 'the-code', state: request.state, ...query }), request, address);
const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );
const now = (): number => Math.floor(Date.now() / 1_000);

describe('the redirect of a browser to an OpenID provider', () => {
  test("the redirect of a browser to an OpenID provider has a state, a nonce, a PKCE challenge and the provider's redirect URI", async () => {
    const url = new URL(await leave());
    expect(url.href.startsWith(`${server.issuer}/authorization?`)).toBe(true);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      response_type: 'code',
      client_id: clientID,
      redirect_uri: `${issuer}/oauth/callback/sso`,
      scope: 'openid profile email',
      state: request.state,
      nonce: request.nonce,
      code_challenge: createHash('sha256').update(request.verifier).digest('base64url'),
      code_challenge_method: 'S256',
    });
  });

  test('the redirect of a browser to an OpenID provider contains prompt=login if a new login is required', async () => {
    expect(new URL(await leave(true)).searchParams.get('prompt')).toBe('login');
  });

  test.each(['http://127.0.0.1/authorization', 'javascript:alert(1)', undefined])(
    'a browser is not redirected to an OpenID provider with the authorization endpoint %s',
    async (endpoint) => {
      server.metadata = { authorization_endpoint: endpoint };
      await expect(leave()).rejects.toMatchObject({ code: 503 });
      expect(lines().join('\n')).toContain('"provider":"sso"');
    },
  );
});

describe.each(['directory', 'nowhere'])('the unknown provider %s', (name) => {
  const unknown = { error: 'invalid_request', code: 404 };

  test('a login at an unknown OpenID provider is rejected both at its start and when the browser returns', async () => {
    expect(providers.all().map((one) => one.name)).toEqual(['sso']);
    await expect(providers.authorizationURL(name, request, false, address)).rejects.toMatchObject(unknown);
    await expect(providers.person(name, new URLSearchParams(), request, address)).rejects.toMatchObject(unknown);
  });
});

describe('a login at an OpenID provider', () => {
  test('a login at an OpenID provider returns the claims of the id_token and of userinfo, and sends the code with the client secret', async () => {
    configure({}, { claims: { groups: 'roles' } });
    server.claims = { ...server.claims, preferred_username: 'erin', roles: ['a'] };
    server.userinfo = { sub: '1', preferred_username: 'other', name: 'Erin', email: 'e@a.org', email_verified: true };
    await expect(comeBack()).resolves.toEqual({
      identity: { provider: 'sso', subject: '1' },
      username: 'erin',
      displayName: 'Erin',
      email: 'e@a.org',
      groups: ['sso:a'],
    });
    const [{ form, authorization } = {}] = server.to('/token');
    expect(form).toMatchObject({
      grant_type: 'authorization_code',
      code: 'the-code',
      code_verifier: request.verifier,
      redirect_uri: `${issuer}/oauth/callback/sso`,
    });
    expect([form?.['client_secret'], authorization]).toContain('the-secret');
    expect(server.to('/userinfo')).toMatchObject([{ authorization: 'Bearer an-access-token' }]);
  });

  test('a login at an OpenID provider returns only the claims of the id_token if there is no userinfo endpoint', async () => {
    server.metadata = { userinfo_endpoint: undefined };
    server.claims = { ...server.claims, preferred_username: 'erin' };
    await expect(comeBack()).resolves.toMatchObject({ username: 'erin' });
    expect(server.to('/userinfo')).toEqual([]);
  });

  test('a login at an OpenID provider is rejected if the provider returns a reserved username', async () => {
    server.claims = { ...server.claims, preferred_username: 'system:admin' };
    await expect(comeBack()).rejects.toBeInstanceOf(PersonRefused);
  });

  test('a login at an OpenID provider is rejected with the error of the provider', async () => {
    const error = await errorOf(comeBack({ error: 'access_denied' }));
    expect(error).toMatchObject({ error: 'access_denied', code: 403 });
    expect((error as Error).message).toContain('Our SSO');
    expect(server.to('/token')).toEqual([]);
    expect(lines()).toEqual([]);
  });

  test.each([
    ['has expired within the tolerance', () => ({ exp: now() - 5 })],
    ['is for several clients and authorizes this one', () => ({ aud: [clientID, 'other'], azp: clientID })],
  ])('a login at an OpenID provider accepts an id_token that %s', async (_, claims) => {
    server.claims = { ...server.claims, ...claims() };
    await expect(comeBack()).resolves.toMatchObject({ identity: { subject: '1' } });
  });

  test.each<[string, () => unknown]>([
    ['the state of another login', () => comeBack({ state: 'other' })],
    ['no state', () => comeBack({ state: '' })],
    ['the issuer of another provider (RFC 9207)', () => comeBack({ iss: 'https://other.example' })],
    ...Object.entries({
      'another issuer': () => ({ iss: 'https://other.example' }),
      'another client': () => ({ aud: 'other' }),
      'no client': () => ({ aud: undefined }),
      'the nonce of another login': () => ({ nonce: 'other' }),
      'no nonce': () => ({ nonce: undefined }),
      'no subject': () => ({ sub: undefined }),
      'an expiry beyond the tolerance': () => ({ exp: now() - 60 }),
      'no expiry': () => ({ exp: undefined }),
    }).map(([what, claims]): [string, () => unknown] => [
      `an id_token with ${what}`,
      () => {
        server.claims = { ...server.claims, ...claims() };
        return comeBack();
      },
    ]),
    [
      'an unsigned id_token whose header names an algorithm',
      () => {
        server.key = undefined;
        return comeBack();
      },
    ],
    [
      'an id_token with the algorithm none',
      () => {
        server.header = { alg: 'none' };
        return comeBack();
      },
    ],
    [
      'an id_token signed with another key',
      async () => {
        const make = keyMaker();
        await make('RS256');
        server.key = createPrivateKey(await make('RS256'));
        return await comeBack();
      },
    ],
    [
      'an id_token of an unknown key',
      () => {
        server.header = { kid: 'other' };
        return comeBack();
      },
    ],
    [
      'no id_token',
      () => {
        server.respond = (path) =>
          path === '/token' ? { body: { access_token: 'a', token_type: 'Bearer' } } : undefined;
        return comeBack();
      },
    ],
    [
      'an invalid_grant error for the code',
      () => {
        server.respond = (path) => (path === '/token' ? { status: 400, body: { error: 'invalid_grant' } } : undefined);
        return comeBack();
      },
    ],
    [
      'userinfo of another user',
      () => {
        server.userinfo = { sub: '2' };
        return comeBack();
      },
    ],
  ])('a login at an OpenID provider has to be restarted if the provider sends %s', async (_, attempt) => {
    const error = await errorOf(attempt() as Promise<unknown>);
    expect(error).toMatchObject({ error: 'invalid_request', code: 400 });
    expect((error as Error).message).toContain('Our SSO');
    expect(lines().map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { level: 'warn', provider: 'sso', error: expect.anything() as unknown },
    ]);
  });
});

const fail = (at: string, status = 500, body: unknown = {}): void => {
  server.respond = (path) => (path === at ? { status, body } : undefined);
};

describe('an OpenID provider', () => {
  test.each<[string, () => void]>([
    ['cannot be discovered', () => fail(discovery)],
    ['publishes no keys', () => fail('/keys')],
    ['fails at the token endpoint', () => fail('/token')],
    ['rejects the client secret', () => fail('/token', 401, { error: 'invalid_client' })],
    ['fails at the userinfo endpoint', () => fail('/userinfo')],
    ['has an endpoint without TLS', () => void (server.metadata = { token_endpoint: 'http://127.0.0.1:1/token' })],
    ['has a certificate of an unknown CA', () => configure({}, { caCertificate: undefined })],
    ['has no client secret yet', () => void (secret = undefined)],
    ['has stopped', () => server.stop()],
  ])('an OpenID provider is unavailable if it %s', async (_, break_) => {
    break_();
    await expect(comeBack()).rejects.toMatchObject({ code: 503 });
    expect(lines().map((line) => JSON.parse(line) as unknown)).toMatchObject([{ level: 'warn', provider: 'sso' }]);
  });

  test('an OpenID provider gets no code if it claims to be another issuer', async () => {
    server.metadata = { issuer: 'https://other.example' };
    await expect(comeBack()).rejects.toMatchObject({
      code: 503,
      message: 'the identity provider "Our SSO" is unavailable; try again in a moment, or contact your administrator',
    });
    expect(server.to('/token')).toEqual([]);
  });

  test('an OpenID provider is shown by its name if it has no display name', async () => {
    configure({ displayName: undefined });
    secret = undefined;
    await expect(leave()).rejects.toThrow('the identity provider "sso" is unavailable');
    expect(lines().join('\n')).toContain('of the Secret \\"openid\\" is missing');
    expect(server.requests).toEqual([]);
  });
});

const count = (): number => server.to(discovery).length;

describe('the discovery of an OpenID provider', () => {
  test('the discovery of an OpenID provider is cached for an hour', async () => {
    await leave();
    await clock.advance(hour - 1);
    await leave();
    expect(count()).toBe(1);
    await clock.advance(1);
    await leave();
    expect(count()).toBe(2);
    await clock.advance(hour - 1);
    await leave();
    expect(count()).toBe(2);
  });

  test('the discovery of an OpenID provider is shared by concurrent logins', async () => {
    await Promise.all([leave(), leave(), leave()]);
    expect(count()).toBe(1);
  });

  test.each<[string, () => void]>([
    ['the client secret changes', () => void (secret = 'another')],
    ['the configuration changes', () => configure({}, { clientID: 'another' })],
  ])('the discovery of an OpenID provider is repeated when %s', async (_, change) => {
    await leave();
    change();
    await leave();
    expect(count()).toBe(2);
  });

  test('a failed discovery of an OpenID provider is repeated by the next login', async () => {
    fail(discovery);
    await expect(leave()).rejects.toMatchObject({ code: 503 });
    server.respond = () => undefined;
    await expect(leave()).resolves.toContain(server.issuer);
    expect(count()).toBe(2);
  });

  test('a failed discovery of an OpenID provider leaves the earlier result in use, and is repeated by each login', async () => {
    await leave();
    await clock.advance(hour);
    fail(discovery);
    await expect(leave()).resolves.toContain(server.issuer);
    expect(lines().map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { level: 'warn', provider: 'sso', error: expect.anything() as unknown },
    ]);
    await leave();
    expect(count()).toBe(3);
  });

  test('the discovery of an OpenID provider is repeated with the new redirect URI when the issuer of this server changes', async () => {
    await leave();
    const { authentication } = live.value;
    live.accept({ ...live.value, authentication: { ...authentication, issuer: 'https://new.example' } });
    const url = new URL(await leave());
    expect(url.searchParams.get('redirect_uri')).toBe('https://new.example/oauth/callback/sso');
    expect(count()).toBe(2);
  });

  test('a failed discovery of an OpenID provider after a change of the client secret leaves no result in use', async () => {
    await leave();
    secret = 'another';
    fail(discovery);
    await expect(leave()).rejects.toMatchObject({ code: 503 });
  });
});

test('an address is limited to 4 concurrent and 8 queued requests to an OpenID provider, without effect on other addresses', async () => {
  const released = Promise.withResolvers<undefined>();
  server.respond = (path) => (path === discovery ? released.promise : undefined);
  // The PKCE challenges are computed in any order, so any of these logins can be the rejected one.
  const logins = Array.from({ length: 13 }, () => leave());
  const settled = Promise.allSettled(logins);
  await expect(Promise.race(logins)).rejects.toMatchObject({ code: 429 });
  const another = leave(false, '198.51.100.200');
  released.resolve(undefined);
  expect((await settled).filter(({ status }) => status === 'fulfilled')).toHaveLength(12);
  await expect(another).resolves.toContain(server.issuer);
  await expect(leave()).resolves.toContain(server.issuer);
});
