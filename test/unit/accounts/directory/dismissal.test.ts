/** Permanent revocation of sessions whose user, password, link, provider or client is removed or disabled. */
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { KubeError } from '../../../../src/cluster/client/kube-error.ts';
import { sessionsPath, usersPath } from '../../../../src/config/names.ts';
import { credentialIDOf } from '../../../../src/accounts/directory/credentials.ts';
import type { Identity } from '../../../../src/tokens/sessions/session.ts';
import { SessionStore } from '../../../../src/tokens/sessions/session-store.ts';
import { configuredUserUID } from '../../../../src/accounts/directory/account.ts';
import { issuer } from '../../../fakes/configuration.ts';
import { passwordSecretOf } from '../../../../src/accounts/directory/users.ts';
import { namespace, startAccounts, type Accounts } from '../../../labs/accounts.ts';
import { settle } from '../../../labs/cluster-fakes.ts';

const minute = 60_000;
const users = [{ username: 'alice' }, { username: 'eve' }];
const clients = [
  { name: 'console', secret: 'x' },
  { name: 'web', secret: 'x' },
];

const corp = { name: 'corp', type: 'LDAP', ldap: { url: 'ldaps://corp.example', userSearch: { base: 'dc=example' } } };
const identity = { provider: 'corp', subject: '1' };
const another = { provider: 'corp', subject: '2' };

let accounts: Accounts;
beforeEach(async () => {
  accounts = await startAccounts({ authentication: { users, clients, identityProviders: [corp] } });
});
afterEach(() => accounts.stop());

/** Starts a session and returns a function that reports its phase. */
async function begin(userName: string, clientID = 'console', on = accounts): Promise<() => string> {
  const { uid: userUID = '', credentialID = '' } = on.directory.account(userName) ?? {};
  const { session } = await on.sessions.create({ userName, userUID, clientID, credentialID });
  return () => phaseOf(session.metadata.name);
}

/** Starts a session through a login at an identity provider. */
async function beginAs(userName: string, user: Identity): Promise<() => string> {
  const { uid: userUID = '' } = accounts.directory.account(userName) ?? {};
  const { session } = await accounts.sessions.create({ userName, userUID, clientID: 'console', identity: user });
  return () => phaseOf(session.metadata.name);
}

/** Sets the password hash of a User. `rehashed` records that the new hash is of the same password. */
async function setHash(username: string, passwordHash: string, rehashed?: string): Promise<void> {
  const { name, key } = passwordSecretOf(accounts.directory.account(username)?.uid ?? '');
  const secrets = `/api/v1/namespaces/${namespace}/secrets`;
  const values = { [key]: passwordHash, ...(rehashed === undefined ? {} : { [`${key}.rehashed`]: rehashed }) };
  const data = Object.entries(values).map(([at, text]) => [at, Buffer.from(text).toString('base64')]);
  const before = accounts.cluster.get(secrets, name);
  accounts.cluster.put(secrets, { ...before, metadata: { name }, data: Object.fromEntries(data) as object });
  await settle();
}

function phaseOf(sid: string): string {
  const stored = accounts.cluster.get(sessionsPath(namespace), sid);
  return stored === undefined ? 'gone' : (stored['status'] as { readonly phase: string }).phase;
}

