import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { LastLogins } from '../../../../src/accounts/logins/last-logins.ts';
import { usersPath } from '../../../../src/config/names.ts';
import { rfc3339 } from '../../../../src/runtime/time.ts';
import { unreachable } from '../../../../src/cluster/client/kube-error.ts';
import { createLogger } from '../../../../src/runtime/logger.ts';
import { createPlatform, type Platform } from '../../../fakes/platform.ts';

let platform: Platform;
let lastLogins: LastLogins;
let bob: { username: string; uid: string };
beforeEach(async () => {
  platform = await createPlatform();
  lastLogins = new LastLogins({ ...platform, log: createLogger({ silent: true }) });
  bob = { username: 'bob', uid: await platform.putUser('bob') };
});
afterEach(async () => {
  await lastLogins.stop();
  platform.stop();
});

/** The memory cluster serves the status as an object of its own: what the watch brings back the tests say. */
const patches = (): unknown[] => platform.client.asked('PATCH', '/status').map(({ path, body }) => ({ path, body }));
const now = (): string => rfc3339(platform.clock.now());
const note = (user = bob): void => lastLogins.note(user, now());

test('is in the status, for the object that logged in', async () => {
  const time = now();
  note();
  await platform.clock.advance(2_000);
  expect(patches()).toEqual([
    { path: `${usersPath}/bob/status`, body: { metadata: { uid: bob.uid }, status: { lastLoginTime: time } } },
  ]);
});

test('is written once a minute, also where the watch lags', async () => {
  for (let time = 0; time < 120; time += 1) {
    note();
    await platform.clock.advance(1_000);
  }
  expect(patches()).toHaveLength(2);
});

test('is not written where another replica has just done so', async () => {
  const told = { metadata: { name: 'bob' }, spec: {}, status: { lastLoginTime: now() } };
  await platform.clock.advance(30_000);
  platform.cluster.put(usersPath, told);
  await platform.clock.advance(1);
  note();
  await platform.clock.advance(2_000);
  expect(patches()).toHaveLength(0);
  await platform.clock.advance(30_000);
  note();
  await platform.clock.advance(2_000);
  expect(patches()).toHaveLength(1);
});

test('is not written for a user who is configured, or who is gone', async () => {
  note({ username: 'alice', uid: platform.directory.account('alice')?.uid ?? '' });
  note({ username: 'bob', uid: 'the one before' });
  note({ username: 'nobody', uid: 'nobody' });
  await platform.clock.advance(2_000);
  expect(patches()).toHaveLength(0);
});

test('is tried again', async () => {
  platform.client.before = ({ method }) => {
    if (method === 'PATCH') throw unreachable(new Error('down'));
  };
  note();
  await platform.clock.advance(2_000);
  platform.client.before = () => undefined;
  await platform.clock.advance(12_000);
  expect(patches()).toHaveLength(2);
});

test('is not written by a replica that learns of the write of another one before its own', async () => {
  note();
  platform.cluster.put(usersPath, { metadata: { name: 'bob' }, spec: {}, status: { lastLoginTime: now() } });
  await platform.clock.advance(1);
  await platform.clock.advance(2_000);
  expect(patches()).toHaveLength(0);
});

test('is written at the latest when the replica stops', async () => {
  note();
  await lastLogins.stop();
  expect(patches()).toHaveLength(1);
});
