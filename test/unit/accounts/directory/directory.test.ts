import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { usersPath } from '../../../../src/config/names.ts';
import { preferred } from '../../../../src/accounts/passwords/passwords.ts';
import { passwordSecretOf, passwordSecretType } from '../../../../src/accounts/directory/users.ts';
import { namespace, startAccounts, type Accounts } from '../../../labs/accounts.ts';
import { settle } from '../../../labs/cluster-fakes.ts';

let accounts: Accounts;
beforeEach(async () => {
  accounts = await startAccounts();
});
afterEach(() => accounts.stop());

const account = (username: string): ReturnType<Accounts['directory']['account']> =>
  accounts.directory.account(username);
const named = (login: string): string | undefined => accounts.directory.named(login)?.username;

const secrets = `/api/v1/namespaces/${namespace}/secrets`;
const identity = { provider: 'corp', subject: '1' };

/** Creates or replaces a Secret. */
async function putSecret(name: string, values: Readonly<Record<string, string>>, type = 'Opaque'): Promise<void> {
  const data = Object.entries(values).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
  accounts.cluster.put(secrets, { metadata: { name }, type, data: Object.fromEntries(data) as object });
  await settle();
}

describe('a User object', () => {
  test('a User object becomes an account with the uid of the object and the password of its Secret', async () => {
    const uid = await accounts.putUser('bob', { displayName: 'Bob', email: 'Bob@example.com', groups: ['b'] });
    expect(account('bob')).toMatchObject({
      username: 'bob',
      uid,
      groups: ['b'],
      displayName: 'Bob',
      email: 'Bob@example.com',
      active: true,
      passwordChangeRequired: false,
      passwordHash: expect.stringMatching(/^\$2b\$/) as unknown,
      passwordRef: 'owned',
    });
  });

  test('a User object without a Secret becomes an account without a password', async () => {
    await accounts.putUser('bob', {}, false);
    expect(account('bob')).toMatchObject({ active: true, passwordHash: undefined, credentialID: '' });
  });

  test('an account is updated and removed together with its User object', async () => {
    await accounts.putUser('bob', { groups: ['b'] });
    await accounts.putUser('bob', { groups: ['c'], state: 'Disabled' });
    expect(account('bob')).toMatchObject({ groups: ['c'], active: false });
    accounts.cluster.delete(usersPath, 'bob');
    await settle();
    expect(account('bob')).toBeUndefined();
  });

  test('a User object that is recreated under the same name becomes an account with a new uid and no password', async () => {
    const first = await accounts.putUser('bob');
    accounts.cluster.delete(usersPath, 'bob');
    expect(await accounts.putUser('bob', {}, false)).not.toBe(first);
    expect(account('bob')?.passwordHash).toBeUndefined();
  });

  test('a User object is overridden by a configured user of the same name', async () => {
    await accounts.putUser('alice', { groups: ['system-administrators'], email: 'alice@example.com' });
    expect(account('alice')).toMatchObject({ groups: ['a'], passwordRef: undefined });
    expect(named('alice@example.com')).toBeUndefined();
    accounts.configure({ users: [] });
    expect(account('alice')?.groups).toEqual(['system-administrators']);
    expect(named('alice@example.com')).toBe('alice');
  });

  // evidence: system-group-inactive
  test.each(['system:masters', 'system:authenticated'])(
    'a User object with the reserved group %s becomes an inactive account',
    async (group) => {
      await accounts.putUser('mallory', { groups: ['m', group] });
      expect(account('mallory')?.active).toBe(false);
    },
  );

  test('a User object without a spec becomes an active account without groups, even if it had groups before', async () => {
    await accounts.putUser('bob', { groups: ['b'] });
    accounts.cluster.put(usersPath, { metadata: { name: 'bob' } });
    accounts.cluster.put(usersPath, { metadata: { name: 'carol' } });
    await settle();
    for (const name of ['bob', 'carol']) expect(account(name)).toMatchObject({ active: true, groups: [] });
  });

  // evidence: system-username-inactive
  test('a User object whose name begins with system: becomes an inactive account', async () => {
    await accounts.putUser('system:admin');
    expect(account('system:admin')?.active).toBe(false);
  });

  test('a User object with an unknown spec.state becomes an inactive account', async () => {
    await accounts.putUser('bob', { state: 'Suspended' });
    expect(account('bob')?.active).toBe(false);
  });

  test('a User object whose password must be changed keeps its groups, since the user needs them after the change', async () => {
    await accounts.putUser('bob', { groups: ['b'], passwordChangeRequired: true });
    expect(account('bob')).toMatchObject({ groups: ['b'], passwordChangeRequired: true });
  });

  test('a User object keeps the same account when only the status of the object changes', async () => {
    await accounts.putUser('bob');
    const before = account('bob');
    const user = accounts.cluster.get(usersPath, 'bob');
    accounts.cluster.put(usersPath, { ...user, metadata: { name: 'bob' }, status: { lastLoginTime: 'now' } });
    await settle();
    expect(accounts.users.get('bob')?.status?.lastLoginTime).toBe('now');
    expect(account('bob')).toBe(before);
  });

  test('a User object becomes an account without a password if its Secret has the wrong type', async () => {
    const uid = await accounts.putUser('bob', {}, false);
    await putSecret(`platform-user-${uid}`, { passwordHash: account('alice')?.passwordHash ?? '' });
    expect(account('bob')?.passwordHash).toBeUndefined();
  });

  test('the credentialID and unlock time of a User object are read in the formats of earlier versions', async () => {
    const uid = await accounts.putUser('bob', {}, false);
    const passwordHash = '$2b$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a';
    const values = { passwordHash, 'passwordHash.unlocked': '2026-01-01T00:00:00Z' };
    await putSecret(passwordSecretOf(uid).name, values, passwordSecretType);
    expect(account('bob')).toMatchObject({
      passwordHash,
      // The first half of the SHA-256 digest of the password hash.
      credentialID: '5a09b8c79dabab10808e788ee0f9dd4f',
      unlocked: '2026-01-01T00:00:00Z',
    });
  });

  test('a User object that a configured user overrides no longer owns its e-mail address and identity', async () => {
    await accounts.putUser('alice', { email: 'shared@example.com', identities: [identity] });
    await accounts.putUser('bob', { email: 'shared@example.com', identities: [identity] });
    expect(named('shared@example.com')).toBe('bob');
    expect(accounts.directory.linked(identity)).toBe(account('bob'));
    accounts.configure({ users: [] });
    expect(named('shared@example.com')).toBeUndefined();
    expect(accounts.directory.linked(identity)).toBe('several');
  });
});

