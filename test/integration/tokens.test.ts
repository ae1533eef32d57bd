/** Parameters and successful responses of the token endpoint (docs/guides/tokens.md), with common HTTP clients. */
import { describe, expect, test } from '@jest/globals';
import { lab } from '../labs/integration/lab.ts';
import { curl } from '../labs/integration/curl.ts';
import { gateway, secureGateway, type HttpResponse } from '../labs/integration/http.ts';
import {
  basic,
  encode,
  passwordForm,
  platform,
  postForm,
  refreshForm,
  type Tokens,
} from '../labs/integration/login.ts';
import { clientSecrets, passwords } from '../labs/integration/people.ts';

function expectTokens(response: HttpResponse): Tokens {
  expect({ status: response.status, text: response.text }).toMatchObject({ status: 200 });
  expect(response.headers).toMatchObject({
    'content-type': 'application/json',
    'cache-control': 'no-store',
    pragma: 'no-cache',
    'x-content-type-options': 'nosniff',
    'audit-id': expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
  });
  const tokens = response.json as Tokens;
  expect(tokens).toMatchObject({ token_type: 'Bearer', expires_in: 7200 });
  expect(tokens.access_token.split('.')).toHaveLength(3);
  expect(tokens.refresh_token).not.toBe('');
  return tokens;
}

describe('the password grant', () => {
  test('the password grant succeeds with the curl command of the README', async () => {
    const response = await curl(
      `${gateway()}/oauth/token`,
      '-d',
      'grant_type=password',
      '-d',
      'username=admin',
      '--data-urlencode',
      `password=${lab().adminPassword}`,
      '-d',
      'client_id=platform',
      '-d',
      'client_secret=platform',
    );
    const tokens = expectTokens(response);
    expect(Object.keys(tokens).toSorted()).toEqual(['access_token', 'expires_in', 'refresh_token', 'token_type']);
  });

  test.each(['--http1.1', '--http2'])(
    'the password grant succeeds with curl over TLS, with HTTP Basic and %s',
    async (version) => {
      const response = await curl(
        version,
        '--cacert',
        lab().authorityFile,
        '-u',
        'platform:platform',
        `${secureGateway()}/oauth/token`,
        '-d',
        'grant_type=password',
        '-d',
        'username=alice',
        '--data-urlencode',
        `password=${passwords.alice}`,
      );
      expectTokens(response);
    },
  );

  test("the password grant succeeds with Node's fetch", async () => {
    const response = await fetch(`${gateway(1)}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams(passwordForm('alice')),
    });
    expect(response.status).toBe(200);
    expect(Object.keys((await response.json()) as object)).toContain('access_token');
  });

  test.each(['alice', 'bob', 'carol', 'admin'])(
    'the password grant succeeds for %s, whatever the hash algorithm and the storage location of the hash',
    async (username) => {
      expectTokens(await postForm(passwordForm(username)));
      expectTokens(await postForm(passwordForm(username), { base: gateway(1) }));
    },
  );

  test('the password grant accepts a charset in the media type', async () => {
    for (const type of ['application/x-www-form-urlencoded;charset=UTF-8', 'Application/X-WWW-Form-Urlencoded'])
      expectTokens(await postForm(passwordForm('alice'), { headers: { 'content-type': type } }));
  });

  test.each([
    ['plus signs and percent-encoding', encode(passwordForm('bob'))],
    [
      'only percent-encoding',
      Object.entries(passwordForm('bob'))
        .map((pair) => pair.map(encodeURIComponent).join('='))
        .join('&'),
    ],
  ])('the password grant decodes a form with %s', async (_, form) => {
    expectTokens(await postForm(form));
  });

  test('the password grant ignores unknown parameters that occur once', async () => {
    expectTokens(await postForm({ ...passwordForm('alice'), nonsense: 'x' }));
  });
});

describe('client authentication', () => {
  const { client_id: _id, client_secret: _secret, ...bare } = passwordForm('alice');

  test('client authentication succeeds with the credentials in the form', async () => {
    expectTokens(await postForm({ ...bare, ...platform }));
  });

  test('client authentication succeeds with HTTP Basic, even if the form contains the client_id', async () => {
    expectTokens(await postForm(bare, { headers: basic('platform', 'platform') }));
    expectTokens(await postForm({ ...bare, client_id: 'platform' }, { headers: basic('platform', 'platform') }));
    const { authorization } = basic('platform', 'platform');
    expectTokens(await postForm(bare, { headers: { authorization: authorization.replace('Basic', 'bAsIc') } }));
  });

  test.each(['hashed', 'referred'] as const)(
    'client authentication succeeds for the client %s, whose secret is not in plain text in the configuration',
    async (client) => {
      const secret = clientSecrets[client];
      expectTokens(await postForm(bare, { headers: basic(client, secret) }));
      expectTokens(await postForm({ ...bare, client_id: client, client_secret: secret }));
    },
  );
});

const loginWith = (scope: string): Promise<HttpResponse> => postForm({ ...passwordForm('alice'), scope });

describe('the scope', () => {
  test('the scope openid adds an id_token and is reported as granted', async () => {
    const tokens = expectTokens(await loginWith('openid profile email'));
    expect(tokens).toMatchObject({ scope: 'openid profile email', id_token: expect.any(String) as unknown });
  });

  test('a scope without openid adds no id_token, and the response omits unknown scopes', async () => {
    const tokens = expectTokens(await loginWith('profile nonsense profile'));
    expect(tokens.scope).toBe('profile');
    expect(tokens).not.toHaveProperty('id_token');
  });

  test('an empty scope is treated as a missing scope', async () => {
    expect(expectTokens(await loginWith(''))).not.toHaveProperty('scope');
  });

  test('a refresh without a scope keeps the scope, and a refresh can request a narrower scope', async () => {
    const first = expectTokens(await loginWith('openid profile'));
    const second = expectTokens(await postForm(refreshForm(first.refresh_token)));
    expect(second).toMatchObject({ scope: 'openid profile', id_token: expect.any(String) as unknown });
    const third = expectTokens(await postForm({ ...refreshForm(second.refresh_token), scope: 'profile' }));
    expect(third.scope).toBe('profile');
    expect(third).not.toHaveProperty('id_token');
    const fourth = expectTokens(await postForm(refreshForm(third.refresh_token)));
    expect(fourth.scope).toBe('openid profile');
  });
});
