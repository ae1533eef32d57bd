import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { loginHistoriesPath } from '../../../src/config/names.ts';
import { unreachable } from '../../../src/cluster/client/kube-error.ts';
import { namespace, rightPassword } from '../../labs/accounts.ts';
import { createLab, type Lab } from '../../labs/iam.ts';

let lab: Lab;
beforeEach(async () => {
  lab = await createLab();
  await lab.putUser('bob');
  await lab.putUser('dave', { state: 'Disabled' });
  await lab.putUser('erin', {}, false);
});
afterEach(() => lab.stop());

const reasons = async (by: string, name: string, query = ''): Promise<unknown[]> =>
  ((await lab.call(by, 'GET', `users/${name}/loginrecords${query}`)).json()['items'] as { reason: string }[]).map(
    ({ reason }) => reason,
  );

test('users can read their own login records, newest first and up to the limit', async () => {
  await lab.loginResponse('bob', 'wrong');
  await lab.clock.advance(10);
  const token = await lab.login('bob');
  const response = await lab.call(token, 'GET', 'users/~/loginrecords');
  expect(response.json()).toMatchObject({ kind: 'LoginRecordList', metadata: {}, totalItems: 2 });
  expect((response.json()['items'] as unknown[])[0]).toEqual({
    kind: 'LoginRecord',
    apiVersion: 'iam.platform.io/v1alpha2',
    time: expect.stringMatching(/^\d{4}-.*Z$/),
    success: true,
    reason: 'LoggedIn',
    client: 'platform',
    sourceIP: '192.0.2.1',
    userAgent: '',
  });
  expect(await reasons(token, 'bob')).toEqual(['LoggedIn', 'WrongPassword']);
  expect(await reasons(token, '~', '?limit=1')).toEqual(['LoggedIn']);
  expect(await reasons(token, '~', '?limit=0&pretty=true')).toEqual([]);
  for (const query of ['limit=-2', 'limit=x', 'limit=1&limit=2', 'page=1'])
    expect((await lab.call(token, 'GET', `users/~/loginrecords?${query}`)).status).toBe(400);
});

test('reading the login records of another user requires the right to read login records', async () => {
  const alice = await lab.login('alice');
  for (const name of ['bob', 'nobody'])
    expect((await lab.call(alice, 'GET', `users/${name}/loginrecords`)).status).toBe(403);
  lab.rights.set('alice', ['get users/loginrecords']);
  expect(await reasons(alice, 'bob')).toEqual([]);
  expect((await lab.call(alice, 'GET', 'users/nobody/loginrecords')).status).toBe(404);
});

test('login records contain the reason of a failed login', async () => {
  const alice = await lab.login('alice');
  lab.rights.set('alice', ['get users/loginrecords']);
  await lab.loginResponse('dave', rightPassword);
  await lab.loginResponse('erin', rightPassword);
  for (let time = 0; time < 5; time += 1) {
    await lab.loginResponse('bob', 'wrong');
    await lab.clock.advance(1);
  }
  expect(await reasons(alice, 'dave')).toEqual(['Disabled']);
  expect(await reasons(alice, 'erin')).toEqual(['NoPassword']);
  expect(await reasons(alice, 'bob')).toEqual(['Limited', 'WrongPassword', 'WrongPassword', 'WrongPassword']);
});

test('logins with the username or the e-mail address are recorded for the same user, and logins with unknown names are not recorded', async () => {
  await lab.putUser('fay', { email: 'Fay@example.org' });
  await lab.loginResponse('fay@example.org', rightPassword);
  await lab.loginResponse('nobody', rightPassword);
  await lab.clock.advance(1);
  expect(await reasons(await lab.login('fay'), '~')).toEqual(['LoggedIn', 'LoggedIn']);
  await lab.clock.advance(2_000);
  expect(lab.cluster.list(loginHistoriesPath(namespace))).toHaveLength(1);
});

test('a request for login records gets 503 while the records cannot be read, and logins still succeed', async () => {
  lab.client.before = ({ path }) => {
    if (path.includes('loginhistories')) throw unreachable(new Error('down'));
  };
  const token = await lab.login('bob');
  await lab.clock.advance(2_000);
  expect((await lab.call(token, 'GET', 'users/~/loginrecords')).status).toBe(503);
  lab.client.before = () => undefined;
  expect(await reasons(token, '~')).toEqual(['LoggedIn']);
});
