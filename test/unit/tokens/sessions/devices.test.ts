import { beforeEach, describe, expect, test } from '@jest/globals';
import { KubeError } from '../../../../src/cluster/client/kube-error.ts';
import { settle } from '../../../labs/cluster-fakes.ts';
import {
  failing,
  lab,
  lifetimes,
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
  // In this lab no replica deletes expired sessions.
  made = lab(lifetimes, silent, () => false);
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

describe('pending device authorizations', () => {
  test('pending device authorizations are limited to 20 per address', async () => {
    await fill(20, () => '192.0.2.1');
    await expect(newDevice()).rejects.toMatchObject({ ...tooMany, message: expect.stringContaining('address') });
    expect(await newDevice('192.0.2.2')).toBeDefined();
    expect(stored(made.cluster)).toHaveLength(21);
  });

  test('pending device authorizations are limited to 20 per IPv6 host and 40 per IPv6 network', async () => {
    await fill(20, () => '2001:db8:0:1::1');
    await expect(newDevice('2001:db8:0:1::2')).rejects.toMatchObject(tooMany);
    await fill(20, (index) => `2001:db8:0:${(index + 2).toString(16)}::1`);
    await expect(newDevice('2001:db8:0:ff::1')).rejects.toMatchObject({
      ...tooMany,
      message: expect.stringContaining('network'),
    });
    expect(await newDevice('2001:db8:1:1::1')).toBeDefined();
  });

  test('pending device authorizations are limited to 1,000 in total', async () => {
    const addresses = Array.from({ length: 1_100 }, (_, index) => `10.0.${index >> 8}.${index % 256}`);
    await Promise.allSettled(addresses.map((address) => newDevice(address)));
    await settle();
    await expect(newDevice('198.51.100.1')).rejects.toMatchObject(tooMany);
    expect(stored(made.cluster)).toHaveLength(1_000);
  });

  test('pending device authorizations are limited even with concurrent requests', async () => {
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
          await replica.sessions.devices.approve(session, { ...holder, authenticatedAt, login: 'x' });
      },
    ],
    [
      'are denied',
      async () => {
        for (const { metadata } of stored(made.cluster)) await replica.sessions.revoke(metadata.name);
      },
    ],
  ])('pending device authorizations no longer count towards the limits when they %s', async (_, end) => {
    await fill(20, () => '192.0.2.1');
    await end();
    await settle();
    expect(await newDevice()).toBeDefined();
  });

  test('pending device authorizations are not counted if they could not be written', async () => {
    replica.client.before = failing('POST');
    for (let index = 0; index < 30; index += 1) await expect(newDevice()).rejects.toMatchObject({ code: 503 });
    replica.client.before = () => undefined;
    expect(await newDevice()).toBeDefined();
  });

  test('pending device authorizations have unique user codes on all replicas', async () => {
    const other = await made.replica();
    expect(await newDevice('192.0.2.1', 'SAME')).toBeDefined();
    replica = other;
    expect(await newDevice('192.0.2.2', 'SAME')).toBeUndefined();
    expect(stored(made.cluster)).toHaveLength(1);
  });

  test('a device authorization request gets 503 when the cluster rejects the new object with 403', async () => {
    replica.client.before = failing('POST', new KubeError(403, { message: 'no' }));
    await expect(newDevice()).rejects.toMatchObject({ code: 503 });
  });

  test('pending device authorizations have no user, and contain the address of the request', async () => {
    await newDevice('192.0.2.7');
    expect(stored(made.cluster)).toMatchObject([
      { spec: { userName: '', userUID: '', clientID: 'platform-cli', code: { sourceIP: '192.0.2.7' } } },
    ]);
  });
});

describe('a user code', () => {
  test('a user code identifies only its own pending device authorization', async () => {
    await newDevice('192.0.2.1', 'SAME');
    expect(await replica.sessions.devices.findPending('SAME')).toMatchObject({ spec: { clientID: 'platform-cli' } });
    expect(await replica.sessions.devices.findPending('OTHER')).toBeUndefined();
    const session = { ...login, code: { redirectURI: 'https://a.example' } };
    await replica.sessions.codes.create(session, minute, true, tokens.sessionFor('BROWSER'));
    expect(await replica.sessions.devices.findPending('BROWSER')).toBeUndefined();
  });

  test.each<[string, (sid: string) => Promise<void>]>([
    ['expires', () => made.clock.advance(minute)],
    ['is denied', (sid) => replica.sessions.revoke(sid)],
  ])('a user code identifies no device when the device %s', async (_, end) => {
    await newDevice('192.0.2.1', 'SAME');
    await end(tokens.sessionFor('SAME'));
    expect(await replica.sessions.devices.findPending('SAME')).toBeUndefined();
  });
});

/** Approves a new device after `change`. Returns whether the approval succeeded. */
const approve = async (change: () => Promise<void> | void): Promise<boolean> => {
  await newDevice('192.0.2.1', 'SAME');
  const waiting = await replica.sessions.devices.findPending('SAME');
  if (waiting === undefined) throw new Error('no device waits');
  await change();
  const authenticatedAt = new Date(made.clock.now()).toISOString();
  return await replica.sessions.devices.approve(waiting, { ...holder, authenticatedAt, login: 'x' });
};

describe('the approval of a device', () => {
  test('the approval of a device keeps the requested scope and client', async () => {
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
    ['the device was denied', () => replica.sessions.revoke(tokens.sessionFor('SAME'))],
    ['the session was deleted', () => made.cluster.delete(path, tokens.sessionFor('SAME'))],
  ])('the approval of a device fails when %s', async (_, change) => {
    expect(await approve(change)).toBe(false);
  });

  test('the approval of a device is rejected for a session without a device code, so that no session can be taken over', async () => {
    const { session } = await replica.sessions.create(login);
    const bob = { ...holder, userName: 'bob', userUID: 'uid-bob', authenticatedAt: session.spec.createdAt, login: 'x' };
    expect(await replica.sessions.devices.approve(session, bob)).toBe(false);
    const pending = { ...session, status: { phase: 'Pending' } } as const;
    expect(await replica.sessions.devices.approve(pending, bob)).toBe(false);
    expect(stored(made.cluster)).toMatchObject([{ spec: login }]);
  });
});