describe('a session is revoked at once and permanently', () => {
  // evidence: dismissal-user-disabled
  test('a session is revoked at once and permanently when its User is disabled, even briefly', async () => {
    await accounts.putUser('bob');
    await accounts.putUser('carol');
    const [bob, carol] = [await begin('bob'), await begin('carol')];
    await accounts.putUser('bob', { state: 'Disabled' });
    await accounts.putUser('bob', { state: 'Active' });
    expect([bob(), carol()]).toEqual(['Revoked', 'Active']);
    const again = await begin('bob');
    await accounts.clock.advance(5 * minute);
    expect([again(), carol()]).toEqual(['Active', 'Active']);
  });

  // evidence: dismissal-configured-user
  test.each([
    ['removed', [{ username: 'eve' }]],
    ['disabled', [{ username: 'alice', state: 'Disabled' }, { username: 'eve' }]],
  ])('a session is revoked at once and permanently when its configured user is %s', async (_, changed) => {
    const [alice, eve] = [await begin('alice'), await begin('eve')];
    accounts.configure({ users: changed, clients });
    accounts.configure({ users, clients });
    await settle();
    expect([alice(), eve()]).toEqual(['Revoked', 'Active']);
  });

  test('a session is revoked at once and permanently when the password of its User changes, but not when the password is only rehashed', async () => {
    await accounts.putUser('bob');
    const [bob, alice] = [await begin('bob'), await begin('alice')];
    const { credentialID = '' } = accounts.directory.account('bob') ?? {};
    const rehash = accounts.hashes.of('the same', 'bcrypt:4');
    await setHash('bob', rehash, `${credentialIDOf(rehash)} ${credentialID}`);
    expect(bob()).toBe('Active');
    const next = accounts.hashes.of('another', 'bcrypt:4');
    await setHash('bob', next);
    expect([bob(), alice()]).toEqual(['Revoked', 'Active']);
    const again = await begin('bob');
    await accounts.clock.advance(5 * minute);
    expect(again()).toBe('Active');
  });

  test.each([
    ['refers to another hash', (credentialID: string) => `${'0'.repeat(32)} ${credentialID}`],
    ['refers to no password', (_: string, hash: string) => credentialIDOf(hash)],
    ['is empty', () => ''],
  ])(
    'a session is revoked at once and permanently when the password hash of its User changes and the record of the replaced hash %s',
    async (_, record) => {
      await accounts.putUser('bob');
      const bob = await begin('bob');
      const { credentialID = '' } = accounts.directory.account('bob') ?? {};
      const next = accounts.hashes.of('another', 'bcrypt:4');
      await setHash('bob', next, record(credentialID, next));
      expect(bob()).toBe('Revoked');
      expect(accounts.directory.account('bob')?.credentialID).toBe(credentialIDOf(next));
    },
  );

  test('a session is revoked at once and permanently when the password of its configured user changes', async () => {
    const [alice, eve] = [await begin('alice'), await begin('eve')];
    const passwordHash = accounts.hashes.of('another', 'bcrypt:4');
    accounts.configure({ users: [{ username: 'alice', passwordHash }, { username: 'eve' }], clients });
    await settle();
    expect([alice(), eve()]).toEqual(['Revoked', 'Active']);
  });

  // evidence: dismissal-link
  test('a session is revoked at once and permanently when its user loses the link to the identity, even briefly', async () => {
    await accounts.putUser('bob', { identities: [identity, another] });
    const [one, other, password] = [await beginAs('bob', identity), await beginAs('bob', another), await begin('bob')];
    await accounts.putUser('bob', { identities: [another] });
    await accounts.putUser('bob', { identities: [identity, another] });
    expect([one(), other(), password()]).toEqual(['Revoked', 'Active', 'Active']);
  });

  // evidence: dismissal-provider
  test('a session is revoked at once and permanently when its identity provider is removed, even briefly', async () => {
    await accounts.putUser('bob', { identities: [identity] });
    const [one, password] = [await beginAs('bob', identity), await begin('bob')];
    accounts.configure({ users, clients });
    accounts.configure({ users, clients, identityProviders: [corp] });
    await settle();
    expect([one(), password()]).toEqual(['Revoked', 'Active']);
  });

  test('a session is revoked at once and permanently when its User is deleted or overridden by a configured user, even briefly', async () => {
    await accounts.putUser('bob');
    await accounts.putUser('carol');
    const [bob, carol] = [await begin('bob'), await begin('carol')];
    accounts.cluster.delete(usersPath, 'bob');
    accounts.configure({ users: [...users, { username: 'carol' }], clients });
    accounts.configure({ users, clients });
    await settle();
    expect([bob(), carol()]).toEqual(['Revoked', 'Revoked']);
  });

  test('a session is revoked at once and permanently when its User is recreated while the watch is interrupted', async () => {
    const uid = await accounts.putUser('bob');
    const bob = await begin('bob');
    let failure: Error = new Error('reset');
    accounts.client.before = ({ path, query }) => {
      if (path === usersPath && query['resourceVersion'] !== undefined) throw failure;
    };
    await accounts.clock.advance(6_000);
    accounts.cluster.delete(usersPath, 'bob');
    const next = await accounts.putUser('bob');
    expect([next === uid, accounts.directory.account('bob')?.uid, bob()]).toEqual([false, uid, 'Active']);
    failure = new KubeError(410, { reason: 'Expired' });
    await accounts.clock.advance(5_000);
    expect([accounts.directory.account('bob')?.uid, bob()]).toEqual([next, 'Revoked']);
  });

  // evidence: dismissal-client
  test('a session and the pending codes of its client are revoked at once and permanently when the client is removed', async () => {
    const [web, other] = [await begin('alice', 'web'), await begin('alice')];
    const spec = { userName: 'eve', userUID: 'e', clientID: 'web', code: {} };
    await accounts.sessions.codes.create(spec, minute, true);
    const [code = ''] = accounts.cluster
      .list(sessionsPath(namespace))
      .filter((one) => (one['status'] as { readonly phase: string }).phase === 'Pending')
      .map(({ metadata }) => metadata.name);
    accounts.configure({ users, clients: clients.slice(0, 1) });
    accounts.configure({ users, clients });
    await settle();
    expect([web(), phaseOf(code), other()]).toEqual(['Revoked', 'Revoked', 'Active']);
  });
});

