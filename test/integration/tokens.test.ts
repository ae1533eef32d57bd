/** Parameters and successful responses of the token endpoint (docs/tokens.md), with the clients that people use. */
import { describe, expect, test } from '@jest/globals';
import { lab } from '../labs/integration/lab.ts';
import { curl } from '../labs/integration/curl.ts';
import { gateway, secureGateway, type Answer } from '../labs/integration/http.ts';
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

function expectTokens(answer: Answer): Tokens {
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 });
  expect(answer.headers).toMatchObject({
    'content-type': 'application/json',
    'cache-control': 'no-store',
    pragma: 'no-cache',
    'x-content-type-options': 'nosniff',
    'audit-id': expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
  });
  const tokens = answer.json as Tokens;
  expect(tokens).toMatchObject({ token_type: 'Bearer', expires_in: 7200 });
  expect(tokens.access_token.split('.')).toHaveLength(3);
  expect(tokens.refresh_token).not.toBe('');
  return tokens;
}

describe('the password grant', () => {
  test('by curl, as the README has it', async () => {
    const answer = await curl(
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
    const tokens = expectTokens(answer);
    expect(Object.keys(tokens).toSorted()).toEqual(['access_token', 'expires_in', 'refresh_token', 'token_type']);
  });

  test.each(['--http1.1', '--http2'])('by curl over TLS, with HTTP Basic and %s', async (version) => {
    const answer = await curl(
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
    expectTokens(answer);
  });

  test("by Node's fetch", async () => {
    const answer = await fetch(`${gateway(1)}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams(passwordForm('alice')),
    });
    expect(answer.status).toBe(200);
    expect(Object.keys((await answer.json()) as object)).toContain('access_token');
  });

  test.each(['alice', 'bob', 'carol', 'admin'])('of %s, whatever kind of hash and place it has', async (username) => {
    expectTokens(await postForm(passwordForm(username)));
    expectTokens(await postForm(passwordForm(username), { base: gateway(1) }));
  });

  test('takes a charset behind the media type', async () => {
    for (const type of ['application/x-www-form-urlencoded;charset=UTF-8', 'Application/X-WWW-Form-Urlencoded'])
      expectTokens(await postForm(passwordForm('alice'), { headers: { 'content-type': type } }));
  });

  test.each([
    ['plus and percent', encode(passwordForm('bob'))],
    [
      'percent alone',
      Object.entries(passwordForm('bob'))
        .map((pair) => pair.map(encodeURIComponent).join('='))
        .join('&'),
    ],
  ])('decodes a form with %s', async (_, form) => {
    expectTokens(await postForm(form));
  });

  test('ignores parameters that it does not know, once each', async () => {
    expectTokens(await postForm({ ...passwordForm('alice'), nonsense: 'x', resource: 'y' }));
  });
});

describe('a client authenticates', () => {
  const { client_id: _id, client_secret: _secret, ...bare } = passwordForm('alice');

  test('in the form', async () => {
    expectTokens(await postForm({ ...bare, ...platform }));
  });

  test('by HTTP Basic, also with its client_id in the form', async () => {
    expectTokens(await postForm(bare, { headers: basic('platform', 'platform') }));
    expectTokens(await postForm({ ...bare, client_id: 'platform' }, { headers: basic('platform', 'platform') }));
    const { authorization } = basic('platform', 'platform');
    expectTokens(await postForm(bare, { headers: { authorization: authorization.replace('Basic', 'bAsIc') } }));
  });

  test.each(['hashed', 'referred'] as const)('as %s, whose secret is no text of the configuration', async (client) => {
    const secret = clientSecrets[client];
    expectTokens(await postForm(bare, { headers: basic(client, secret) }));
    expectTokens(await postForm({ ...bare, client_id: client, client_secret: secret }));
  });
});

const asking = (scope: string): Promise<Answer> => postForm({ ...passwordForm('alice'), scope });

describe('scope', () => {
  test('openid adds an id_token and says what was granted', async () => {
    const tokens = expectTokens(await asking('openid profile email'));
    expect(tokens).toMatchObject({ scope: 'openid profile email', id_token: expect.any(String) as unknown });
  });

  test('anything else adds none; what is unknown is dropped, and the answer says so', async () => {
    const tokens = expectTokens(await asking('profile nonsense profile'));
    expect(tokens.scope).toBe('profile');
    expect(tokens).not.toHaveProperty('id_token');
  });

  test('an empty one counts as none', async () => {
    expect(expectTokens(await asking(''))).not.toHaveProperty('scope');
  });

  test('stays for refreshes, which may ask for less', async () => {
    const first = expectTokens(await asking('openid profile'));
    const second = expectTokens(await postForm(refreshForm(first.refresh_token)));
    expect(second).toMatchObject({ scope: 'openid profile', id_token: expect.any(String) as unknown });
    const third = expectTokens(await postForm({ ...refreshForm(second.refresh_token), scope: 'profile' }));
    expect(third.scope).toBe('profile');
    expect(third).not.toHaveProperty('id_token');
    const fourth = expectTokens(await postForm(refreshForm(third.refresh_token)));
    expect(fourth.scope).toBe('openid profile');
  });
});
