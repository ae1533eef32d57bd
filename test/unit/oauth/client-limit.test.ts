/** Tests the limits of guesses at client secrets. The responses must not reveal which clients exist. */
import { describe, expect, test } from '@jest/globals';
import type { AppResponse, AppRequest } from '../../fakes/request.ts';
import { CountingHashes } from '../../fakes/hashes.ts';
import { createLab, login, type Lab } from '../../labs/oauth.ts';

const secret = 'as long as a secret should be';
const console = { name: 'console', secret };
const hashed = { name: 'hashed', secretHash: new CountingHashes().of(secret, 'bcrypt:12') };

const tryAs = (
  lab: Lab,
  name: string,
  { right = false, from = '192.0.2.1', path = '/oauth/token' }: { right?: boolean; from?: string; path?: string } = {},
): Promise<AppResponse> => {
  const fields = { ...login, client_id: name, client_secret: right ? secret : 'a guess' };
  return lab.post(path, fields, { from } satisfies AppRequest);
};

async function guess(lab: Lab, name: string, times: number, from?: string): Promise<number[]> {
  const statuses: number[] = [];
  for (let time = 0; time < times; time += 1)
    statuses.push((await tryAs(lab, name, from === undefined ? {} : { from })).status);
  return statuses;
}

const repeat = (status: number, times: number): number[] => Array.from({ length: times }, () => status);

describe('guesses at client secrets from one address', () => {
  // evidence: client-secret-same-limit
  test.each(['console', 'hashed', 'nobody', 'platform-cli'])(
    'guesses at client secrets from one address for the client %s have the same limit as for all other clients',
    async (name) => {
      const lab = await createLab({ clients: [console, hashed] });
      expect(await guess(lab, name, 7)).toEqual([...repeat(401, 5), 429, 429]);
      const response = await tryAs(lab, name);
      expect(response.json()).toMatchObject({ error: 'invalid_client' });
      expect(response.headers['retry-after']).toBe('600');
      expect(response.headers['cache-control']).toBe('no-store');
    },
  );

  test('guesses at client secrets from one address block the right secret only from that address, at every endpoint', async () => {
    const lab = await createLab({ clients: [console] });
    await guess(lab, 'console', 5);
    for (const path of ['/oauth/token', '/oauth/introspect', '/oauth/revoke'])
      expect((await tryAs(lab, 'console', { right: true, path })).status).toBe(429);
    expect((await tryAs(lab, 'console', { right: true, from: '192.0.2.2' })).status).toBe(200);
    await lab.clock.advance(600_000);
    expect((await tryAs(lab, 'console', { right: true, path: '/oauth/revoke' })).status).toBe(400);
  });

  test('guesses at client secrets from one address for many clients are limited, including unknown clients', async () => {
    const lab = await createLab({ clients: [console], loginLimit: { perAddress: 3 } });
    for (const name of ['a', 'b', 'c']) await guess(lab, name, 1);
    expect((await tryAs(lab, 'd')).status).toBe(429);
    expect((await tryAs(lab, 'console', { right: true })).status).toBe(429);
  });

  // evidence: client-secret-two-guesses
  test('a guess at a client secret counts twice if the encoded secret can be decoded in two ways', async () => {
    const lab = await createLab({ clients: [console] });
    const statuses: number[] = [];
    for (let time = 0; time < 4; time += 1) {
      const authorization = `Basic ${Buffer.from('console:a%20guess').toString('base64')}`;
      statuses.push(
        (await lab.token({ ...login, client_secret: undefined, client_id: 'console' }, { headers: { authorization } }))
          .status,
      );
    }
    expect(statuses).toEqual([401, 401, 401, 429]);
  });

  // evidence: client-secret-concurrent-limit
  test('concurrent guesses at client secrets from one address are limited like sequential guesses', async () => {
    const lab = await createLab({ clients: [console, hashed] });
    lab.hashes.verified.length = 0;
    const responses = await Promise.all(Array.from({ length: 12 }, () => tryAs(lab, 'console')));
    expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      ...repeat(401, 5),
      ...repeat(429, 7),
    ]);
    expect(lab.hashes.verified).toHaveLength(5);
  });

  test('the number of guesses at client secrets from one address is reset when the right secret is used', async () => {
    const lab = await createLab({ clients: [console] });
    for (let round = 0; round < 3; round += 1) {
      await guess(lab, 'console', 4);
      expect((await tryAs(lab, 'console', { right: true })).status).toBe(200);
    }
  });
});