test('one search finds the sessions of all clients, providers and users that a configuration removes', async () => {
  const many = Array.from({ length: 100 }, (_, index) => ({ name: `client-${index}`, secret: 'x' }));
  accounts.configure({ users, clients: [...clients, ...many], identityProviders: [corp] });
  await accounts.putUser('bob', { identities: [identity] });
  const removed = [
    await begin('alice', 'client-0'),
    await begin('alice', 'client-99'),
    await begin('eve'),
    await beginAs('bob', identity),
  ];
  const kept = await begin('alice');
  const searches = jest.spyOn(SessionStore.prototype, 'ofAll');
  try {
    accounts.configure({ users: users.slice(0, 1), clients });
    await settle();
    expect([...removed, kept].map((phase) => phase())).toEqual(['Revoked', 'Revoked', 'Revoked', 'Revoked', 'Active']);
    expect(searches).toHaveBeenCalledTimes(1);
  } finally {
    searches.mockRestore();
  }
});

describe('a session is not revoked', () => {
  test('a session is not revoked when a configuration change keeps the identity provider of the session', async () => {
    await accounts.putUser('bob', { identities: [identity] });
    const bob = await beginAs('bob', identity);
    accounts.configure({ users, clients: [...clients, { name: 'more', secret: 'x' }], identityProviders: [corp] });
    await settle();
    expect(bob()).toBe('Active');
  });

  test('a session of one identity is not revoked when its user is also linked to another identity', async () => {
    await accounts.putUser('bob', { identities: [identity, another] });
    const started = [await beginAs('bob', identity), await beginAs('bob', another)];
    await accounts.clock.advance(5 * minute);
    expect(started.map((phase) => phase())).toEqual(['Active', 'Active']);
  });

  // evidence: dismissal-config-refused
  test('a session is not revoked while the configuration is rejected', async () => {
    const alice = await begin('alice');
    accounts.live.refuse([{ path: '', message: 'half of it is missing' }]);
    await accounts.clock.advance(5 * minute);
    expect(alice()).toBe('Active');
  });

  test('a session is not revoked when the configuration of this replica does not contain the user of the session yet', async () => {
    const elsewhere = await startAccounts({ beside: accounts });
    try {
      elsewhere.configure({ users: [...users, { username: 'new' }], clients });
      const fresh = await begin('new', 'console', elsewhere);
      await settle();
      accounts.configure({ users, clients: [...clients, { name: 'more', secret: 'x' }] });
      await settle();
      expect(fresh()).toBe('Active');
    } finally {
      await elsewhere.stop();
    }
  });

  test('a session is not revoked while the password of its User cannot be read, nor when the password can be read again', async () => {
    await accounts.putUser('bob');
    const bob = await begin('bob');
    const { passwordHash = '' } = accounts.directory.account('bob') ?? {};
    await setHash('bob', 'no hash');
    await accounts.clock.advance(5 * minute);
    await setHash('bob', passwordHash);
    expect(bob()).toBe('Active');
  });

  test('a session is not revoked while two users are linked to the same identity', async () => {
    await accounts.putUser('bob', { identities: [identity] });
    const bob = await beginAs('bob', identity);
    await accounts.putUser('carol', { identities: [identity] });
    await accounts.clock.advance(5 * minute);
    expect(bob()).toBe('Active');
  });

  test('a session of a device authorization is not revoked while the authorization waits for approval', async () => {
    const device = { userCode: 'BCDF-GHJK', sourceIP: '192.0.2.1', life: 10 * minute, refreshable: true };
    await accounts.sessions.devices.create({ clientID: 'web' }, device);
    await accounts.clock.advance(5 * minute);
    expect(await accounts.sessions.devices.findPending(device.userCode)).toBeDefined();
  });

  test('a session of a client or of a ServiceAccount is not revoked while the client exists', async () => {
    const { username: userName, uid: userUID } = accounts.directory.clients.get('web')?.subject ?? {
      username: '',
      uid: '',
    };
    const own = await accounts.sessions.createFixed({ subjectKind: 'Client', userName, userUID, clientID: 'web' });
    const other = { userName: 'system:serviceaccount:a:b', userUID: 'u', clientID: 'web' };
    const exchanged = await accounts.sessions.createFixed({ subjectKind: 'ServiceAccount', ...other });
    await accounts.clock.advance(5 * minute);
    expect([own, exchanged].map(({ metadata }) => phaseOf(metadata.name))).toEqual(['Active', 'Active']);
  });

  test('a session is not revoked while the watch of Users gets no response', async () => {
    await accounts.putUser('bob');
    const bob = await begin('bob');
    accounts.client.before = ({ path, query }) => {
      if (path.endsWith('/users') && query['watch'] !== undefined) throw new Error('reset');
    };
    await accounts.clock.advance(5 * minute);
    expect(bob()).toBe('Active');
  });
});

