import { describe, expect, test } from '@jest/globals';
import type { Request } from 'express';
import { aggregatedAuthenticator } from '../../../../src/auth/authenticators/index.ts';
import { bearer } from '../../../../src/auth/authenticators/bearer.ts';
import type { Source, TokenAuthenticator } from '../../../../src/auth/authenticators/authenticator.ts';
import { fingerprint } from '../../../../src/tokens/jwt.ts';
import type { UserInfo } from '../../../../src/auth/user.ts';
import { serviceUnavailable } from '../../../../src/runtime/errors.ts';

const alice: UserInfo = { username: 'alice', groups: [], via: 'token' };
const robot: UserInfo = { username: 'robot', groups: [], via: 'token-review' };
const knows =
  (good: string, user: UserInfo): TokenAuthenticator =>
  async (token) =>
    token === good ? user : undefined;
const request = (authorization?: string, parts: object = {}): Request =>
  ({ headers: authorization === undefined ? {} : { authorization }, ...parts }) as unknown as Request;

const from = '192.0.2.7';

const authenticate = bearer([knows('one', alice), knows('two', robot)]);

describe('a bearer token', () => {
  test.each([
    ['Bearer one', alice],
    ['bearer one', alice],
    ['BEARER two', robot],
    ['Bearer  one', alice],
    ['bearer    two', robot],
  ])('is judged by the first that knows it: %s', async (authorization, user) => {
    expect(await authenticate(request(authorization), from)).toBe(user);
  });

  test('is judged with the address of the client', async () => {
    const sources: Source[] = [];
    const judge = bearer([
      async (_, source) => {
        sources.push(source);
        return alice;
      },
    ]);
    await judge(request('Bearer one'), from);
    const headers = {
      connection: 'upgrade',
      upgrade: 'websocket',
      'sec-websocket-protocol': `base64url.bearer.authorization.k8s.io.${Buffer.from('one').toString('base64url')}, v4.channel.k8s.io`,
    };
    await judge({ method: 'GET', httpVersion: '1.1', headers } as unknown as Request, from);
    expect(sources).toEqual([from, from]);
  });

  test.each(['Bearer three', 'Bearer one two', 'Bearer '])('that nobody knows is 401: %j', async (text) => {
    await expect(authenticate(request(text), from)).rejects.toMatchObject({
      code: 401,
      headers: { 'WWW-Authenticate': 'Bearer realm="platform", error="invalid_token"' },
    });
  });

  test.each([[undefined], ['Basic b25lOm9uZQ=='], ['Bearer'], ['Bearer\tone'], ['BearerX one'], ['']])(
    'is not in %j: others may be asked',
    async (text) => {
      expect(await authenticate(request(text), from)).toBeUndefined();
    },
  );

  test.each([[{ query: { access_token: 'one' } }], [{ body: { access_token: 'one' } }]])(
    'counts in the header only, not in %j',
    async (parts) => {
      expect(await authenticate(request(undefined, parts), from)).toBeUndefined();
    },
  );

  test('that is known is not judged again, in whatever spelling', async () => {
    const judged: string[] = [];
    const judge = bearer([
      knows('two', robot),
      Object.assign(
        async (token: string) => {
          judged.push(token);
          return alice;
        },
        { known: (key: string) => (key === fingerprint('one') ? alice : undefined) },
      ),
    ]);
    for (const text of ['Bearer one', 'bearer one', 'Bearer  one'])
      expect(await judge(request(text), from)).toBe(alice);
    expect(judged).toEqual([]);
    expect(await judge(request('Bearer three'), from)).toBe(alice);
    expect(judged).toEqual(['three']);
    await expect(judge(request('Bearer one one'), from)).rejects.toMatchObject({ code: 401 });
  });

  test('that cannot be judged is the error of who cannot', async () => {
    const failure = serviceUnavailable('not now');
    const failing = bearer([() => Promise.reject(failure), knows('one', alice)]);
    await expect(failing(request('Bearer one'), from)).rejects.toBe(failure);
  });
});

describe('on the aggregated face', () => {
  const proxied: UserInfo = { username: 'proxied', groups: [], via: 'request-header' };

  test('the front proxy decides, whatever token comes along', async () => {
    const both = aggregatedAuthenticator(() => proxied, [knows('one', alice)]);
    expect(await both(request('Bearer one'), from)).toBe(proxied);
    expect(await both(request('Bearer wrong'), from)).toBe(proxied);
  });

  test('without the front proxy the token decides', async () => {
    const both = aggregatedAuthenticator(() => undefined, [knows('one', alice)]);
    expect(await both(request('Bearer one'), from)).toBe(alice);
    expect(await both(request(), from)).toBeUndefined();
  });
});
