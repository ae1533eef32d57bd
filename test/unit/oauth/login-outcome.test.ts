/** Outcomes of logins with the password of an identity provider, as the audit event and the metrics report them. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { PersonRefused, type Person } from '../../../src/accounts/providers/person.ts';
import { annotations } from '../../../src/audit/annotations.ts';
import type { RequestContext } from '../../../src/http/route.ts';
import { PasswordLogin, type PasswordLoginParts } from '../../../src/oauth/password-login.ts';
import { serviceUnavailable } from '../../../src/runtime/errors.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { startAccounts, type Accounts } from '../../labs/accounts.ts';

let accounts: Accounts;
beforeAll(async () => {
  accounts = await startAccounts();
});
afterAll(() => accounts.stop());

const identity = { provider: 'corp', subject: 'uid=erin' };
const person: Person = { identity, username: 'erin', email: undefined, displayName: undefined, groups: [] };

test.each<[string, string, () => Promise<Person | undefined>]>([
  ['Refused', 'the person is linked to no user', () => Promise.resolve(person)],
  ['Refused', 'the data of the person is not allowed', () => Promise.reject(new PersonRefused('not allowed'))],
  ['WrongPassword', 'the provider rejects the password', () => Promise.resolve(undefined)],
  ['Unavailable', 'the provider is unavailable', () => Promise.reject(serviceUnavailable('down'))],
])('the outcome of a login is %s if %s', async (outcome, _, authenticate) => {
  const passwordProviders = { find: () => Promise.resolve({ identity, authenticate, close: () => undefined }) };
  const login = new PasswordLogin({
    ...accounts,
    passwordProviders: passwordProviders as unknown as PasswordLoginParts['passwordProviders'],
    multipleLogin: () => true,
  });
  const noted = new Map<string, string>();
  const context = {
    auditID: '',
    sourceIP: '192.0.2.1',
    userAgent: '',
    log: createLogger({ silent: true }),
    annotate: (key: string, value: string) => void noted.set(key, value),
  } as unknown as RequestContext;
  const attempt = login.verify({ username: 'erin', password: 'correct horse', client: 'platform', context });
  await expect(attempt).rejects.toBeInstanceOf(Error);
  expect(noted.get(annotations.login)).toBe(outcome);
});
