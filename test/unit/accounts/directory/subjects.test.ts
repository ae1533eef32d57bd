/** Subjects of sessions, as access tokens, access reviews and audit events show them. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { sessionOwnerOf, type Session, type SessionSpec } from '../../../../src/tokens/sessions/session.ts';
import { loggedIn, subjectOf } from '../../../../src/accounts/directory/subjects.ts';
import type { Subject } from '../../../../src/tokens/subject.ts';
import { usersPath } from '../../../../src/config/names.ts';
import { startAccounts, type Accounts } from '../../../labs/accounts.ts';
import { settle } from '../../../labs/cluster-fakes.ts';

const exchange = 'urn:ietf:params:oauth:grant-type:token-exchange';
const corp = { name: 'corp', type: 'LDAP', ldap: { url: 'ldaps://corp.example', userSearch: { base: 'dc=example' } } };
const identity = { provider: 'corp', subject: '1' };
const programs = { name: 'programs', secret: 'x', grantTypes: ['client_credentials', exchange], groups: ['p'] };
const people = { name: 'people', secret: 'x' };
const clients = [people, programs];

let accounts: Accounts;
beforeEach(async () => {
  accounts = await startAccounts({ authentication: { clients, identityProviders: [corp] } });
});
afterEach(() => accounts.stop());

/** A session of bob with his password, unless `changes` overrides it. */
function sessionOf(changes: Partial<SessionSpec> = {}): Session {
  const { uid: userUID = '', credentialID = '' } = accounts.directory.account('bob') ?? {};
  const spec = { userName: 'bob', userUID, clientID: 'people', credentialID, createdAt: '', expiresAt: '', ...changes };
  return { metadata: { name: 'sid' }, spec, status: { phase: 'Active' } };
}

const bob = async (spec: Parameters<Accounts['putUser']>[1] = {}): Promise<string> =>
  await accounts.putUser('bob', { groups: ['b'], ...spec });
const subject = (session: Session): Subject | undefined => subjectOf(session, accounts.directory);

describe('the session of a user', () => {
  test('the session of a user resolves to the current groups and displayName of the user', async () => {
    await bob();
    const session = sessionOf();
    expect(subject(session)).toMatchObject({ username: 'bob', groups: ['b'] });
    await bob({ groups: ['c'], displayName: 'Bob' });
    expect(subject(session)).toMatchObject({ groups: ['c'], displayName: 'Bob' });
  });

  test.each<[string, () => unknown]>([
    ['the user is disabled', () => bob({ state: 'Disabled' })],
    ['the user is deleted', () => accounts.cluster.delete(usersPath, 'bob')],
    [
      'the user is replaced by another user of the same name',
      async () => {
        accounts.cluster.delete(usersPath, 'bob');
        await bob();
      },
    ],
    ['the user gets a reserved group of Kubernetes', () => bob({ groups: ['b', 'system:masters'] })],
    ['the client is removed', () => accounts.configure({ clients: [programs], identityProviders: [corp] })],
  ])('the session of a user resolves to no subject after %s', async (_, change) => {
    await bob();
    const session = sessionOf();
    await change();
    await settle();
    expect(subject(session)).toBeUndefined();
  });

  test('the session of a user resolves to no subject when it was created with another password', async () => {
    await bob();
    expect(subject(sessionOf({ credentialID: 'another' }))).toBeUndefined();
  });

  test('the session of a user from an identity provider resolves to the user while link and provider exist', async () => {
    await bob({ identities: [identity] });
    const session = sessionOf({ identity, credentialID: 'another' });
    expect(subject(session)).toMatchObject({ username: 'bob' });
    await bob({ identities: [{ provider: 'corp', subject: '2' }] });
    expect(subject(session)).toBeUndefined();
    await bob({ identities: [identity] });
    accounts.configure({ clients });
    expect(subject(session)).toBeUndefined();
  });

  test('the session of a user resolves to no subject while two users have the same identity', async () => {
    await bob({ identities: [identity] });
    await accounts.putUser('carol', { identities: [identity] });
    expect(subject(sessionOf({ identity }))).toBeUndefined();
  });

  test.each([
    ['the login at an identity provider adds its groups', identity, ['b', 'staff']],
    ['the login by password adds no groups', undefined, ['b']],
  ])('the session of a user has the groups of the user and of the login: %s', async (_, by, groups) => {
    await bob({ identities: [identity] });
    const session = sessionOf({ ...(by === undefined ? {} : { identity: by }), groups: ['staff'] });
    expect(subject(session)?.groups).toEqual(groups);
  });

  test('the session of a user adds no groups if the identity provider returned none', async () => {
    await bob({ identities: [identity] });
    for (const groups of [{}, { groups: [] }])
      expect(subject(sessionOf({ identity, ...groups }))?.groups).toEqual(['b']);
  });

  test('the session of a user resolves to no subject if the identity provider returned a group that Kubernetes reserves', async () => {
    await bob({ identities: [identity] });
    expect(subject(sessionOf({ identity, groups: ['staff', 'system:masters'] }))).toBeUndefined();
    expect(subject(sessionOf({ identity, groups: ['no-system:'] }))?.groups).toEqual(['b', 'no-system:']);
  });

  test('the session of a user has no groups, not even those of an identity provider, while the password must be changed', async () => {
    await bob({ identities: [identity], passwordChangeRequired: true });
    for (const session of [sessionOf(), sessionOf({ identity, groups: ['staff'] })]) {
      expect(subject(session)).toMatchObject({ username: 'bob', groups: [], passwordChangeRequired: true });
      expect(subject(session)?.uid).toBe(session.spec.userUID);
    }
  });

  test.each([
    ['after a login by password', {}, {}],
    ['after a login with groups of an identity provider', { identity, groups: ['staff'] }, {}],
    ['if the password must be changed', {}, { passwordChangeRequired: true }],
  ])('the session of a user resolves to the same object as long as nothing changes: %s', async (_, changes, spec) => {
    await bob({ identities: [identity], ...spec });
    const session = sessionOf(changes);
    const before = subject(session);
    expect(before).toBeDefined();
    expect(subject(session)).toBe(before);
    await bob({ identities: [identity], ...spec, groups: ['c'] });
    expect(subject(session)).not.toBe(before);
  });

  test('the session of a user does not share the groups of one login with another login', async () => {
    await bob({ identities: [identity] });
    const account = accounts.directory.account('bob');
    if (account === undefined) throw new Error('there is no bob');
    const [one, other] = ['a', 'b'].map((group) => sessionOf({ identity, groups: [group] }));
    expect([one, other].map((session) => session && loggedIn(account, session).groups)).toEqual([
      ['b', 'a'],
      ['b', 'b'],
    ]);
  });
});

