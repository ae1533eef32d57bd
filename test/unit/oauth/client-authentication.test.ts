import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { Request } from 'express';
import type { Client } from '../../../src/accounts/directory/clients.ts';
import { LoginLimiter } from '../../../src/accounts/logins/limit.ts';
import type { RequestContext } from '../../../src/http/route.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { authenticateClient } from '../../../src/oauth/client-authentication.ts';

const context = { auditID: '', sourceIP: '192.0.2.1', log: createLogger({ silent: true }) } as RequestContext;

/** The clients that there are, by name and secret; what is tried is kept. */
function lab(secrets: Readonly<Record<string, string>>) {
  const tried: string[] = [];
  const client = (name: string): Client | undefined =>
    Object.hasOwn(secrets, name)
      ? {
          name,
          grantTypes: ['password'],
          isPublic: false,
          redirectURIs: [],
          postLogoutRedirectURIs: [],
          consent: true,
          introspection: false,
          isWellKnown: false,
          hasKnownSecret: false,
          scopes: [],
          subject: { username: '', uid: '', groups: [], displayName: undefined, email: undefined },
          knows: () => false,
          verify: async (secret) => secret === secrets[name],
        }
      : undefined;
  const clients = {
    get: client,
    authenticate: async (name: string, shown: readonly string[]) => {
      tried.push(...shown);
      return shown.some((secret) => Object.hasOwn(secrets, name) && secret === secrets[name])
        ? client(name)
        : undefined;
    },
  };
  const limiter = new LoginLimiter(
    () => ({ maxTries: 1_000, within: 1, perAddress: 1_000, perClient: 1_000 }),
    () => 0,
  );
  const authenticate = (authorization: string | undefined, form: Readonly<Record<string, string>>): Promise<Client> =>
    authenticateClient(
      { headers: authorization === undefined ? {} : { authorization } } as unknown as Request,
      new Map(Object.entries(form)),
      context,
      { directory: { clients }, limiter },
    );
  return { tried, authenticate };
}

const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;
const encoded = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1);
const platform = { platform: 'secret' };
const invalidClient = {
  error: 'invalid_client',
  code: 401,
  headers: { 'WWW-Authenticate': 'Basic realm="platform", charset="UTF-8"' },
};
const invalidRequest = { error: 'invalid_request', code: 400 };

describe('a client is known', () => {
  test.each([
    ['by its form', undefined, { client_id: 'platform', client_secret: 'secret' }],
    ['by HTTP Basic', basic('platform:secret'), {}],
    ['whatever the case of the scheme', basic('platform:secret').replace('Basic', 'bASIC'), {}],
    ['by HTTP Basic, named in the form too', basic('platform:secret'), { client_id: 'platform' }],
    ['by its form beside another scheme', 'Bearer x', { client_id: 'platform', client_secret: 'secret' }],
    [
      'by its form beside a scheme that only ends like it',
      'Bearer basic x',
      { client_id: 'platform', client_secret: 'secret' },
    ],
    ['by HTTP Basic after several spaces', basic('platform:secret').replace(' ', '   '), {}],
    ['by HTTP Basic with every byte encoded', basic('%70latform:%73ecret'), {}],
  ])('%s', async (_, authorization, form) => {
    expect(await lab(platform).authenticate(authorization, form)).toMatchObject({ name: 'platform' });
  });

  // evidence: basic-auth-encoded
  test('by HTTP Basic whatever its name and secret are, when they are form-encoded first', async () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(text, text, async (id, secret) => {
        const { authenticate } = lab({ [id]: secret });
        expect((await authenticate(basic(`${encoded(id)}:${encoded(secret)}`), {})).name).toBe(id);
      }),
    );
  });

  // evidence: basic-auth-plain
  test('by HTTP Basic whatever its secret is, also when it is not form-encoded', async () => {
    const text = fc.string({ unit: fc.constantFrom('a', '+', '%', '2', '0', ':', '&', 'é'), minLength: 1 });
    await fc.assert(
      fc.asyncProperty(text, async (secret) => {
        const { authenticate } = lab({ platform: secret });
        expect((await authenticate(basic(`platform:${secret}`), {})).name).toBe('platform');
      }),
    );
  });
});

