import { beforeEach, describe, expect, test } from '@jest/globals';
import { newSessionID, RefreshTokens } from '../../../../src/tokens/refresh-tokens.ts';
import type { FoundCode, Redeemed, Unredeemed } from '../../../../src/tokens/sessions/codes.ts';
import type { Session } from '../../../../src/tokens/sessions/session.ts';
import { settle } from '../../../labs/cluster-fakes.ts';
import {
  granted,
  lab,
  type Lab,
  lifetimes,
  login,
  minute,
  path,
  redeem,
  refresh,
  type Replica,
  silent,
  stored,
  tokens,
} from '../../../labs/sessions.ts';

const never = (): boolean => false;
const redirectURI = 'https://console.example/callback';
const holder = { userName: 'alice', userUID: 'uid-alice', credentialID: 'c1' };
const device = { userCode: 'BCDF-GHJK', sourceIP: '192.0.2.1', life: minute, refreshable: true };

let made: Lab;
let replica: Replica;
beforeEach(async () => {
  // In this lab no replica deletes expired sessions.
  made = lab(lifetimes, silent, never);
  replica = await made.replica();
});

const reads = (): number => replica.client.requests.filter(({ method }) => method === 'GET').length;
const phases = (): string[] => stored(made.cluster).map(({ status }) => status.phase);
/** Creates an authorization code, by default with a redirect URI. */
const newCode = (code: object = { redirectURI }): Promise<string> =>
  replica.sessions.codes.create({ ...login, code }, minute, true);
const use = (code: string, clientID?: string): Promise<Redeemed | Unredeemed> =>
  redeem(replica.sessions, code, clientID === undefined ? {} : { clientID });

async function newDevice(): Promise<string> {
  const code = await replica.sessions.devices.create({ clientID: login.clientID }, device);
  if (code === undefined) throw new Error('the user code is in use');
  await settle();
  return code;
}

async function waitingDevice(): Promise<Session> {
  const session = await replica.sessions.devices.findPending(device.userCode);
  if (session === undefined) throw new Error('no device waits');
  return session;
}

async function approve(): Promise<boolean> {
  const authenticatedAt = new Date(made.clock.now()).toISOString();
  const { session } = await replica.sessions.create(login);
  return await replica.sessions.devices.approve(await waitingDevice(), {
    ...holder,
    authenticatedAt,
    login: session.metadata.name,
  });
}

describe('an authorization code', () => {
  test('redeeming an authorization code starts an active session with a refresh token', async () => {
    const code = await newCode();
    expect(phases()).toEqual(['Pending']);
    const redeemed = await use(code);
    expect(redeemed).toMatchObject({ session: { status: { phase: 'Active' } }, refreshToken: expect.any(String) });
    expect(replica.sessions.codes.sessionOf(code)).toBe((redeemed as Redeemed).session.metadata.name);
    expect(await granted(replica.sessions, (redeemed as Redeemed).refreshToken ?? '')).toEqual(expect.any(String));
  });

  test('redeeming an authorization code starts a session without a refresh token or an idle timeout if no refresh token is allowed', async () => {
    const code = await replica.sessions.codes.create({ ...login, code: { redirectURI } }, minute, false);
    const redeemed = (await redeem(replica.sessions, code, { isRefreshable: false })) as Redeemed;
    expect(redeemed).not.toHaveProperty('refreshToken');
    expect(redeemed.session.status).not.toHaveProperty('currentHash');
    await made.clock.advance(lifetimes.accessTokenMaxAge - 1);
    expect(await replica.sessions.active(redeemed.session.metadata.name)).toBeDefined();
    await made.clock.advance(1);
    expect(await replica.sessions.active(redeemed.session.metadata.name)).toBeUndefined();
  });

  test.each([
    ['another server', () => new RefreshTokens(Buffer.alloc(32, 8)).first(newSessionID())],
    ['the wrong format', () => 'code'],
  ])('an authorization code of %s is rejected as unknown without a read of the cluster', async (_, code) => {
    const before = reads();
    expect(await use(code())).toBe('unknown');
    expect(replica.sessions.codes.sessionOf(code())).toBeUndefined();
    expect(reads()).toBe(before);
  });

  test('an authorization code whose session does not exist is reported as expired', async () => {
    expect(await use(tokens.first(newSessionID()))).toBe('ended');
  });

  test.each([
    [
      'another token of the same session with a valid HMAC',
      (code: string) => tokens.first(tokens.sessionOf(code) ?? ''),
    ],
    ['the next token derived from the code', (code: string) => tokens.successor(code)],
  ])(
    'a redemption with %s instead of the authorization code is rejected, and the code stays valid',
    async (_, other) => {
      const code = await newCode();
      expect(await use(other(code))).toBe('unknown');
      expect(await use(code)).toMatchObject({ session: {} });
    },
  );

  test('an authorization code is not accepted as a refresh token, and a refresh token is not accepted as a code', async () => {
    const { refreshToken } = await replica.sessions.create(login);
    expect(await use(refreshToken)).toBe('unknown');
    expect(typeof (await refresh(replica.sessions, await newCode()))).toBe('string');
  });

  test('an authorization code is valid until the last millisecond of its lifetime', async () => {
    const [one, other] = [await newCode(), await newCode()];
    await made.clock.advance(minute - 1);
    expect(await use(one)).toMatchObject({ session: {} });
    await made.clock.advance(1);
    expect(await use(other)).toBe('ended');
  });

  test('an authorization code that another client redeems is rejected as unknown, and stays valid', async () => {
    const code = await newCode();
    expect(await use(code, 'another')).toBe('unknown');
    expect(await use(code)).toMatchObject({ session: {} });
  });

  test('an authorization code can be redeemed once, even after several lookups of the code', async () => {
    const code = await newCode();
    const find = () => replica.sessions.codes.find(code, login.clientID, false);
    const [one, other] = (await Promise.all([find(), find()])) as [FoundCode, FoundCode];
    expect(phases()).toEqual(['Pending']);
    expect(await one.use(true)).toMatchObject({ refreshToken: expect.any(String) });
    expect(await other.use(true)).toBe('changed');
    expect(phases()).toEqual(['Active']);
  });

  test('the second use of an authorization code revokes the session that the first use started', async () => {
    const code = await newCode();
    const { session, refreshToken = '' } = (await use(code)) as Redeemed;
    expect(await use(code)).toBe('reused');
    await settle();
    expect(await replica.sessions.active(session.metadata.name)).toBeUndefined();
    expect(typeof (await refresh(replica.sessions, refreshToken))).toBe('string');
  });

  test('the second use of a device code revokes nothing', async () => {
    const code = await newDevice();
    expect(await approve()).toBe(true);
    const { session } = (await use(code)) as Redeemed;
    expect(await use(code)).toBe('reused');
    expect(await replica.sessions.active(session.metadata.name)).toBeDefined();
  });

  test('an authorization code that was revoked is reported as expired', async () => {
    const code = await newCode();
    await replica.sessions.revoke(tokens.sessionOf(code) ?? '');
    expect(await use(code)).toBe('ended');
  });

  test.each<[string, (sid: string) => Promise<void>]>([
    ['is revoked', (sid) => replica.sessions.revoke(sid)],
    ['is deleted', async (sid) => made.cluster.delete(path, sid)],
    ['has expired', () => made.clock.advance(lifetimes.refreshTokenIdle)],
  ])('an authorization code cannot be used once its login %s', async (_, end) => {
    const { session } = await replica.sessions.create(login);
    const { name } = session.metadata;
    const code = await replica.sessions.codes.create(
      { ...login, code: { redirectURI, login: name } },
      60 * minute,
      true,
    );
    await end(name);
    expect(await use(code)).toBe('ended');
  });

  test('redeeming an authorization code of an active login starts a session', async () => {
    const { session } = await replica.sessions.create(login);
    expect(await use(await newCode({ redirectURI, login: session.metadata.name }))).toMatchObject({ session: {} });
  });

  test('an authorization code that two replicas redeem concurrently starts at most one session', async () => {
    const other = await made.replica();
    const code = await newCode();
    const all = await Promise.all([replica, other].map((one) => redeem(one.sessions, code)));
    expect(all.filter((one) => typeof one === 'object')).toHaveLength(1);
    expect(all).toContain('reused');
    expect(phases()).toEqual(['Revoked']);
  });
});