/** A session of the client itself. */
const own = (clientID = 'programs', changes: Partial<SessionSpec> = {}): Session => {
  const { username: userName = '', uid: userUID = '' } = accounts.directory.clients.get(clientID)?.subject ?? {};
  return sessionOf({ subjectKind: 'Client', userName, userUID, clientID, ...changes });
};

describe('the session of a client', () => {
  test('the session of a client resolves to the client and its groups', () => {
    expect(subject(own())).toMatchObject({ username: 'platform:client:programs', groups: ['p'] });
  });

  test('the session of a client resolves to no subject if the client has another uid', () => {
    expect(subject(own('programs', { userUID: 'another' }))).toBeUndefined();
  });

  test.each(['Client', 'ServiceAccount'] as const)(
    'the session of a client of kind %s resolves to no subject if the client is not allowed to have such sessions',
    (subjectKind) => {
      expect(subject(own('people', { subjectKind }))).toBeUndefined();
      const session = own('programs', { subjectKind });
      expect(subject(session)).toBeDefined();
      accounts.configure({ clients: [people, { ...programs, groups: [], grantTypes: ['password'] }] });
      expect(subject(session)).toBeUndefined();
    },
  );
});

describe('the session of a ServiceAccount', () => {
  const serviceAccount = {
    subjectKind: 'ServiceAccount',
    userName: 'system:serviceaccount:a:b',
    userUID: 'uid-b',
    clientID: 'programs',
  } as const;

  test('the session of a ServiceAccount resolves to the user info that kube-apiserver returned', () => {
    const groups = ['system:serviceaccounts', 'system:serviceaccounts:a'];
    const session = sessionOf({ ...serviceAccount, groups });
    expect(subject(session)).toEqual({
      username: 'system:serviceaccount:a:b',
      uid: 'uid-b',
      groups,
      displayName: undefined,
      email: undefined,
    });
    expect(subject(session)).toBe(subject(session));
  });

  test('the session of a ServiceAccount has no groups if kube-apiserver returned none', () => {
    expect(subject(sessionOf(serviceAccount))?.groups).toEqual([]);
  });
});

test('sessionOwnerOf() returns only the fields of a session that describe its user, login and source', () => {
  const holder = {
    userName: 'bob',
    userUID: 'uid-bob',
    credentialID: 'c1',
    identity,
    groups: ['staff'],
    sourceIP: '192.0.2.1',
    userAgent: 'curl/8',
  };
  const rest = { clientID: 'people', createdAt: 'now', expiresAt: 'later', scope: 'openid' };
  expect(sessionOwnerOf({ ...holder, ...rest })).toEqual(holder);
  expect(Object.keys(sessionOwnerOf({ userName: 'bob', userUID: 'uid-bob', ...rest }))).toEqual([
    'userName',
    'userUID',
  ]);
});
