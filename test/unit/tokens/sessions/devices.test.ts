import { beforeEach, describe, expect, test } from '@jest/globals';
import { KubeError } from '../../../../src/cluster/client/kube-error.ts';
import { settle } from '../../../labs/cluster-fakes.ts';
import {
  failing,
  lab,
  lives,
  login,
  minute,
  path,
  silent,
  stored,
  tokens,
  type Lab,
  type Replica,
} from '../../../labs/sessions.ts';

let made: Lab;
let replica: Replica;
beforeEach(async () => {
  // Nothing that has expired is swept.
  made = lab(lives, silent, () => false);
  replica = await made.replica();
});

const holder = { userName: 'alice', userUID: 'uid-alice', credentialID: 'c1' };
let count = 0;
const newDevice = (sourceIP = '192.0.2.1', userCode = `CODE-${(count += 1)}`): Promise<string | undefined> =>
  replica.sessions.devices.create(
    { clientID: 'platform-cli' },
    { userCode, sourceIP, life: minute, refreshable: true },
  );

async function fill(number: number, addressOf: (index: number) => string): Promise<void> {
  await Promise.all(Array.from({ length: number }, (_, index) => newDevice(addressOf(index))));
  await settle();
}

const tooMany = { code: 429, reason: 'TooManyRequests', headers: { 'Retry-After': '6' } };

describe('devices that wait', () => {
  test('are at most 20 of one address', async () => {
    await fill(20, () => '192.0.2.1');
    await expect(newDevice()).rejects.toMatchObject({ ...tooMany, message: expect.stringContaining('address') });
    expect(await newDevice('192.0.2.2')).toBeDefined();
    expect(stored(made.cluster)).toHaveLength(21);
  });

  test('are at most 20 of one IPv6 host and 40 of its network', async () => {
    await fill(20, () => '2001:db8:0:1::1');
    await expect(newDevice('2001:db8:0:1::2')).rejects.toMatchObject(tooMany);
    await fill(20, (index) => `2001:db8:0:${(index + 2).toString(16)}::1`);
    await expect(newDevice('2001:db8:0:ff::1')).rejects.toMatchObject({
      ...tooMany,
      message: expect.stringContaining('network'),
    });
    expect(await newDevice('2001:db8:1:1::1')).toBeDefined();
  });

  test('are at most 1,000 in total', async () => {
    const addresses = Array.from({ length: 1_100 }, (_, index) => `10.0.${index >> 8}.${index % 256}`);
    await Promise.allSettled(addresses.map((address) => newDevice(address)));
    await settle();
    await expect(newDevice('198.51.100.1')).rejects.toMatchObject(tooMany);
    expect(stored(made.cluster)).toHaveLength(1_000);
  });

  test('are no more when they are asked for at once', async () => {
    const all = await Promise.allSettled(Array.from({ length: 30 }, () => newDevice()));
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(20);
    expect(stored(made.cluster)).toHaveLength(20);
  });

  test.each<[string, () => Promise<void>]>([
    ['expire', () => made.clock.advance(minute)],
    [
      'are approved',
      async () => {
        const authenticatedAt = new Date(made.clock.now()).toISOString();
        for (const session of stored(made.cluster))
          await replica.sessions.devices.letIn(session, { ...holder, authenticatedAt, login: 'x' });
      },
    ],
    [
      'are refused',
      async () => {
        for (const { metadata } of stored(made.cluster)) await replica.sessions.revoke(metadata.name);
      },
    ],
  ])('make room for others when they %s', async (_, end) => {
    await fill(20, () => '192.0.2.1');
    await end();
    await settle();
    expect(await newDevice()).toBeDefined();
  });

  test('do not count when they could not be written', async () => {
    replica.client.before = failing('POST');
    for (let index = 0; index < 30; index += 1) await expect(newDevice()).rejects.toMatchObject({ code: 503 });
    replica.client.before = () => undefined;
    expect(await newDevice()).toBeDefined();
  });

  test('have user codes of their own: one that is in use gives no device code, on any replica', async () => {
    const other = await made.replica();
    expect(await newDevice('192.0.2.1', 'SAME')).toBeDefined();
    replica = other;
    expect(await newDevice('192.0.2.2', 'SAME')).toBeUndefined();
    expect(stored(made.cluster)).toHaveLength(1);
  });

  test('are 503 when the cluster refuses them for another reason', async () => {
    replica.client.before = failing('POST', new KubeError(403, { message: 'no' }));
    await expect(newDevice()).rejects.toMatchObject({ code: 503 });
  });

  test('have no user, and the address that asked', async () => {
    await newDevice('192.0.2.7');
    expect(stored(made.cluster)).toMatchObject([
      { spec: { userName: '', userUID: '', clientID: 'platform-cli', code: { sourceIP: '192.0.2.7' } } },
    ]);
  });
});

