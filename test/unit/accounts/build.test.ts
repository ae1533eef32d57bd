/** Connections between the components that `buildAccounts` creates. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { unreachable } from '../../../src/cluster/client/kube-error.ts';
import { usersPath } from '../../../src/config/names.ts';
import { startAccounts, type Accounts } from '../../labs/accounts.ts';

let accounts: Accounts;
beforeEach(async () => {
  accounts = await startAccounts();
});
afterEach(() => accounts.stop());

/** Statuses written to the User bob, oldest first. */
const statusesOfBob = (): unknown[] =>
  accounts.client.requestsTo('PATCH', '/users/bob/status').map(({ body }) => (body as { status: unknown }).status);

describe('the status condition of a User', () => {
  test('the status condition of a User is updated when the User or the configuration changes', async () => {
    await accounts.putUser('bob');
    await accounts.clock.advance(1_000);
    accounts.configure({ users: [{ username: 'bob' }] });
    await accounts.clock.advance(1_000);
    expect(statusesOfBob()).toMatchObject([
      { conditions: [{ reason: 'Accepted' }] },
      { conditions: [{ reason: 'ConfiguredUser' }] },
    ]);
  });
});

describe('a login', () => {
  const attempt = { guesses: 'password', username: 'bob', address: '192.0.2.1', client: 'platform' } as const;

  test('a failed login is counted on all replicas', async () => {
    const other = await startAccounts({ beside: accounts });
    try {
      for (let time = 0; time < 5; time += 1) accounts.limiter.failed(attempt);
      expect(other.limiter.retryAfter(attempt)).toBe(0);
      await accounts.clock.advance(2_000);
      expect(other.limiter.retryAfter(attempt)).toBeGreaterThan(0);
    } finally {
      await other.stop();
    }
  });

  test('a successful login sets the time of the last login in the status of the User', async () => {
    const uid = await accounts.putUser('bob');
    const login = { reason: 'LoggedIn', client: 'platform', sourceIP: '192.0.2.1', userAgent: 'curl/8' } as const;
    accounts.loginHistories.add({ username: 'bob', uid }, login);
    await accounts.clock.advance(2_000);
    expect(statusesOfBob()).toContainEqual({ lastLoginTime: expect.any(String) });
  });
});

test('only the replica that holds the Lease deletes expired sessions', async () => {
  const other = await startAccounts({ beside: accounts });
  try {
    const { username: userName, uid: userUID } = accounts.directory.account('alice') ?? { username: '', uid: '' };
    const { session } = await accounts.sessions.create({ userName, userUID, clientID: 'gone' });
    // The DELETE request fails on this replica, so the session remains and the other replica could delete it.
    accounts.client.before = ({ method }) => {
      if (method === 'DELETE') throw unreachable(new Error('reset'));
    };
    await accounts.clock.advance(5 * 60_000);
    const deletions = ({ client }: Accounts): number => client.requestsTo('DELETE', session.metadata.name).length;
    expect(deletions(accounts)).toBeGreaterThan(0);
    expect(deletions(other)).toBe(0);
  } finally {
    await other.stop();
  }
});

test('Users are read only after the configured users are loaded', async () => {
  const passwordRef = { name: 'platform-admin', key: 'passwordHash' };
  const admin = { username: 'admin', passwordHash: undefined, passwordRef };
  const other = await startAccounts({ authentication: { users: [admin] } });
  try {
    const requests = other.client.requests.map(({ method, path }) => `${method} ${path}`);
    const read = requests.indexOf('GET /api/v1/namespaces/platform-system/secrets/platform-admin');
    expect(read).toBeGreaterThan(-1);
    expect(requests.indexOf(`GET ${usersPath}`)).toBeGreaterThan(read);
  } finally {
    await other.stop();
  }
});
