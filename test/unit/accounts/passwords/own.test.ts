import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { OwnPassword, type NotChanged } from '../../../../src/accounts/passwords/own.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { rightPassword, startAccounts, type Accounts } from '../../../labs/accounts.ts';

const corp = { name: 'corp', type: 'LDAP', ldap: { url: 'ldaps://corp.example', userSearch: { base: 'dc=example' } } };
const next = 'a long new password';

let accounts: Accounts;
let from: Parameters<OwnPassword['change']>[3];
let lines: () => string[];
beforeEach(async () => {
  const { log, lines: written } = logOfLines();
  lines = written;
  from = { client: 'console', sourceIP: '192.0.2.1', auditID: 'audit-1', log };
  accounts = await startAccounts({ authentication: { identityProviders: [{ ...corp, displayName: 'Corp' }] } });
  await accounts.putUser('bob');
});
afterEach(() => accounts.stop());

type How = 'change' | 'replace';

async function set(current: string, password: string, how: How = 'change'): Promise<NotChanged | undefined> {
  const account = accounts.directory.account('bob');
  if (account === undefined) throw new Error('there is no bob');
  return await new OwnPassword(accounts)[how](account, current, password, from);
}

const logIn = (password: string): Promise<boolean> =>
  accounts.passwords.verify(accounts.directory.account('bob')?.passwordHash, password);
const attempt = { guesses: 'password', username: 'bob', address: '192.0.2.1', client: 'console' } as const;

test.each<How>(['change', 'replace'])(
  'a user can %s their password, and the log does not contain the old or the new password',
  async (how) => {
    expect(await set(rightPassword, next, how)).toBeUndefined();
    expect(await logIn(next)).toBe(true);
    expect(lines().map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { level: 'info', auditID: 'audit-1', user: 'bob', by: 'bob' },
    ]);
    for (const secret of [rightPassword, next]) expect(lines().join('\n')).not.toContain(secret);
  },
);

test.each([
  ['wrong', 'wrong password', next],
  ['unfit', rightPassword, 'short'],
  ['unfit', rightPassword, rightPassword],
  ['unfit', rightPassword, 'password123'],
])('a password change is rejected with the reason "%s": from %j to %j', async (reason, current, password) => {
  expect(await set(current, password)).toMatchObject({ reason, message: expect.any(String) });
  expect(await logIn(rightPassword)).toBe(true);
});

test('a wrong current password in a password change is logged and counts as a failed login', async () => {
  for (let time = 0; time < 3; time += 1) expect(await set('wrong', next)).toMatchObject({ reason: 'wrong' });
  expect(lines().map((line) => JSON.parse(line) as unknown)).toContainEqual(
    expect.objectContaining({ level: 'info', auditID: 'audit-1', user: 'bob', sourceIP: '192.0.2.1' }),
  );
  expect(accounts.limiter.retryAfter(attempt)).toBeGreaterThan(0);
  const { length } = accounts.hashes.verified;
  expect(await set(rightPassword, next)).toEqual({
    reason: 'limited',
    message: expect.stringContaining('try again'),
    retryAfter: accounts.limiter.retryAfter(attempt),
  });
  expect(accounts.hashes.verified).toHaveLength(length);
});

test('the right current password in a password change resets failed logins', async () => {
  for (let time = 0; time < 2; time += 1) accounts.limiter.failed(attempt);
  expect(await set(rightPassword, next)).toBeUndefined();
  for (let time = 0; time < 2; time += 1) accounts.limiter.failed(attempt);
  expect(accounts.limiter.retryAfter(attempt)).toBe(0);
});

test('a user who was disabled in the meantime cannot change their password', async () => {
  await accounts.putUser('bob', { state: 'Disabled' });
  expect(await set(rightPassword, next)).toMatchObject({ reason: 'wrong' });
});

describe('a password that is managed elsewhere', () => {
  test('a password in the configuration cannot be changed by its user', async () => {
    const alice = accounts.directory.account('alice');
    if (alice === undefined) throw new Error('there is no alice');
    expect(await new OwnPassword(accounts).change(alice, rightPassword, next, from)).toMatchObject({
      reason: 'unchangeable',
      message: expect.stringContaining('configuration'),
    });
  });

  test('a password of an identity provider cannot be changed by its user, and the error names the provider', async () => {
    accounts.cluster.delete('/apis/iam.platform.io/v1alpha2/users', 'bob');
    await accounts.putUser('bob', { identities: [{ provider: 'corp', subject: '1' }] }, false);
    expect(await set(rightPassword, next)).toMatchObject({
      reason: 'unchangeable',
      message: expect.stringContaining('Corp'),
    });
    expect(accounts.client.requestsTo('PATCH', '')).toEqual([]);
  });
});