describe('the sweep revokes a session', () => {
  test('the sweep revokes a session that was created while the user was being disabled', async () => {
    await accounts.putUser('bob');
    await accounts.putUser('bob', { state: 'Disabled' });
    const bob = await begin('bob');
    // The user can still be unknown to this replica.
    await accounts.clock.advance(minute);
    expect(bob()).toBe('Active');
    await accounts.clock.advance(5 * minute);
    expect(bob()).toBe('gone');
  });

  test('the sweep revokes a session that was created while the password or link of its login was being removed', async () => {
    const uid = await accounts.putUser('bob', { identities: [another] });
    const spec = { userName: 'bob', userUID: uid, clientID: 'console' };
    const started = [
      await accounts.sessions.create({ ...spec, credentialID: 'of before' }),
      await accounts.sessions.create({ ...spec, identity }),
      await accounts.sessions.create({ ...spec, identity: another }),
    ].map(({ session }) => session.metadata.name);
    await accounts.clock.advance(5 * minute);
    expect(started.map(phaseOf)).toEqual(['gone', 'gone', 'Active']);
  });

  test('the sweep revokes a session that was created while the last link of its user was being removed', async () => {
    await accounts.putUser('bob', { identities: [] });
    const bob = await beginAs('bob', identity);
    await accounts.clock.advance(5 * minute);
    expect(bob()).toBe('gone');
  });

  test('the sweep revokes a session whose configured user or client was removed while no replica was running', async () => {
    const [web, other] = [await begin('eve', 'web'), await begin('alice')];
    const eve = await begin('eve');
    await accounts.stop();
    accounts = await startAccounts({
      authentication: { users: users.slice(0, 1), clients: clients.slice(0, 1) },
      beside: accounts,
    });
    await accounts.clock.advance(5 * minute);
    expect([web(), eve(), other()]).toEqual(['gone', 'gone', 'Active']);
  });

  test('the sweep revokes a session whose linked User lost its identity provider while no replica was running', async () => {
    await accounts.putUser('bob', { identities: [identity] });
    const [linked, password] = [await beginAs('bob', identity), await begin('bob')];
    await accounts.stop();
    accounts = await startAccounts({ authentication: { users, clients }, beside: accounts });
    accounts.live.refuse([{ path: '', message: 'half of it is missing' }]);
    await accounts.clock.advance(5 * minute);
    expect([linked(), password()]).toEqual(['Active', 'Active']);
    accounts.configure({ users, clients });
    await accounts.clock.advance(5 * minute);
    expect([linked(), password()]).toEqual(['gone', 'Active']);
  });

  test('the sweep revokes a session whose User was overridden by a configured user while no replica was running', async () => {
    await accounts.putUser('bob');
    await accounts.putUser('carol');
    const [bob, carol] = [await begin('bob'), await begin('carol')];
    await accounts.stop();
    accounts = await startAccounts({
      authentication: { users: [...users, { username: 'carol' }], clients },
      beside: accounts,
    });
    await accounts.clock.advance(5 * minute);
    expect([bob(), carol()]).toEqual(['Active', 'gone']);
  });
});

