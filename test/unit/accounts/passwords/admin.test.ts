import { beforeEach, expect, test } from '@jest/globals';
import { ensureAdminSecret } from '../../../../src/accounts/passwords/admin.ts';
import { Passwords } from '../../../../src/accounts/passwords/passwords.ts';
import { MemoryCluster } from '../../../fakes/cluster.ts';
import { configuration } from '../../../fakes/configuration.ts';
import { CountingHashes } from '../../../fakes/hashes.ts';
import { logOfLines } from '../../../fakes/log.ts';

const namespace = 'platform-system';
const secrets = `/api/v1/namespaces/${namespace}/secrets`;
const admin = { username: 'admin', passwordRef: { name: 'platform-admin', key: 'passwordHash' } };
const other = { username: 'other', passwordRef: { name: 'other', key: 'passwordHash' } };

let cluster: MemoryCluster;
let passwords: Passwords;
beforeEach(() => {
  cluster = new MemoryCluster();
  passwords = new Passwords(new CountingHashes());
});

async function ensure(...users: object[]): Promise<string[]> {
  const { log, lines } = logOfLines();
  const parts = { client: cluster.client(), namespace, passwords, log };
  await ensureAdminSecret({ ...parts, configuration: configuration({ authentication: { users } }) });
  return lines();
}

function stored(): { readonly password: string; readonly passwordHash: string } {
  const { data } = cluster.get(secrets, 'platform-admin') as unknown as { data: Record<string, string> };
  const read = (key: string): string => Buffer.from(data[key] ?? '', 'base64').toString('utf8');
  return { password: read('password'), passwordHash: read('passwordHash') };
}

test('an admin password of 20 unambiguous characters is generated if a user refers to the admin Secret, and is not logged', async () => {
  const lines = await ensure(other, admin);
  const { password, passwordHash } = stored();
  expect(password).toMatch(/^[A-HJ-NP-Za-km-np-z2-9]{20}$/);
  expect(new Set(password).size).toBeGreaterThan(5);
  expect(await passwords.verify(passwordHash, password)).toBe(true);
  expect(cluster.get(secrets, 'platform-admin')).toMatchObject({ apiVersion: 'v1', kind: 'Secret', type: 'Opaque' });
  expect(lines).toHaveLength(1);
  expect(lines.join('')).toContain('platform-admin');
  expect(lines.join('')).not.toContain(password);
});

test('every generated admin password is different', async () => {
  await ensure(admin);
  const first = stored().password;
  cluster.delete(secrets, 'platform-admin');
  await ensure(admin);
  expect(stored().password).not.toBe(first);
});

test('an existing admin password is kept', async () => {
  await ensure(admin);
  const before = stored();
  expect(await ensure(admin)).toEqual([]);
  expect(stored()).toEqual(before);
});

test.each([[[]], [[other]], [[{ username: 'inline', passwordHash: `$2b$04$${'a'.repeat(53)}` }]]])(
  'no admin password is generated if no user refers to the admin Secret: %j',
  async (users) => {
    expect(await ensure(...users)).toEqual([]);
    expect(cluster.list(secrets)).toEqual([]);
  },
);
