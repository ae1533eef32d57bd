import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { Request } from 'express';
import type { Client } from '../../../src/accounts/directory/clients.ts';
import { LoginLimiter } from '../../../src/accounts/logins/limit.ts';
import type { RequestContext } from '../../../src/http/route.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { authenticateClient } from '../../../src/oauth/client-authentication.ts';

const context = { auditID: '', sourceIP: '192.0.2.1', log: createLogger({ silent: true }) } as RequestContext;

/** Creates clients with these names and secrets, and records the secrets that are tried. */
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
          resources: [],
          idTokenSignedResponseAlg: 'RS256',
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

describe('a client is authenticated', () => {
  test.each([
    ['by form parameters', undefined, { client_id: 'platform', client_secret: 'secret' }],
    ['by HTTP Basic', basic('platform:secret'), {}],
    ['by HTTP Basic with the scheme in another case', basic('platform:secret').replace('Basic', 'bASIC'), {}],
    ['by HTTP Basic with client_id also in the form', basic('platform:secret'), { client_id: 'platform' }],
    [
      'by form parameters in a request with another scheme',
      'Bearer x',
      { client_id: 'platform', client_secret: 'secret' },
    ],
    [
      'by form parameters in a request with a scheme that contains "basic"',
      'Bearer basic x',
      { client_id: 'platform', client_secret: 'secret' },
    ],
    ['by HTTP Basic after several spaces', basic('platform:secret').replace(' ', '   '), {}],
    ['by HTTP Basic with every byte encoded', basic('%70latform:%73ecret'), {}],
  ])('a client that authenticates %s is accepted', async (_, authorization, form) => {
    expect(await lab(platform).authenticate(authorization, form)).toMatchObject({ name: 'platform' });
  });

  // evidence: basic-auth-encoded
  test('a client is authenticated by HTTP Basic with any form-encoded name and secret', async () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(text, text, async (id, secret) => {
        const { authenticate } = lab({ [id]: secret });
        expect((await authenticate(basic(`${encoded(id)}:${encoded(secret)}`), {})).name).toBe(id);
      }),
    );
  });

  // evidence: basic-auth-plain
  test('a client is authenticated by HTTP Basic with any secret, even if the secret is not form-encoded', async () => {
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
    ['that has one decoding is tried once', 'secret', ['secret']],
    ['that has two decodings is tried with both, even if the first is right', '%73ecret', ['secret', '%73ecret']],
    ['that has two decodings is tried with both, even if both are wrong', 'a+b', ['a b', 'a+b']],
    ['that cannot be decoded is tried unchanged', '100%', ['100%']],
    ['that is not UTF-8 after decoding is tried unchanged', '%ff', ['%ff']],
  ])('a secret in HTTP Basic %s', async (_, secret, expected) => {
    const { authenticate, tried } = lab(platform);
    await authenticate(basic(`platform:${secret}`), {}).catch(() => undefined);
    expect(tried).toEqual(expected);
  });

  test('a client secret in the form is decoded like other parameters, and is tried once', async () => {
    const { authenticate, tried } = lab({ platform: 'a b' });
    await expect(authenticate(undefined, { client_id: 'platform', client_secret: 'a+b' })).rejects.toMatchObject(
      invalidClient,
    );
    expect(tried).toEqual(['a+b']);
  });
});

describe('a client is rejected', () => {
  // evidence: client-auth-challenge
  test.each([
    ['without credentials', undefined, {}],
    ['without a secret', undefined, { client_id: 'platform' }],
    ['without a name', undefined, { client_secret: 'secret' }],
    ['with a wrong secret', undefined, { client_id: 'platform', client_secret: 'Secret' }],
    ['with an unknown name', undefined, { client_id: 'other', client_secret: 'secret' }],
    ['with a name of Object.prototype', undefined, { client_id: 'constructor', client_secret: 'secret' }],
    ['with a wrong secret in HTTP Basic', basic('platform:secrets'), {}],
    ['by HTTP Basic without a secret', basic('platform:'), {}],
    ['by HTTP Basic without a colon', basic('platform'), {}],
    ['by empty HTTP Basic credentials', 'Basic ', {}],
    ['by HTTP Basic that is not base64', 'Basic !!!', {}],
    ['with a bearer token', 'Bearer platform:secret', {}],
  ])(
    'a client that authenticates %s is rejected with a 401 that names the accepted method',
    async (_, authorization, form) => {
      await expect(lab(platform).authenticate(authorization, form)).rejects.toMatchObject(invalidClient);
    },
  );

  test('a client that authenticates by HTTP Basic without a colon is rejected with a description of the expected format', async () => {
    await expect(lab(platform).authenticate(basic('platform'), {})).rejects.toMatchObject({
      message: expect.stringContaining('the base64 encoding of "client_id:client_secret"'),
    });
  });

  // evidence: client-auth-unknown-name
  test('a client is rejected in the same way for an unknown name and for a wrong secret', async () => {
    const { authenticate } = lab(platform);
    const refusal = (form: Readonly<Record<string, string>>): Promise<unknown> =>
      authenticate(undefined, form).catch((error: unknown) => error);
    const ofBoth = await Promise.all(['other', 'platform'].map((id) => refusal({ client_id: id, client_secret: 'x' })));
    expect(ofBoth[0]).toEqual(ofBoth[1]);
    expect(ofBoth[0]).toMatchObject(invalidClient);
  });
});

test('an invalid encoding of the client name in HTTP Basic is reported with its position', async () => {
  await expect(lab(platform).authenticate(basic('100%:secret'), {})).rejects.toThrow(
    'client_id in the Authorization header has invalid percent-encoding or is not UTF-8',
  );
});

// evidence: client-auth-one-method
test.each([
  [
    'by HTTP Basic and by form parameters',
    basic('platform:secret'),
    { client_id: 'platform', client_secret: 'secret' },
  ],
  ['by HTTP Basic and by a secret in the form', basic('platform:secret'), { client_secret: 'secret' }],
  ['under two names', basic('platform:secret'), { client_id: 'other' }],
  ['by HTTP Basic with a badly encoded name', basic('100%:secret'), {}],
])('a client that authenticates %s gets 400, and no secret is verified', async (_, authorization, form) => {
  const { authenticate, tried } = lab(platform);
  await expect(authenticate(authorization, form)).rejects.toMatchObject(invalidRequest);
  expect(tried).toEqual([]);
});