type Spec = Partial<Parameters<Accounts['directory']['isDismissed']>[0]>;

/** Reports whether a session of bob, with these changes, is revoked permanently. */
const isDismissed = async (changes: Spec): Promise<boolean> => {
  const uid = await accounts.putUser('bob', { identities: [identity] });
  const { credentialID = '' } = accounts.directory.account('bob') ?? {};
  const spec = { userName: 'bob', userUID: uid, clientID: 'console', credentialID, createdAt: '', expiresAt: '' };
  return accounts.directory.isDismissed({ ...spec, ...changes });
};

const ofAlice = (): Spec => {
  const { uid: userUID = '', credentialID = '' } = accounts.directory.account('alice') ?? {};
  return { userName: 'alice', userUID, credentialID };
};

const removed = { userName: 'removed', userUID: configuredUserUID(issuer, 'removed') };

describe('isDismissed()', () => {
  test.each<[string, () => Spec, { readonly now: boolean; readonly whileRefused: boolean }]>([
    ['of a User', () => ({}), { now: false, whileRefused: false }],
    ['of a configured user', ofAlice, { now: false, whileRefused: false }],
    ['of an identity', () => ({ identity, credentialID: '' }), { now: false, whileRefused: false }],
    ['of an unknown client', () => ({ clientID: 'unknown' }), { now: true, whileRefused: false }],
    [
      'of an unknown identity provider',
      () => ({ identity: { provider: 'unknown', subject: '1' } }),
      { now: true, whileRefused: true },
    ],
    ['of an identity that is not linked', () => ({ identity: another }), { now: true, whileRefused: true }],
    ['started with a different password', () => ({ credentialID: 'another' }), { now: true, whileRefused: true }],
    ['of a different User of the same name', () => ({ userUID: 'another' }), { now: true, whileRefused: false }],
    ['of a deleted User', () => ({ userName: 'gone' }), { now: true, whileRefused: false }],
    ['of a removed configured user', () => removed, { now: true, whileRefused: false }],
    [
      'of a different user with a configured name',
      () => ({ ...ofAlice(), userUID: 'another' }),
      { now: true, whileRefused: false },
    ],
    [
      'of a device authorization without a user yet',
      () => ({ userName: '', userUID: '' }),
      { now: false, whileRefused: false },
    ],
    [
      'of a ServiceAccount',
      () => ({ subjectKind: 'ServiceAccount' as const, userName: 'system:serviceaccount:a:b', userUID: 'u' }),
      { now: false, whileRefused: false },
    ],
  ])('isDismissed() reports whether a session %s is permanently revoked', async (_, changes, expected) => {
    expect(await isDismissed(changes())).toBe(expected.now);
    accounts.live.refuse([{ path: '', message: 'half of it is missing' }]);
    expect(await isDismissed(changes())).toBe(expected.whileRefused);
  });

  test('isDismissed() returns false for sessions of Users that cannot be read, and true for sessions of removed configured users', async () => {
    const uid = await accounts.putUser('bob');
    const spec = { clientID: 'console', createdAt: '', expiresAt: '' };
    accounts.client.holdWatches();
    await accounts.clock.advance(16_000);
    expect(accounts.directory.isDismissed({ ...spec, userName: 'bob', userUID: 'another' })).toBe(false);
    expect(accounts.directory.isDismissed({ ...spec, userName: 'bob', userUID: uid, credentialID: 'x' })).toBe(false);
    expect(accounts.directory.isDismissed({ ...spec, ...removed })).toBe(true);
  });
});
