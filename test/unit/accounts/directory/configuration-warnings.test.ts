import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { warningsOf } from '../../../../src/accounts/directory/configuration-warnings.ts';
import { formatProblem } from '../../../../src/config/parse.ts';
import type { PlatformConfiguration } from '../../../../src/config/schema.ts';
import { namespace, rightPassword, startAccounts, type Accounts } from '../../../labs/accounts.ts';
import { settle } from '../../../labs/cluster-fakes.ts';

const secrets = `/api/v1/namespaces/${namespace}/secrets`;
const value = 'neither a hash nor for anybody to see';

let accounts: Accounts;
beforeEach(async () => {
  accounts = await startAccounts();
});
afterEach(() => accounts.stop());

const warnings = (): string[] => accounts.live.warnings.map(formatProblem);

async function configure(authentication: object): Promise<void> {
  accounts.configure({ ...authentication });
  await settle();
}

async function put(name: string, values: Readonly<Record<string, string>>): Promise<void> {
  const data = Object.fromEntries(
    Object.entries(values).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
  );
  accounts.cluster.put(secrets, { metadata: { name }, type: 'Opaque', data });
  await settle();
}

const ldap = { url: 'ldaps://ldap.example', bindDN: 'cn=a', userSearch: { base: 'dc=a' } };
const oidc = { issuer: 'https://sso.example', clientID: 'a' };

test.each<[string, string, (ref: object) => object]>([
  ['clients[0] (web).secretRef', 'a client', (secretRef) => ({ clients: [{ name: 'web', secretRef }] })],
  [
    'identityProviders[0] (corp).ldap.bindPasswordRef',
    'a directory',
    (bindPasswordRef) => ({ identityProviders: [{ name: 'corp', type: 'LDAP', ldap: { ...ldap, bindPasswordRef } }] }),
  ],
  [
    'identityProviders[0] (sso).oidc.clientSecretRef',
    'an OpenID provider',
    (clientSecretRef) => ({ identityProviders: [{ name: 'sso', type: 'OIDC', oidc: { ...oidc, clientSecretRef } }] }),
  ],
])('a missing Secret, key or value is reported for %s until it exists', async (path, _, referringTo) => {
  await configure(referringTo({ name: 'one', key: 'two' }));
  const warning = (message: string): string[] => [`authentication.${path}: ${message}`];
  const missing = warning(`Secret "one" not found in namespace "${namespace}"`);
  expect(warnings()).toEqual(missing);
  await put('one', { three: value });
  expect(warnings()).toEqual(warning('Secret "one" has no key "two"'));
  await put('one', { two: '\n' });
  expect(warnings()).toEqual(warning('key "two" of Secret "one" is empty'));
  await put('one', { two: value });
  expect(warnings()).toEqual([]);
  accounts.cluster.delete(secrets, 'one');
  await settle();
  expect(warnings()).toEqual(missing);
  await configure({});
  expect(warnings()).toEqual([]);
});

test('a configured password that is not a hash is reported', async () => {
  const passwordRef = { name: 'erin', key: 'passwordHash' };
  await configure({ users: [{ username: 'erin', passwordHash: undefined, passwordRef }] });
  const path = 'authentication.users[0] (erin).passwordRef';
  expect(warnings()).toEqual([`${path}: Secret "erin" not found in namespace "${namespace}"`]);
  await put('erin', { passwordHash: value });
  expect(warnings()).toEqual([
    `${path}: the key "passwordHash" of the Secret "erin" is not a supported password hash; create one with "platform-apiserver hash-password"`,
  ]);
  await put('erin', { passwordHash: accounts.hashes.of(rightPassword, 'bcrypt:4') });
  expect(warnings()).toEqual([]);
});

test('no warning is reported for Secrets that have not been read yet', async () => {
  await put('one', { two: value });
  const reported: unknown[] = [];
  accounts.live.warned.subscribe((now) => reported.push(now));
  await configure({
    clients: [
      { name: 'a', secretRef: { name: 'one', key: 'two' } },
      { name: 'b', secretRef: { name: 'other', key: 'two' } },
    ],
  });
  expect(reported).toEqual([[expect.objectContaining({ path: 'authentication.clients[1] (b).secretRef' })]]);
});

test('an e-mail address that two configured users share is reported for both users', async () => {
  await configure({
    users: [
      { username: 'erin', email: 'Both@example.com' },
      { username: 'frank', email: 'frank@example.com' },
      { username: 'grace', email: 'both@example.com' },
      { username: 'heidi' },
    ],
  });
  expect(warnings()).toEqual([
    'authentication.users[0] (erin).email: also belongs to grace, so nobody can log in with it',
    'authentication.users[2] (grace).email: also belongs to erin, so nobody can log in with it',
  ]);
});

test('missing credentials of the audit webhook, the trace receiver and the log store are reported with their configuration paths', () => {
  const tokenRef = { name: 'one', key: 'two' };
  const audit = { webhook: { tokenRef } } as unknown as PlatformConfiguration['audit'];
  const logging = { store: 'loki', loki: { tokenRef } } as unknown as PlatformConfiguration['logging'];
  const tracing = { tokenRef } as unknown as PlatformConfiguration['tracing'];
  const { authentication } = accounts.live.value;
  const secretRefs = { read: () => undefined, problemOf: ({ name }: { name: string }) => `no ${name}` };
  expect(warningsOf({ authentication, audit, logging, tracing }, secretRefs)).toEqual([
    { path: 'audit.webhook.tokenRef', message: 'no one' },
    { path: 'logging.loki.tokenRef', message: 'no one' },
    { path: 'tracing.tokenRef', message: 'no one' },
  ]);
});