describe('a user code', () => {
  test('names the device that waits, and no other session', async () => {
    await newDevice('192.0.2.1', 'SAME');
    expect(await replica.sessions.devices.waitingFor('SAME')).toMatchObject({ spec: { clientID: 'platform-cli' } });
    expect(await replica.sessions.devices.waitingFor('OTHER')).toBeUndefined();
    const session = { ...login, code: { redirectURI: 'https://a.example' } };
    await replica.sessions.codes.create(session, minute, true, tokens.nameOf('BROWSER'));
    expect(await replica.sessions.devices.waitingFor('BROWSER')).toBeUndefined();
  });

  test.each<[string, (sid: string) => Promise<void>]>([
    ['expires', () => made.clock.advance(minute)],
    ['is refused', (sid) => replica.sessions.revoke(sid)],
  ])('names nothing when the device %s', async (_, end) => {
    await newDevice('192.0.2.1', 'SAME');
    await end(tokens.nameOf('SAME'));
    expect(await replica.sessions.devices.waitingFor('SAME')).toBeUndefined();
  });
});

/** Approves a new device after `change`; answers whether that was in time. */
const approve = async (change: () => Promise<void> | void): Promise<boolean> => {
  await newDevice('192.0.2.1', 'SAME');
  const waiting = await replica.sessions.devices.waitingFor('SAME');
  if (waiting === undefined) throw new Error('no device waits');
  await change();
  const authenticatedAt = new Date(made.clock.now()).toISOString();
  return await replica.sessions.devices.letIn(waiting, { ...holder, authenticatedAt, login: 'x' });
};

describe('the approval of a device', () => {
  test('keeps what the device asked for', async () => {
    expect(await approve(() => undefined)).toBe(true);
    expect(stored(made.cluster)).toMatchObject([
      {
        status: { phase: 'Pending' },
        spec: { ...holder, clientID: 'platform-cli', code: { sourceIP: '192.0.2.1', login: 'x' } },
      },
    ]);
  });

  test.each<[string, () => Promise<void> | void]>([
    ['the code has expired', () => made.clock.advance(minute)],
    ['the device was refused', () => replica.sessions.revoke(tokens.nameOf('SAME'))],
    ['the session is gone', () => made.cluster.delete(path, tokens.nameOf('SAME'))],
  ])('is too late when %s', async (_, change) => {
    expect(await approve(change)).toBe(false);
  });

  test('is for devices only: a session without a code cannot be taken over', async () => {
    const { session } = await replica.sessions.create(login);
    const bob = { ...holder, userName: 'bob', userUID: 'uid-bob', authenticatedAt: session.spec.createdAt, login: 'x' };
    expect(await replica.sessions.devices.letIn(session, bob)).toBe(false);
    const pending = { ...session, status: { phase: 'Pending' } } as const;
    expect(await replica.sessions.devices.letIn(pending, bob)).toBe(false);
    expect(stored(made.cluster)).toMatchObject([{ spec: login }]);
  });
});
