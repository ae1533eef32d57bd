import { expect, test } from '@jest/globals';
import { lab, lives, login, minute, stored } from '../../../labs/sessions.ts';

test('what a login lets in does not outlive it, by a code or of a device', async () => {
  const { cluster, clock, replica } = lab();
  const { sessions } = await replica();
  const authenticatedAt = new Date(clock.now()).toISOString();
  const until = clock.now() + lives.sessionMaxAge;
  await clock.advance(100 * minute);
  await sessions.codes.create({ ...login, code: { authenticatedAt } }, minute, true);
  const device = { userCode: 'BCDF-GHJK', sourceIP: '192.0.2.1', life: minute, refreshable: true };
  await sessions.devices.create({ clientID: 'platform-cli' }, device);
  const waiting = await sessions.devices.waitingFor(device.userCode);
  expect(Date.parse(waiting?.spec.expiresAt ?? '')).toBe(clock.now() + lives.sessionMaxAge);
  expect(waiting && (await sessions.devices.letIn(waiting, { ...login, authenticatedAt, login: 'x' }))).toBe(true);
  expect(stored(cluster).map(({ spec }) => Date.parse(spec.expiresAt))).toEqual([until, until]);
});
