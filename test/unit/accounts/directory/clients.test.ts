import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { namespace, startAccounts, type Accounts } from '../../../labs/accounts.ts';
import { issuer } from '../../../fakes/configuration.ts';
import { settle } from '../../../labs/cluster-fakes.ts';

const address = '192.0.2.1';
const cheap = 'bcrypt:4';

let accounts: Accounts;
beforeEach(async () => {
  accounts = await startAccounts();
});
afterEach(() => accounts.stop());

function putSecret(name: string, value: string): Promise<void> {
  const data = { secret: Buffer.from(value).toString('base64') };
  accounts.cluster.put(`/api/v1/namespaces/${namespace}/secrets`, { metadata: { name }, type: 'Opaque', data });
  return settle();
}

/** Name of the client that these secrets authenticate. */
const authenticate = async (name: string, ...secrets: string[]): Promise<string | undefined> =>
  (await accounts.directory.clients.authenticate(name, secrets, address))?.name;
/** Number of hashes computed. */
async function workOf(name: string, ...secrets: string[]): Promise<number> {
  accounts.hashes.verified.length = 0;
  await authenticate(name, ...secrets);
  return accounts.hashes.verified.length;
}

const configure = (...clients: object[]): void => accounts.configure({ clients });

describe('a client with a secret', () => {
  beforeEach(async () => {
    configure({ name: 'web', secret: 'right' }, { name: 'app', secretRef: { name: 'app', key: 'secret' } });
    await putSecret('app', 'right\n');
  });

  test.each([
    ['web', 'accepted', ['right']],
    ['app', 'accepted', ['right']],
    ['web', 'accepted', ['wrong', 'right']],
    ['web', 'rejected', ['wrong']],
    ['web', 'rejected', ['righ']],
    ['web', 'rejected', ['']],
    ['web', 'rejected', []],
    ['app', 'rejected', ['right\n']],
    ['nobody', 'rejected', ['right']],
  ])('a request of the client %s is %s with the presented secrets %j', async (name, outcome, secrets) => {
    expect(await authenticate(name, ...secrets)).toBe(outcome === 'accepted' ? name : undefined);
  });

  test('a client with a plain secret is authenticated without computing a hash while no client has a hashed secret', async () => {
    expect(await workOf('web', 'right')).toBe(0);
    expect(await workOf('web', 'wrong')).toBe(0);
    expect(await workOf('nobody', 'wrong')).toBe(0);
  });
});

test.each(['\n', ''])('no client is authenticated by a Secret with the value %j', async (value) => {
  configure({ name: 'web', secretRef: { name: 'web', key: 'secret' } });
  expect(await authenticate('web', '')).toBeUndefined();
  await putSecret('web', value);
  expect(await authenticate('web', '')).toBeUndefined();
});

describe('a client with a hashed secret', () => {
  beforeEach(() =>
    configure({ name: 'web', secretHash: accounts.hashes.of('right', cheap) }, { name: 'plain', secret: 'right' }),
  );

  test('a client with a hashed secret can authenticate repeatedly with only one hash computation', async () => {
    expect(await authenticate('web', 'right')).toBe('web');
    expect(await workOf('web', 'right')).toBe(0);
    expect(await authenticate('web', 'right')).toBe('web');
    expect(await authenticate('web', 'wrong')).toBeUndefined();
  });

  test('a client with a hashed secret is rejected after one hash computation for each wrong secret', async () => {
    for (let time = 0; time < 3; time += 1) {
      expect(await workOf('web', 'wrong')).toBe(1);
      expect(await authenticate('web', 'wrong')).toBeUndefined();
    }
  });

  test('a client with a hashed secret is rejected with the old secret once the configured hash is replaced', async () => {
    expect(await authenticate('web', 'right')).toBe('web');
    configure({ name: 'web', secretHash: accounts.hashes.of('next', cheap) });
    expect(await authenticate('web', 'right')).toBeUndefined();
    expect(await authenticate('web', 'next')).toBe('web');
  });

  test('a client with a hashed secret is rejected with the cached secret of another client', async () => {
    configure(
      { name: 'web', secretHash: accounts.hashes.of('right', cheap) },
      { name: 'other', secretHash: accounts.hashes.of('else', cheap) },
    );
    expect(await authenticate('web', 'right')).toBe('web');
    expect(await authenticate('other', 'right')).toBeUndefined();
  });

  test.each(['web', 'plain', 'nobody', 'platform-cli'])(
    'a wrong secret for the client %s costs one hash computation, so that the response time does not reveal which clients exist',
    async (name) => {
      expect(await workOf(name, 'wrong')).toBe(1);
      expect(await workOf(name, 'wrong', 'also wrong')).toBe(2);
    },
  );
});

