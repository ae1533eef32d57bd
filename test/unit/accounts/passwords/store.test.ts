import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { isChangeable, type Changeable } from '../../../../src/accounts/passwords/store.ts';
import { passwordSecretOf, passwordSecretType } from '../../../../src/accounts/directory/users.ts';
import { parametersOf } from '../../../../src/config/hash-parameters.ts';
import { KubeError, unreachable } from '../../../../src/cluster/client/kube-error.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { namespace, rightPassword, startAccounts, type Accounts } from '../../../labs/accounts.ts';
import { settle } from '../../../labs/cluster-fakes.ts';

const secrets = `/api/v1/namespaces/${namespace}/secrets`;
const preferred = 'argon2id:19456:2:1';

let accounts: Accounts;
let warnings: () => unknown[];
beforeEach(async () => {
  const { log, lines } = logOfLines();
  const users = [
    { username: 'alice', passwordHash: undefined, passwordRef: { name: 'alice', key: 'hash' } },
    { username: 'admin', passwordHash: undefined, passwordRef: { name: 'platform-admin', key: 'passwordHash' } },
  ];
  accounts = await startAccounts({ authentication: { users }, log });
  const atStart = lines().length;
  warnings = () =>
    lines()
      .slice(atStart)
      .map((line) => JSON.parse(line) as { readonly level: string })
      .filter(({ level }) => level !== 'info');
});
afterEach(() => accounts.stop());

function changeable(username: string): Changeable {
  const account = accounts.directory.account(username);
  if (account === undefined || !isChangeable(account)) throw new Error(`${username} cannot be changed`);
  return account;
}

type Values = Readonly<Record<string, string>>;

function putSecret(name: string, values: Values): Promise<void> {
  const data = Object.entries(values).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
  accounts.cluster.put(secrets, { metadata: { name }, type: 'Opaque', data: Object.fromEntries(data) as Values });
  return settle();
}

function valuesOf(name: string): Values {
  const data = (accounts.cluster.get(secrets, name)?.['data'] ?? {}) as Values;
  return Object.fromEntries(
    Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString('utf8')]),
  );
}

const logIn = (username: string, password: string): Promise<boolean> =>
  accounts.passwords.verify(accounts.directory.account(username)?.passwordHash, password);
const hashOf = (username: string): string => accounts.directory.account(username)?.passwordHash ?? '';
const requiresChange = (username: string): unknown => accounts.users.get(username)?.spec?.passwordChangeRequired;
/** Makes requests of this method for Secrets fail. */
const failing = (method: string, failure: Error): void => {
  accounts.client.before = (request) => {
    if (request.method === method && request.path.startsWith(secrets)) throw failure;
  };
};

