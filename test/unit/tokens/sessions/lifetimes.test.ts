import { expect, test } from '@jest/globals';
import { logOfLines } from '../../../fakes/log.ts';
import { lab, lifetimes, login, minute, path, stored } from '../../../labs/sessions.ts';

test('sessions that start with an authorization code or a device code do not outlive the login that approved the code', async () => {
  const { cluster, clock, replica } = lab();
  const { sessions } = await replica();
  const authenticatedAt = new Date(clock.now()).toISOString();
  const until = clock.now() + lifetimes.sessionMaxAge;
  await clock.advance(100 * minute);
  await sessions.codes.create({ ...login, code: { authenticatedAt } }, minute, true);
  const device = { userCode: 'BCDF-GHJK', sourceIP: '192.0.2.1', life: minute, refreshable: true };
  await sessions.devices.create({ clientID: 'platform-cli' }, device);
  const waiting = await sessions.devices.findPending(device.userCode);
  expect(Date.parse(waiting?.spec.expiresAt ?? '')).toBe(clock.now() + lifetimes.sessionMaxAge);
  expect(waiting && (await sessions.devices.approve(waiting, { ...login, authenticatedAt, login: 'x' }))).toBe(true);
  expect(stored(cluster).map(({ spec }) => Date.parse(spec.expiresAt))).toEqual([until, until]);
});

test('a pending session without a code is deleted without a warning, and device logins still succeed', async () => {
  const { log, lines } = logOfLines();
  const { cluster, clock, replica } = lab(lifetimes, log);
  const { sessions } = await replica();
  const [createdAt, expiresAt] = [0, lifetimes.sessionMaxAge].map((life) => new Date(clock.now() + life).toISOString());
  const spec = { userName: '', userUID: '', clientID: login.clientID, createdAt, expiresAt };
  cluster.put(path, { metadata: { name: 'without-code' }, spec, status: { phase: 'Pending' } });
  await clock.advance(0);
  const device = { userCode: 'BCDF-GHJK', sourceIP: '192.0.2.1', life: 10 * minute, refreshable: true };
  expect(await sessions.devices.create({ clientID: 'platform-cli' }, device)).toBeDefined();
  await clock.advance(2 * minute);
  expect(stored(cluster).map(({ spec: { clientID } }) => clientID)).toEqual(['platform-cli']);
  expect(lines().filter((line) => line.includes('"warn"'))).toEqual([]);
});