describe('a secret in HTTP Basic', () => {
  test.each([
    ['means one thing alone is tried once', 'secret', ['secret']],
    ['means two is tried as both, though the first is right', '%73ecret', ['secret', '%73ecret']],
    ['means two is tried as both, though both are wrong', 'a+b', ['a b', 'a+b']],
    ['cannot be decoded is tried as it is', '100%', ['100%']],
    ['is no UTF-8 when it is decoded is tried as it is', '%ff', ['%ff']],
  ])('that %s', async (_, secret, expected) => {
    const { authenticate, tried } = lab(platform);
    await authenticate(basic(`platform:${secret}`), {}).catch(() => undefined);
    expect(tried).toEqual(expected);
  });

  test('in the form is decoded as all of it is, and tried once', async () => {
    const { authenticate, tried } = lab({ platform: 'a b' });
    await expect(authenticate(undefined, { client_id: 'platform', client_secret: 'a+b' })).rejects.toMatchObject(
      invalidClient,
    );
    expect(tried).toEqual(['a+b']);
  });
});

describe('a client is not known', () => {
  // evidence: client-auth-challenge
  test.each([
    ['without anything', undefined, {}],
    ['without a secret', undefined, { client_id: 'platform' }],
    ['without a name', undefined, { client_secret: 'secret' }],
    ['by a wrong secret', undefined, { client_id: 'platform', client_secret: 'Secret' }],
    ['by a name that there is not', undefined, { client_id: 'other', client_secret: 'secret' }],
    ['by a name that every object has', undefined, { client_id: 'constructor', client_secret: 'secret' }],
    ['by a wrong secret in HTTP Basic', basic('platform:secrets'), {}],
    ['by HTTP Basic without a secret', basic('platform:'), {}],
    ['by HTTP Basic without a colon', basic('platform'), {}],
    ['by HTTP Basic with nothing', 'Basic ', {}],
    ['by HTTP Basic that is no base64', 'Basic !!!', {}],
    ['by a bearer token', 'Bearer platform:secret', {}],
  ])('%s: 401 that says how', async (_, authorization, form) => {
    await expect(lab(platform).authenticate(authorization, form)).rejects.toMatchObject(invalidClient);
  });

  test('by HTTP Basic without a colon: the response says what is expected', async () => {
    await expect(lab(platform).authenticate(basic('platform'), {})).rejects.toMatchObject({
      message: expect.stringContaining('base64 of "client_id:client_secret"'),
    });
  });

  // evidence: client-auth-unknown-name
  test('and nothing tells an unknown one from a wrong secret', async () => {
    const { authenticate } = lab(platform);
    const refusal = (form: Readonly<Record<string, string>>): Promise<unknown> =>
      authenticate(undefined, form).catch((error: unknown) => error);
    const ofBoth = await Promise.all(['other', 'platform'].map((id) => refusal({ client_id: id, client_secret: 'x' })));
    expect(ofBoth[0]).toEqual(ofBoth[1]);
    expect(ofBoth[0]).toMatchObject(invalidClient);
  });
});

test('a bad encoding of the name in HTTP Basic is reported where it is', async () => {
  await expect(lab(platform).authenticate(basic('100%:secret'), {})).rejects.toThrow(
    'client_id in the Authorization header has an invalid percent-encoding or is not UTF-8',
  );
});

// evidence: client-auth-one-method
test.each([
  ['both ways at once', basic('platform:secret'), { client_id: 'platform', client_secret: 'secret' }],
  ['by HTTP Basic and a secret in the form', basic('platform:secret'), { client_secret: 'secret' }],
  ['under two names', basic('platform:secret'), { client_id: 'other' }],
  ['by HTTP Basic with a name of a bad encoding', basic('100%:secret'), {}],
])('a client that authenticates %s is 400, and no secret is looked at', async (_, authorization, form) => {
  const { authenticate, tried } = lab(platform);
  await expect(authenticate(authorization, form)).rejects.toMatchObject(invalidRequest);
  expect(tried).toEqual([]);
});