describe('a new password', () => {
  test('a new password of a User replaces the old password, and this replica accepts the new password when the call returns', async () => {
    const uid = await accounts.putUser('bob');
    await accounts.passwordStore.change(changeable('bob'), 'new password', false);
    expect(await logIn('bob', 'new password')).toBe(true);
    expect(await logIn('bob', rightPassword)).toBe(false);
    expect(parametersOf(valuesOf(passwordSecretOf(uid).name)['passwordHash'] ?? '')).toBe(preferred);
  });

  test('a new password of a User without an earlier password is stored in a Secret that only the User owns', async () => {
    const uid = await accounts.putUser('bob', {}, false);
    await accounts.passwordStore.change(changeable('bob'), 'new password', true);
    expect(await logIn('bob', 'new password')).toBe(true);
    const { name } = passwordSecretOf(uid);
    expect(accounts.cluster.get(secrets, name)).toMatchObject({
      type: passwordSecretType,
      metadata: { ownerReferences: [{ apiVersion: 'iam.platform.io/v1alpha2', kind: 'User', name: 'bob', uid }] },
    });
    expect(Object.keys(valuesOf(name))).toEqual(['passwordHash']);
  });

  test('a new password of a configured user without an earlier password is stored in an Opaque Secret without an owner', async () => {
    await accounts.passwordStore.change(changeable('alice'), 'new password', false);
    expect(await logIn('alice', 'new password')).toBe(true);
    const secret = accounts.cluster.get(secrets, 'alice');
    expect(secret).toMatchObject({ apiVersion: 'v1', kind: 'Secret', type: 'Opaque' });
    expect(secret?.metadata.ownerReferences).toBeUndefined();
    expect(Object.keys(valuesOf('alice'))).toEqual(['hash']);
  });

  test('a new password of a configured user keeps the other keys of the Secret, but not the record of an earlier hash', async () => {
    await putSecret('alice', { hash: accounts.hashes.of('old', 'bcrypt:4'), 'hash.rehashed': 'a b', other: 'kept' });
    await accounts.passwordStore.change(changeable('alice'), 'new password', false);
    expect(Object.keys(valuesOf('alice')).toSorted()).toEqual(['hash', 'other']);
    expect(valuesOf('alice')).toMatchObject({ other: 'kept' });
  });

  test('a new password is marked with the time when the user chose it, but not when an administrator set it', async () => {
    await accounts.passwordStore.change(changeable('alice'), 'new password', false);
    expect(Object.keys(valuesOf('alice'))).toEqual(['hash']);
    await accounts.passwordStore.change(changeable('alice'), 'another password', true);
    expect(Date.parse(valuesOf('alice')['hash.changed'] ?? '')).toBe(accounts.clock.now());
  });

  test('a new password of the first administrator removes the generated password in plain text', async () => {
    await putSecret('platform-admin', {
      password: 'generated',
      passwordHash: accounts.hashes.of('generated', preferred),
    });
    await accounts.passwordStore.change(changeable('admin'), 'new password', true);
    expect(Object.keys(valuesOf('platform-admin')).toSorted()).toEqual(['passwordHash', 'passwordHash.changed']);
  });

  test('a new password of a user other than the first administrator does not change a key named `password`', async () => {
    await putSecret('alice', { password: 'mine', hash: accounts.hashes.of('old', preferred) });
    await accounts.passwordStore.change(changeable('alice'), 'new password', true);
    expect(valuesOf('alice')).toMatchObject({ password: 'mine' });
  });

  test.each([
    ['its user chose it', true, false],
    ['an administrator set it', false, true],
  ])(
    'a new password ends the obligation to change the password only if the user chose it: %s',
    async (_, byUser, stillRequired) => {
      const uid = await accounts.putUser('bob', { passwordChangeRequired: true });
      await accounts.passwordStore.change(changeable('bob'), 'new password', byUser);
      expect(requiresChange('bob')).toBe(stillRequired);
      expect(accounts.directory.account('bob')?.passwordChangeRequired).toBe(stillRequired);
      // The uid prevents a write to another user of the same name.
      for (const { body } of accounts.client.requestsTo('PATCH', '/users/bob'))
        expect(body).toMatchObject({ metadata: { uid } });
    },
  );

  test('a new password causes no write to the User if no password change was due', async () => {
    await accounts.putUser('bob');
    await accounts.passwordStore.change(changeable('bob'), 'new password', true);
    expect(accounts.client.requestsTo('PATCH', '/users/bob')).toEqual([]);
  });

  test('a new password is stored even if another replica creates the Secret at the same time', async () => {
    const { name } = passwordSecretOf(await accounts.putUser('bob', {}, false));
    accounts.client.before = ({ method }) => {
      if (method === 'POST') accounts.cluster.put(secrets, { metadata: { name }, type: passwordSecretType, data: {} });
    };
    await accounts.passwordStore.change(changeable('bob'), 'new password', true);
    expect(await logIn('bob', 'new password')).toBe(true);
  });

  test('a new password is reported as stored only after this replica has read it', async () => {
    await accounts.putUser('bob');
    accounts.client.holdWatches();
    let isDone = false;
    const change = accounts.passwordStore.change(changeable('bob'), 'new password', true).then(() => (isDone = true));
    await settle();
    expect(isDone).toBe(false);
    accounts.client.releaseWatches();
    await change;
    expect(await logIn('bob', 'new password')).toBe(true);
  });
});

describe('a password write that fails', () => {
  test.each([
    ['no response', unreachable(new Error('reset'))],
    ['a timeout', new KubeError(504, {})],
    ['an internal error', new KubeError(500, {})],
  ])(
    'a password write gets 503 after %s, and the error reports that the write may have taken effect',
    async (_, failure) => {
      await accounts.putUser('bob');
      failing('PATCH', failure);
      await expect(accounts.passwordStore.change(changeable('bob'), 'x', true)).rejects.toMatchObject({
        code: 503,
        message: expect.stringContaining('may be active now'),
        cause: failure,
      });
    },
  );

  test.each(['PATCH', 'POST'])(
    'a password write fails with the status of kube-apiserver if kube-apiserver rejects the %s',
    async (method) => {
      await accounts.putUser('bob', {}, false);
      const failure = new KubeError(403, { message: 'no' });
      failing(method, failure);
      await expect(accounts.passwordStore.change(changeable('bob'), 'x', true)).rejects.toBe(failure);
    },
  );

  test('a password write rethrows an error that does not come from the cluster', async () => {
    await accounts.putUser('bob');
    const failure = new Error('a bug');
    failing('PATCH', failure);
    await expect(accounts.passwordStore.change(changeable('bob'), 'x', true)).rejects.toBe(failure);
  });
});

