/** What was begun before a user was disabled, or a user or client removed from the configuration, is over for good. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { sessionsPath } from '../../../../src/config/names.ts';
import { createPlatform, namespace, type Platform } from '../../../fakes/platform.ts';
import { settle } from '../../kube/fakes.ts';

const minute = 60_000;
const users = [{ username: 'alice' }, { username: 'eve' }];
const clients = [
  { name: 'console', secret: 'x' },
  { name: 'web', secret: 'x' },
];

let platform: Platform;
beforeEach(async () => {
  platform = await createPlatform({ authentication: { users, clients } });
});
afterEach(() => platform.stop());

/** Begins one, and answers what it says of it later whether it goes on. */
async function begin(userName: string, clientID = 'console', on = platform): Promise<() => string> {
  const { uid: userUID = '', credentialID = '' } = on.directory.account(userName) ?? {};
  const { session } = await on.sessions.create({ userName, userUID, clientID, credentialID });
  return () => phaseOf(session.metadata.name);
}

function phaseOf(sid: string): string {
  const stored = platform.cluster.get(sessionsPath(namespace), sid);
  return stored === undefined ? 'gone' : (stored['status'] as { readonly phase: string }).phase;
}

describe('ends at once, and the user who comes back begins anew', () => {
  test('with a User that is disabled for a moment', async () => {
    await platform.putUser('bob');
    await platform.putUser('carol');
    const [bob, carol] = [await begin('bob'), await begin('carol')];
    await platform.putUser('bob', { state: 'Disabled' });
    await platform.putUser('bob', { state: 'Active' });
    expect([bob(), carol()]).toEqual(['Revoked', 'Active']);
    const again = await begin('bob');
    await platform.clock.advance(5 * minute);
    expect([again(), carol()]).toEqual(['Active', 'Active']);
  });

  test.each([
    ['removed', [{ username: 'eve' }]],
    ['disabled', [{ username: 'alice', state: 'Disabled' }, { username: 'eve' }]],
  ])('with a configured user who is %s', async (_, changed) => {
    const [alice, eve] = [await begin('alice'), await begin('eve')];
    platform.configure({ users: changed, clients });
    platform.configure({ users, clients });
    await settle();
    expect([alice(), eve()]).toEqual(['Revoked', 'Active']);
  });

  test('with a client that is removed, and codes that wait for it', async () => {
    const [web, other] = [await begin('alice', 'web'), await begin('alice')];
    const spec = { userName: 'eve', userUID: 'e', clientID: 'web', code: {} };
    await platform.sessions.codes.create(spec, minute, true);
    const [code = ''] = platform.cluster
      .list(sessionsPath(namespace))
      .filter((one) => (one['status'] as { readonly phase: string }).phase === 'Pending')
      .map(({ metadata }) => metadata.name);
    platform.configure({ users, clients: clients.slice(0, 1) });
    platform.configure({ users, clients });
    await settle();
    expect([web(), phaseOf(code), other()]).toEqual(['Revoked', 'Revoked', 'Active']);
  });
});

describe('ends nothing', () => {
  test('while the configuration is refused', async () => {
    const alice = await begin('alice');
    platform.live.refuse([{ path: '', message: 'half of it is missing' }]);
    await platform.clock.advance(5 * minute);
    expect(alice()).toBe('Active');
  });

  test('of those who are not seen here yet', async () => {
    const elsewhere = await createPlatform({
      authentication: { users: [...users, { username: 'new' }], clients },
      beside: platform,
    });
    try {
      const fresh = await begin('new', 'console', elsewhere);
      await settle();
      platform.configure({ users, clients: [...clients, { name: 'more', secret: 'x' }] });
      await settle();
      expect(fresh()).toBe('Active');
    } finally {
      elsewhere.stop();
    }
  });

  test('of clients and ServiceAccounts as long as the client is there', async () => {
    const { username: userName, uid: userUID } = platform.directory.clients.get('web')?.subject ?? {
      username: '',
      uid: '',
    };
    const own = await platform.sessions.createFixed({ subjectKind: 'Client', userName, userUID, clientID: 'web' });
    const other = { userName: 'system:serviceaccount:a:b', userUID: 'u', clientID: 'web' };
    const exchanged = await platform.sessions.createFixed({ subjectKind: 'ServiceAccount', ...other });
    await platform.clock.advance(5 * minute);
    expect([own, exchanged].map(({ metadata }) => phaseOf(metadata.name))).toEqual(['Active', 'Active']);
  });

  test('of Users while the watch of them says nothing', async () => {
    await platform.putUser('bob');
    const bob = await begin('bob');
    platform.client.before = ({ path, query }) => {
      if (path.endsWith('/users') && query['watch'] !== undefined) throw new Error('reset');
    };
    await platform.clock.advance(5 * minute);
    expect(bob()).toBe('Active');
  });
});

describe('is swept later', () => {
  test('when it was begun while the user was being disabled', async () => {
    await platform.putUser('bob');
    await platform.putUser('bob', { state: 'Disabled' });
    const bob = await begin('bob');
    expect(bob()).toBe('Active');
    await platform.clock.advance(5 * minute);
    expect(bob()).toBe('gone');
  });

  test('when no replica was there as a configured user or a client was removed', async () => {
    const [web, other] = [await begin('eve', 'web'), await begin('alice')];
    const eve = await begin('eve');
    platform.stop();
    platform = await createPlatform({
      authentication: { users: users.slice(0, 1), clients: clients.slice(0, 1) },
      beside: platform,
    });
    await platform.clock.advance(5 * minute);
    expect([web(), eve(), other()]).toEqual(['gone', 'gone', 'Active']);
  });
});
