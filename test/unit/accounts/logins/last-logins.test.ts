import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { LastLogins } from '../../../../src/accounts/logins/last-logins.ts';
import { usersPath } from '../../../../src/config/names.ts';
import { rfc3339 } from '../../../../src/runtime/time.ts';
import { unreachable } from '../../../../src/cluster/client/kube-error.ts';
import { createLogger } from '../../../../src/runtime/logger.ts';
import type { MemoryClient } from '../../../fakes/cluster.ts';
import { startAccounts, type Accounts } from '../../../labs/accounts.ts';

let accounts: Accounts;
/** Client that only the `LastLogins` under test uses. */
let client: MemoryClient;
let lastLogins: LastLogins;
let bob: { username: string; uid: string };
beforeEach(async () => {
  accounts = await startAccounts();
  client = accounts.cluster.client();
  lastLogins = new LastLogins({ ...accounts, client, log: createLogger({ silent: true }) });
  bob = { username: 'bob', uid: await accounts.putUser('bob') };
});
afterEach(async () => {
  await lastLogins.stop();
  await accounts.stop();
});

/** The memory cluster serves the status as a separate object, so the tests set what the watch returns. */
const patches = (): unknown[] => client.requestsTo('PATCH', '/status').map(({ path, body }) => ({ path, body }));
const now = (): string => rfc3339(accounts.clock.now());
const note = (user = bob): void => lastLogins.note(user, now());

test('the last login is written to the status of the User who logged in', async () => {
  const time = now();
  note();
  await accounts.clock.advance(2_000);
  expect(patches()).toEqual([
    { path: `${usersPath}/bob/status`, body: { metadata: { uid: bob.uid }, status: { lastLoginTime: time } } },
  ]);
});

test('the last login is written at most once a minute, even if the watch lags', async () => {
  for (let time = 0; time < 120; time += 1) {
    note();
    await accounts.clock.advance(1_000);
  }
  expect(patches()).toHaveLength(2);
});

test('the last login is not written if another replica has just written a last login of the user', async () => {
  const written = { metadata: { name: 'bob' }, spec: {}, status: { lastLoginTime: now() } };
  await accounts.clock.advance(30_000);
  accounts.cluster.put(usersPath, written);
  await accounts.clock.advance(1);
  note();
  await accounts.clock.advance(2_000);
  expect(patches()).toHaveLength(0);
  await accounts.clock.advance(30_000);
  note();
  await accounts.clock.advance(2_000);
  expect(patches()).toHaveLength(1);
});

test('the last login is not written for a configured or deleted user', async () => {
  note({ username: 'alice', uid: accounts.directory.account('alice')?.uid ?? '' });
  note({ username: 'bob', uid: 'the one before' });
  note({ username: 'nobody', uid: 'nobody' });
  await accounts.clock.advance(2_000);
  expect(patches()).toHaveLength(0);
});

test('a failed write of the last login is retried', async () => {
  client.before = ({ method }) => {
    if (method === 'PATCH') throw unreachable(new Error('down'));
  };
  note();
  await accounts.clock.advance(2_000);
  client.before = () => undefined;
  await accounts.clock.advance(12_000);
  expect(patches()).toHaveLength(2);
});

test('a pending last login is not written if another replica writes a last login of the user first', async () => {
  note();
  accounts.cluster.put(usersPath, { metadata: { name: 'bob' }, spec: {}, status: { lastLoginTime: now() } });
  await accounts.clock.advance(1);
  await accounts.clock.advance(2_000);
  expect(patches()).toHaveLength(0);
});

test('a pending last login is written when the replica stops', async () => {
  note();
  await lastLogins.stop();
  expect(patches()).toHaveLength(1);
});