/** Configures alice with a reference to a password Secret that does not exist yet. */
const configureSecret = (rest: object = {}): void =>
  accounts.configure({
    users: [{ username: 'alice', passwordHash: undefined, passwordRef: { name: 'alice', key: 'hash' }, ...rest }],
  });

test('a configured user must change the password until the Secret records a password change', async () => {
  const passwordHash = account('alice')?.passwordHash ?? '';
  configureSecret({ passwordChangeRequired: true });
  await putSecret('alice', { hash: passwordHash });
  expect(account('alice')).toMatchObject({ passwordHash, passwordChangeRequired: true });
  await putSecret('alice', { hash: passwordHash, 'hash.changed': '2026-01-01T00:00:00Z' });
  expect(account('alice')).toMatchObject({ passwordHash, passwordChangeRequired: false });
});

test('an identity provider manages the passwords of its users while the provider is configured', async () => {
  const ldap = { url: 'ldaps://corp.example', userSearch: { base: 'dc=example' } };
  await accounts.putUser('bob', { identities: [identity] }, false);
  const keepers = (): readonly string[] | undefined => {
    const bob = account('bob');
    return bob && accounts.directory.passwordProvidersOf(bob);
  };
  accounts.configure({ identityProviders: [{ name: 'corp', displayName: 'Example Corp', type: 'LDAP', ldap }] });
  expect(keepers()).toEqual(['Example Corp']);
  accounts.configure({});
  expect(keepers()).toEqual([]);
});

