import { describe, expect, test } from '@jest/globals';
import type { Request } from 'express';

import { aggregatedAuthenticator, gatewayAuthenticator } from '../../../../src/auth/authenticators/strategies.ts';
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
  ({ headers: authorization === undefined ? {} : { authorization }, rawHeaders: [], ...parts }) as unknown as Request;

/** Returns a WebSocket handshake that offers the token among its subprotocols. */
const webSocket = (token: string, authorization?: string): Request =>
  ({
    method: 'GET',
    httpVersion: '1.1',
    rawHeaders: [],
    headers: {
      connection: 'upgrade',
      upgrade: 'websocket',
      'sec-websocket-protocol': `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}, v4.channel.k8s.io`,
      ...(authorization === undefined ? {} : { authorization }),
    },
  }) as unknown as Request;

const from = '192.0.2.7';

const authenticate = gatewayAuthenticator([knows('one', alice), knows('two', robot)]);

describe('a bearer token', () => {
  // evidence: authorization-scheme-case
  test.each([
    ['Bearer one', alice],
    ['bearer one', alice],
    ['BEARER two', robot],
    ['Bearer  one', alice],
    ['bearer    two', robot],
  ])(
    'a bearer token is authenticated by the first authenticator that recognizes it: %s',
    async (authorization, user) => {
      expect(await authenticate(request(authorization), from)).toBe(user);
    },
  );

  test('the authenticator of a bearer token receives the address of the client', async () => {
    const sources: Source[] = [];
    const verifying = gatewayAuthenticator([
      async (_, source) => {
        sources.push(source);
        return alice;
      },
    ]);
    await verifying(request('Bearer one'), from);
    await verifying(webSocket('one'), from);
    expect(sources).toEqual([from, from]);
  });

  const challenge = 'Bearer realm="platform", error="invalid_token"';

  test.each([
    ['Bearer three', challenge],
    [
      'Bearer one two',
      `${challenge}, error_description="the token in the Authorization header is malformed; letters, digits and -._~+/ are allowed, with = at the end"`,
    ],
    ['Bearer ', `${challenge}, error_description="the Authorization header has no token after 'Bearer'"`],
  ])(
    'an unknown or malformed bearer token is rejected with 401, and the error describes only what is malformed: %j',
    async (text, expected) => {
      await expect(authenticate(request(text), from)).rejects.toMatchObject({
        code: 401,
        headers: { 'WWW-Authenticate': expected },
      });
    },
  );

  test.each([[undefined], ['Basic b25lOm9uZQ=='], ['Bearer'], ['Bearer\tone'], ['BearerX one'], ['']])(
    'a request without a bearer token is anonymous with the Authorization header %j',
    async (text) => {
      expect(await authenticate(request(text), from)).toBeUndefined();
    },
  );

  test.each([[{ query: { access_token: 'one' } }], [{ body: { access_token: 'one' } }]])(
    'a bearer token is ignored in the query and in the body: %j',
    async (parts) => {
      expect(await authenticate(request(undefined, parts), from)).toBeUndefined();
    },
  );

  test.each([['Bearer three'], ['Bearer one one'], ['Bearer ']])(
    'a bearer token in a WebSocket subprotocol does not replace the Authorization header %j',
    async (authorization) => {
      await expect(authenticate(webSocket('one', authorization), from)).rejects.toMatchObject({ code: 401 });
    },
  );

  test('a bearer token in a WebSocket subprotocol is used if the Authorization header has another scheme', async () => {
    expect(await authenticate(webSocket('one', 'Basic b25lOm9uZQ=='), from)).toBe(alice);
  });

  test('a bearer token that was verified before is authenticated synchronously in the header and in a WebSocket subprotocol', async () => {
    const verified: string[] = [];
    const knowing = gatewayAuthenticator([
      knows('two', robot),
      Object.assign(
        async (token: string) => {
          verified.push(token);
          return alice;
        },
        { known: (key: string) => (key === fingerprint('one') ? alice : undefined) },
      ),
    ]);
    for (const text of ['Bearer one', 'bearer one', 'Bearer  one']) expect(knowing(request(text), from)).toBe(alice);
    expect(knowing(webSocket('one'), from)).toBe(alice);
    expect(verified).toEqual([]);
    expect(await knowing(request('Bearer three'), from)).toBe(alice);
    expect(verified).toEqual(['three']);
    await expect(knowing(request('Bearer one one'), from)).rejects.toMatchObject({ code: 401 });
  });

  test('a bearer token that cannot be verified at the moment fails with the error of its authenticator', async () => {
    const failure = serviceUnavailable('not now');
    const failing = gatewayAuthenticator([() => Promise.reject(failure), knows('one', alice)]);
    await expect(failing(request('Bearer one'), from)).rejects.toBe(failure);
  });
});

describe('the authenticator of the aggregated listener', () => {
  const proxied: UserInfo = { username: 'proxied', groups: [], via: 'request-header' };

  test('the authenticator of the aggregated listener prefers the identity of the front proxy to a token', async () => {
    const both = aggregatedAuthenticator(() => proxied, [knows('one', alice)]);
    expect(await both(request('Bearer one'), from)).toBe(proxied);
    expect(await both(request('Bearer wrong'), from)).toBe(proxied);
  });

  test('the authenticator of the aggregated listener accepts a bearer token if the front proxy sends no identity', async () => {
    const both = aggregatedAuthenticator(() => undefined, [knows('one', alice)]);
    expect(await both(request('Bearer one'), from)).toBe(alice);
    expect(await both(request(), from)).toBeUndefined();
  });
});