/** Changes all sessions after each of the next reads, as a concurrent replica would do, this many times. */
function disturb(times: number): void {
  let left = times;
  replica.client.after = ({ method, path: at }) => {
    if (method !== 'GET' || !at.startsWith(`${path}/`) || left === 0) return;
    left -= 1;
    for (const session of stored(made.cluster)) made.cluster.put(path, { ...session });
  };
}

describe('an authorization code whose session is changed concurrently', () => {
  test('an authorization code is redeemed at the fifth attempt if its session is changed concurrently four times', async () => {
    const code = await newCode();
    disturb(4);
    expect(await use(code)).toMatchObject({ session: { status: { phase: 'Active' } } });
  });

  test('redeeming an authorization code fails with 503 after five attempts if its session is changed concurrently each time', async () => {
    const code = await newCode();
    disturb(5);
    await expect(use(code)).rejects.toMatchObject({ code: 503 });
  });

  test('the second use of an authorization code revokes its session, even if the session is changed concurrently', async () => {
    const code = await newCode();
    await use(code);
    disturb(1);
    expect(await use(code)).toBe('reused');
    expect(phases()).toEqual(['Revoked']);
  });
});

describe('a device code', () => {
  test('a poll for a pending device code does not read the cluster', async () => {
    const code = await newDevice();
    const before = reads();
    expect(await use(code)).toBe('waiting');
    expect(reads()).toBe(before);
  });

  test('a poll for a device code by the wrong client is rejected as unknown', async () => {
    expect(await use(await newDevice(), 'another')).toBe('unknown');
  });

  test('a poll for a device code reads the cluster once while the watch sends nothing', async () => {
    const code = await replica.sessions.devices.create({ clientID: login.clientID }, { ...device, life: 60 * minute });
    await settle();
    replica.client.holdWatches();
    await made.clock.advance(16_000);
    const before = reads();
    expect(await use(code ?? '')).toBe('waiting');
    expect(reads()).toBe(before + 1);
  });

  test('a device code that has expired is reported as expired', async () => {
    const code = await newDevice();
    await made.clock.advance(minute);
    expect(await use(code)).toBe('ended');
  });

  test('a device code that was denied is reported as denied', async () => {
    const code = await newDevice();
    await replica.sessions.revoke((await waitingDevice()).metadata.name);
    await settle();
    expect(await use(code)).toBe('refused');
  });

  test('a device code that was approved and then revoked is not reported as denied', async () => {
    const code = await newDevice();
    await approve();
    await replica.sessions.revoke(tokens.sessionOf(code) ?? '');
    expect(await use(code)).toBe('ended');
  });

  test('redeeming a device code starts a session for the user who approved the device', async () => {
    const code = await newDevice();
    expect(await approve()).toBe(true);
    await settle();
    const { session } = (await use(code)) as Redeemed;
    expect(session.spec).toMatchObject({ ...holder, clientID: login.clientID });
    expect(replica.sessions.ofUser(login.userUID).map(({ metadata }) => metadata.name)).toContain(
      session.metadata.name,
    );
  });
});