describe('an e-mail address', () => {
  test('an e-mail address is accepted as a login name regardless of case', async () => {
    await accounts.putUser('bob', { email: 'Bob@Example.com' });
    expect(named('bob@example.COM')).toBe('bob');
    expect(named('bob')).toBe('bob');
    expect(named('carol@example.com')).toBeUndefined();
  });

  test('an e-mail address that two users share is not accepted as a login name until only one of them has it', async () => {
    await accounts.putUser('bob', { email: 'both@example.com' });
    await accounts.putUser('carol', { email: 'BOTH@example.com', state: 'Disabled' });
    expect(named('both@example.com')).toBeUndefined();
    await accounts.putUser('carol', { email: 'carol@example.com' });
    expect(named('both@example.com')).toBe('bob');
    expect(named('carol@example.com')).toBe('carol');
  });

  test('an e-mail address belongs to no User object while a configured user has the same address', async () => {
    accounts.configure({ users: [{ username: 'alice', email: 'both@example.com' }] });
    expect(named('both@example.com')).toBe('alice');
    await accounts.putUser('bob', { email: 'both@example.com' });
    expect(named('both@example.com')).toBeUndefined();
  });
});

describe('while the Users cannot be read', () => {
  test('only configured users are returned while the Users cannot be read', async () => {
    await accounts.putUser('bob');
    accounts.client.holdWatches();
    await accounts.clock.advance(16_000);
    expect(account('alice')?.active).toBe(true);
    for (const name of ['bob', 'nobody']) expect(() => account(name)).toThrow('cannot be read');
    accounts.client.releaseWatches();
    await accounts.clock.advance(1_000);
    expect(account('bob')?.active).toBe(true);
  });

  test('looking up the user of an identity fails with 503 while the Users cannot be read', async () => {
    expect(accounts.directory.linked(identity)).toBeUndefined();
    accounts.client.holdWatches();
    await accounts.clock.advance(16_000);
    expect(() => accounts.directory.linked(identity)).toThrow(expect.objectContaining({ code: 503 }));
  });
});

test('a login with an unknown name computes a hash with the parameters of the stored hashes', async () => {
  accounts.configure({ users: [] });
  await accounts.putUser('bob');
  await accounts.putUser('carol', {}, false);
  accounts.hashes.verified.length = 0;
  await accounts.passwords.verify(undefined, 'x');
  expect(accounts.hashes.verified).toEqual(['bcrypt:4']);
});

test('a login with an unknown name computes a hash with the preferred parameters while no stored hash can be read', async () => {
  configureSecret();
  await settle();
  accounts.hashes.verified.length = 0;
  expect(await accounts.passwords.verify(undefined, 'x')).toBe(false);
  expect(accounts.hashes.verified).toEqual([preferred]);
});

test('a User that is being deleted is not active', async () => {
  await accounts.putUser('bob', { groups: ['b'] });
  const user = accounts.cluster.get(usersPath, 'bob');
  expect(account('bob')?.active).toBe(true);
  accounts.cluster.put(usersPath, {
    ...user,
    metadata: { name: 'bob', deletionTimestamp: new Date(accounts.clock.now()).toISOString() },
  });
  await settle();
  expect(account('bob')?.active).toBe(false);
});