describe('unlocking a user', () => {
  test.each([
    ['a User', 'bob', passwordSecretType],
    ['a configured user', 'alice', 'Opaque'],
  ])('unlocking %s resets the failed logins, even without a password', async (_, username, type) => {
    await accounts.putUser('bob', {}, false);
    const before = changeable(username);
    const attempt = { guesses: 'password', username, address: '192.0.2.1', client: 'platform' } as const;
    for (let time = 0; time < 10; time += 1) accounts.limiter.failed(attempt);
    await accounts.passwordStore.unlock(before);
    const { name } = before.passwordRef === 'owned' ? passwordSecretOf(before.uid) : before.passwordRef;
    expect(accounts.cluster.get(secrets, name)).toMatchObject({ type });
    expect(accounts.directory.account(username)?.unlocked).toEqual(expect.any(String));
    const first = accounts.directory.account(username)?.unlocked;
    await accounts.passwordStore.unlock(changeable(username));
    expect(accounts.directory.account(username)?.unlocked).not.toBe(first);
    expect(accounts.limiter.retryAfter(attempt)).toBe(0);
  });

  test('unlocking a User without a password creates a Secret that only the User owns', async () => {
    const uid = await accounts.putUser('bob', {}, false);
    await accounts.passwordStore.unlock(changeable('bob'));
    expect(accounts.cluster.get(secrets, passwordSecretOf(uid).name)).toMatchObject({
      metadata: { ownerReferences: [{ kind: 'User', name: 'bob', uid }] },
    });
  });

  test('unlocking a user keeps the password', async () => {
    await accounts.putUser('bob');
    await accounts.passwordStore.unlock(changeable('bob'));
    expect(await logIn('bob', rightPassword)).toBe(true);
  });

  test('unlocking a user returns after this replica has reset the failures', async () => {
    await accounts.putUser('bob');
    accounts.client.holdWatches();
    let isDone = false;
    const unlock = accounts.passwordStore.unlock(changeable('bob')).then(() => (isDone = true));
    await settle();
    expect(isDone).toBe(false);
    accounts.client.releaseWatches();
    await unlock;
    expect(accounts.directory.account('bob')?.unlocked).toBeDefined();
  });
});

describe('a login with the right password', () => {
  const long = 'x'.repeat(73);
  test.each([
    ['bcrypt', 'bcrypt:12', rightPassword],
    ['bcrypt of a password with 72 bytes', 'bcrypt:12', 'é'.repeat(36)],
    ['argon2id with less memory', 'argon2id:8192:2:1', rightPassword],
    ['argon2id of a long password with fewer passes', 'argon2id:19456:1:1', long],
  ])(
    "a login with the right password replaces a weaker hash (%s) and keeps the user's sessions",
    async (_, parameters, password) => {
      await putSecret('alice', { hash: accounts.hashes.of(password, parameters), other: 'kept' });
      const before = changeable('alice');
      await accounts.passwordStore.refresh(before, password);
      await settle();
      expect(parametersOf(hashOf('alice'))).toBe(preferred);
      expect(await logIn('alice', password)).toBe(true);
      expect(accounts.directory.account('alice')?.credentialID).toBe(before.credentialID);
      expect(valuesOf('alice')).toMatchObject({ other: 'kept' });
    },
  );

  test.each([
    ['is as strong as new hashes', preferred, rightPassword],
    ['is stronger', 'argon2id:65536:3:4', rightPassword],
    ['is a bcrypt hash of a password with more than the 72 bytes that bcrypt reads', 'bcrypt:12', long],
    ['is a bcrypt hash of a password with at most 72 characters but more than 72 bytes', 'bcrypt:12', 'é'.repeat(37)],
  ])('a login with the right password keeps a hash that %s', async (_, parameters, password) => {
    await putSecret('alice', { hash: accounts.hashes.of(password, parameters) });
    const before = hashOf('alice');
    accounts.hashes.hashed.length = 0;
    await accounts.passwordStore.refresh(changeable('alice'), password);
    await settle();
    expect(hashOf('alice')).toBe(before);
    expect(accounts.hashes.hashed).toEqual([]);
  });

  test('a login with the right password creates no hash if none is stored', async () => {
    await accounts.passwordStore.refresh(changeable('alice'), rightPassword);
    await settle();
    expect(accounts.cluster.get(secrets, 'alice')).toBeUndefined();
    expect(warnings()).toEqual([]);
  });

  test('a login with the right password keeps the hash of a user in the configuration', async () => {
    accounts.configure({ users: [{ username: 'carol' }] });
    const carol = accounts.directory.account('carol');
    if (carol === undefined) throw new Error('there is no carol');
    await accounts.passwordStore.refresh(carol, rightPassword);
    expect(accounts.client.requestsTo('PATCH', '')).toEqual([]);
    expect(warnings()).toEqual([]);
  });

  test.each([
    ['was changed before the hash was read', 'GET'],
    ['is changed while the new hash is written', 'PATCH'],
  ])('a login with the right password never restores an old password if the password %s', async (_, at) => {
    await putSecret('alice', { hash: accounts.hashes.of(rightPassword, 'bcrypt:12') });
    const other = accounts.hashes.of('another', 'bcrypt:12');
    accounts.client.before = async ({ method, path }) => {
      if (method === at && path === `${secrets}/alice`) await putSecret('alice', { hash: other });
    };
    await accounts.passwordStore.refresh(changeable('alice'), rightPassword);
    await settle();
    expect(hashOf('alice')).toBe(other);
    expect(warnings()).toEqual([]);
  });

  test('a login with the right password succeeds and logs a warning if the hash cannot be replaced', async () => {
    await putSecret('alice', { hash: accounts.hashes.of(rightPassword, 'bcrypt:12') });
    failing('PATCH', new KubeError(403, { message: 'no' }));
    await accounts.passwordStore.refresh(changeable('alice'), rightPassword);
    expect(warnings()).toMatchObject([{ level: 'warn', user: 'alice' }]);
  });
});