// evidence: client-secret-familiar-address
test('guesses at client secrets from many addresses block new addresses, but not an address from which the client has authenticated before', async () => {
  const lab = await createLab({ clients: [console], loginLimit: { perClient: 6 } });
  expect((await tryAs(lab, 'console', { right: true, from: '198.51.100.1' })).status).toBe(200);
  for (let index = 0; index < 6; index += 1) await guess(lab, 'console', 1, `192.0.2.${index}`);
  expect((await tryAs(lab, 'console', { right: true, from: '198.51.100.2' })).status).toBe(429);
  expect((await tryAs(lab, 'console', { right: true, from: '198.51.100.1' })).status).toBe(200);
});

const platform = { name: 'platform', secret: 'platform' };

describe('guesses at the secret of the client platform', () => {
  // evidence: client-secret-public
  test('guesses at the secret of the client platform block no address and compute no hash if the secret is the public default', async () => {
    const lab = await createLab({ clients: [platform, hashed] });
    lab.hashes.verified.length = 0;
    expect(await guess(lab, 'platform', 10)).toEqual(repeat(401, 10));
    expect(lab.hashes.verified).toEqual([]);
    expect((await lab.token(login)).status).toBe(200);
  });

  // evidence: client-secret-own-limit
  test.each([
    ['in plain text', { secret }],
    ['as a hash', { secretHash: hashed.secretHash }],
    ['as a hash of the public secret', { secretHash: new CountingHashes().of('platform', 'bcrypt:12') }],
  ])('guesses at the secret of the client platform are limited if the secret is configured %s', async (_, own) => {
    const lab = await createLab({ clients: [{ name: 'platform', ...own }] });
    expect(await guess(lab, 'platform', 7)).toEqual([...repeat(401, 5), 429, 429]);
  });
});

const withHash = async (): Promise<Lab> => {
  const lab = await createLab({ clients: [] });
  lab.configure({ clients: [{ name: 'hashed', secretHash: lab.hashes.of(secret, 'bcrypt:12') }] });
  lab.hashes.tried.length = 0;
  return lab;
};

/** Counts the client secrets that were hashed, without the password of the user. */
const hashedSecrets = (lab: Lab): number =>
  lab.hashes.tried.filter((one) => one !== login.password && one !== '').length;

describe('the right secret of a client with a secretHash', () => {
  // evidence: client-secret-hashed-once
  test('the right secret of a client with a secretHash is hashed only once, however often the client authenticates', async () => {
    const lab = await withHash();
    for (let time = 0; time < 3; time += 1)
      expect((await tryAs(lab, 'hashed', { right: true, from: `192.0.2.${time}` })).status).toBe(200);
    expect(hashedSecrets(lab)).toBe(1);
  });

  test('the right form-encoded secret of a client with a secretHash is cached, so that later requests hash neither decoding', async () => {
    const lab = await withHash();
    const encoded = `Basic ${Buffer.from(`hashed:${secret.replaceAll(' ', '%20')}`).toString('base64')}`;
    for (let time = 0; time < 3; time += 1) {
      const fields = { ...login, client_secret: undefined, client_id: 'hashed' };
      expect((await lab.token(fields, { headers: { authorization: encoded } })).status).toBe(200);
    }
    expect(hashedSecrets(lab)).toBe(2);
  });

  test('the cached secret of a client with a secretHash is not accepted for a changed secretHash or another client', async () => {
    const lab = await withHash();
    expect((await tryAs(lab, 'hashed', { right: true })).status).toBe(200);
    const other = lab.hashes.of('another secret', 'bcrypt:12');
    lab.configure({ clients: ['hashed', 'other'].map((name) => ({ name, secretHash: other })) });
    for (const name of ['hashed', 'other']) expect((await tryAs(lab, name, { right: true })).status).toBe(401);
  });
});

describe('a wrong client secret', () => {
  // evidence: client-secret-equal-work
  test.each(['console', 'hashed', 'nobody'])(
    'a wrong client secret for the client %s causes one hash computation if any client has a secretHash',
    async (name) => {
      const lab = await createLab({ clients: [console, hashed] });
      lab.hashes.verified.length = 0;
      await guess(lab, name, 1);
      expect(lab.hashes.verified).toHaveLength(1);
    },
  );

  test.each(['console', 'nobody'])(
    'a wrong client secret for the client %s causes no hash computation if no client has a secretHash',
    async (name) => {
      const lab = await createLab({ clients: [console] });
      lab.hashes.verified.length = 0;
      await guess(lab, name, 1);
      expect(lab.hashes.verified).toEqual([]);
    },
  );
});