describe('invalidated credentials are reported immediately', () => {
  const spec = { groups: ['b'] };
  let invalidations = 0;
  beforeEach(async () => {
    await accounts.putUser('bob', spec);
    invalidations = 0;
    accounts.directory.invalidated.subscribe(() => (invalidations += 1));
  });

  test.each<[string, () => Promise<unknown>]>([
    ['is disabled', () => accounts.putUser('bob', { ...spec, state: 'Disabled' }, false)],
    ['loses a group', () => accounts.putUser('bob', { groups: [] }, false)],
    [
      'gets a new password',
      () => {
        const passwordHash = accounts.hashes.of('changed', 'bcrypt:4');
        return putSecret(passwordSecretOf(account('bob')?.uid ?? '').name, { passwordHash }, passwordSecretType);
      },
    ],
    [
      'is deleted',
      () => {
        accounts.cluster.delete(usersPath, 'bob');
        return settle();
      },
    ],
  ])('invalidated credentials are reported immediately when a User %s', async (_, change) => {
    await change();
    expect(invalidations).toBe(1);
  });

  test('credentials are not reported as invalidated when a User is created or written without a change of its spec', async () => {
    await accounts.putUser('carol', {}, false);
    await accounts.putUser('bob', spec, false);
    expect(invalidations).toBe(0);
  });
});

/** A configured user with the password in the Secret `passwords`. */
const withSecret = (username: string): object => ({
  username,
  passwordHash: undefined,
  passwordRef: { name: 'passwords', key: username },
});

describe('failed logins are reset', () => {
  const unlockedNames: string[] = [];
  const follow = (): void => {
    unlockedNames.length = 0;
    accounts.directory.unlocked.subscribe(({ username }) => unlockedNames.push(username));
  };

  test('failed logins are reset when a User is unlocked, but not when a previously unlocked User changes', async () => {
    const uid = await accounts.putUser('bob');
    const { passwordHash = '' } = account('bob') ?? {};
    const unlock = (time: string): Promise<void> =>
      putSecret(passwordSecretOf(uid).name, { passwordHash, 'passwordHash.unlocked': time }, passwordSecretType);
    follow();
    await unlock('first');
    expect(unlockedNames).toEqual(['bob']);
    await accounts.putUser('bob', { groups: ['c'] }, false);
    expect(account('bob')?.groups).toEqual(['c']);
    expect(unlockedNames).toEqual(['bob']);
    await unlock('second');
    expect(unlockedNames).toEqual(['bob', 'bob']);
  });

  test('failed logins are reset when a configured user is unlocked, but not when a newly configured user has an unlock time', async () => {
    const values = { alice: accounts.hashes.of('a', 'bcrypt:4'), eve: accounts.hashes.of('e', 'bcrypt:4') };
    await putSecret('passwords', { ...values, 'eve.unlocked': 'first' });
    accounts.configure({ users: [withSecret('alice')] });
    await settle();
    follow();
    accounts.configure({ users: [withSecret('alice'), withSecret('eve')] });
    expect(account('eve')).toMatchObject({ passwordHash: values.eve, unlocked: 'first' });
    expect(unlockedNames).toEqual([]);
    await putSecret('passwords', { ...values, 'eve.unlocked': 'second' });
    expect(unlockedNames).toEqual(['eve']);
  });
});

/** Starts a wait until `shows` returns true, and returns a function that reports whether the wait is over. */
const waits = async (shows: () => boolean): Promise<() => boolean> => {
  let isDone = false;
  void accounts.directory.waitUntil(shows).then(() => (isDone = true));
  await settle();
  return () => isDone;
};

describe('waiting until a write is visible', () => {
  test('waiting for a write ends only when the write is visible, and leaves no timer', async () => {
    const isDone = await waits(() => account('bob')?.active === true);
    expect(accounts.clock.pending()).toContain(2_000);
    await accounts.putUser('carol');
    expect(isDone()).toBe(false);
    await accounts.putUser('bob');
    expect(isDone()).toBe(true);
    expect(accounts.clock.pending()).not.toContain(2_000);
  });

  test('waiting for a write ends at once if the write is already visible, and otherwise after at most two seconds', async () => {
    expect((await waits(() => true))()).toBe(true);
    const isDone = await waits(() => false);
    await accounts.clock.advance(1_999);
    expect(isDone()).toBe(false);
    await accounts.clock.advance(1);
    expect(isDone()).toBe(true);
  });
});