describe('secrets in many requests from one address', () => {
  /** Number of requests. It exceeds the maximum of running and queued hashes of one address on any number of cores. */
  const many = 80;

  test.each(['web', 'nobody'])(
    'many requests with secrets of the client %s from one address leave hashing slots for other addresses',
    async (name) => {
      configure({ name: 'web', secretHash: accounts.hashes.of('right', cheap) });
      await settle();
      const gate = Promise.withResolvers<boolean>();
      jest.spyOn(accounts.hashes, 'verify').mockReturnValue(gate.promise);
      const attempt = (source: string): Promise<unknown> =>
        accounts.directory.clients.authenticate(name, ['wrong'], source).then(
          () => 'hashed',
          (error: { readonly code?: number }) => error.code,
        );
      const flood = Array.from({ length: many }, () => attempt(address));
      const other = attempt('198.51.100.1');
      gate.resolve(false);
      expect(await Promise.all(flood)).toContain(429);
      expect(await other).toBe('hashed');
    },
  );
});

describe('the well-known client', () => {
  const wellKnown = { name: 'platform', secret: 'platform' };

  test('only the well-known client "platform" is marked as well-known, and only its default secret is marked as known', () => {
    configure(wellKnown, { name: 'web', secret: 'platform' });
    expect(accounts.directory.clients.get('platform')).toMatchObject({ isWellKnown: true, hasKnownSecret: true });
    expect(accounts.directory.clients.get('web')).toMatchObject({ isWellKnown: false, hasKnownSecret: false });
    configure({ name: 'platform', secret: 'of our own' });
    expect(accounts.directory.clients.get('platform')).toMatchObject({ isWellKnown: true, hasKnownSecret: false });
  });

  test('the well-known client rejects a wrong secret without computing a hash, since its secret is public', async () => {
    configure(wellKnown, { name: 'web', secretHash: accounts.hashes.of('right', cheap) });
    expect(await authenticate('platform', 'platform')).toBe('platform');
    expect(await authenticate('platform', 'wrong')).toBeUndefined();
    expect(await workOf('platform', 'wrong')).toBe(0);
    expect(await workOf('web', 'wrong')).toBe(1);
  });
});

describe('the built-in clients', () => {
  test('the built-in clients are public, act only on behalf of users, and require consent, except for the documentation page', () => {
    configure();
    const { clients } = accounts.directory;
    expect(clients.names.toSorted()).toEqual(['platform-cli', 'platform-docs', 'platform-pages']);
    for (const name of clients.names) {
      const client = clients.get(name);
      expect(client).toMatchObject({ name, isPublic: true, introspection: false, postLogoutRedirectURIs: [] });
      expect(client?.subject.groups).toEqual([]);
      expect(client?.consent).toBe(name !== 'platform-docs');
      expect(client?.grantTypes).not.toContain('client_credentials');
      expect(client?.grantTypes).not.toContain('password');
    }
    expect(clients.get('platform-cli')?.redirectURIs).toEqual(['http://127.0.0.1/callback', 'http://[::1]/callback']);
    expect(clients.get('platform-docs')?.redirectURIs).toEqual([`${issuer}/docs/callback`]);
    expect(clients.get('platform-cli')?.scopes).toContain('openid');
    expect(clients.get('platform-pages')).toMatchObject({ grantTypes: [], scopes: [], redirectURIs: [] });
  });

  test('the built-in clients are replaced by configured clients of the same name, except the client of the login pages', () => {
    configure(
      { name: 'platform-cli', public: true, grantTypes: ['refresh_token'] },
      { name: 'platform-pages', secret: 'right', grantTypes: ['password'] },
    );
    expect(accounts.directory.clients.get('platform-cli')).toMatchObject({ grantTypes: ['refresh_token'] });
    expect(accounts.directory.clients.get('platform-pages')).toMatchObject({ grantTypes: [], isPublic: true });
  });
});
