import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { passwordSecretOf, passwordSecretType, Users } from '../../../../src/accounts/directory/users.ts';
import { usersPath } from '../../../../src/config/names.ts';
import { createLogger } from '../../../../src/runtime/logger.ts';
import { MemoryCluster, type MemoryClient } from '../../../fakes/cluster.ts';
import { FakeClock, settle } from '../../../labs/cluster-fakes.ts';

const namespace = 'platform-system';
const secretsPath = `/api/v1/namespaces/${namespace}/secrets`;

let clock: FakeClock;
let cluster: MemoryCluster;
let client: MemoryClient;
let changed: string[];
let users: Users;
beforeEach(() => {
  clock = new FakeClock();
  cluster = new MemoryCluster(clock);
  client = cluster.client();
  changed = [];
  users = new Users({
    client,
    namespace,
    log: createLogger({ silent: true }),
    clock,
  });
  users.changed.subscribe((username) => changed.push(username));
});
afterEach(() => users.stop());

async function start(): Promise<void> {
  users.start();
  await settle();
}

function putUser(name: string): string {
  cluster.put(usersPath, { metadata: { name } });
  return cluster.get(usersPath, name)?.metadata.uid ?? '';
}

function putPassword(uid: string, hash: string): void {
  const { name, key } = passwordSecretOf(uid);
  const data = { [key]: Buffer.from(hash).toString('base64') };
  cluster.put(secretsPath, { metadata: { name }, type: passwordSecretType, data });
}

describe('a change is reported', () => {
  test('changes of a User and of its password Secret are reported', async () => {
    await start();
    const uid = putUser('bob');
    await settle();
    putPassword(uid, 'hash');
    await settle();
    expect(changed).toEqual(['bob', 'bob']);
    expect(users.passwordValue(uid)).toBe('hash');
  });

  test('changes of a Secret whose User is deleted or never existed are not reported', async () => {
    await start();
    const uid = putUser('bob');
    await settle();
    cluster.delete(usersPath, 'bob');
    await settle();
    expect(changed).toEqual(['bob', 'bob']);
    for (const owner of [uid, 'unknown']) putPassword(owner, 'hash');
    await settle();
    expect(changed).toHaveLength(2);
  });
});

describe.each([
  ['Users', usersPath],
  ['Secrets', secretsPath],
])('while the watch of the %s gets no response', (_, held) => {
  const hold = (): void => {
    client.before = async ({ path }) => {
      if (path === held) await new Promise(() => undefined);
    };
  };

  test('no User is known or considered current at startup', async () => {
    hold();
    await start();
    expect([users.problem(), users.isCurrent()]).toEqual(['not read yet', false]);
  });

  test('known Users are considered current for fifteen seconds after startup', async () => {
    await start();
    expect([users.problem(), users.isCurrent()]).toEqual(['', true]);
    hold();
    await clock.advance(15_000);
    expect(users.isCurrent()).toBe(true);
    await clock.advance(10_000);
    expect([users.problem(), users.isCurrent()]).toEqual(['', false]);
  });
});

test('Users are considered current while the watches get responses', async () => {
  await start();
  await clock.advance(60_000);
  expect(users.isCurrent()).toBe(true);
});

test('all watches of Users and Secrets end when the server stops', async () => {
  await start();
  users.stop();
  await settle();
  expect(clock.pending()).toEqual([]);
  putUser('bob');
  await settle();
  expect(changed).toEqual([]);
});
