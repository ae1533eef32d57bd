import { describe, expect, test } from '@jest/globals';
import { newSessionID } from '../../../../src/accounts/refresh-tokens.ts';
import { settle } from '../../kube/fakes.ts';
import { always, granted, lab, lives, login, minute, path, stored } from './lab.ts';

describe('a session ends', () => {
  test.each([
    ['when it was not refreshed for the idle life', lives.refreshTokenIdle - 1],
    ['at its greatest age, however often it is refreshed', lives.sessionMaxAge - 1],
  ])('%s, and not a millisecond before', async (_what, life) => {
    const { clock, replica } = lab();
    const { sessions } = await replica();
    const { session, refreshToken } = await sessions.create(login);
    let token = refreshToken;
    let left = life;
    for (; left >= lives.refreshTokenIdle; left -= 20 * minute) {
      await clock.advance(20 * minute);
      token = await granted(sessions, token);
    }
    await clock.advance(left);
    expect(await sessions.active(session.metadata.name)).toBeDefined();
    await clock.advance(1);
    expect(await sessions.active(session.metadata.name)).toBeUndefined();
    expect(['ended', 'unknown']).toContain(await sessions.rotation.refresh(token, always));
  });

  test('by revocation: when that has returned it is over here, and elsewhere when the watch tells', async () => {
    const { replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const { session, refreshToken } = await one.sessions.create(login);
    await settle();
    await one.sessions.revoke(session.metadata.name);
    expect(await one.sessions.active(session.metadata.name)).toBeUndefined();
    await settle();
    expect(await two.sessions.active(session.metadata.name)).toBeUndefined();
    expect(await two.sessions.rotation.refresh(refreshToken, always)).toBe('ended');
    expect([one.ended, two.ended]).toEqual([[session.metadata.name], [session.metadata.name]]);
    await one.sessions.revoke(session.metadata.name);
    await one.sessions.revoke(newSessionID());
  });

  test('by revocation although others change it at the same time', async () => {
    const { cluster, replica } = lab();
    const { sessions, client } = await replica();
    const { session } = await sessions.create(login);
    let conflicts = 3;
    client.before = ({ method }) => {
      const current = cluster.get(path, session.metadata.name);
      if (method === 'PUT' && current !== undefined && conflicts-- > 0) cluster.put(path, current);
    };
    await sessions.revoke(session.metadata.name);
    expect(stored(cluster).map(({ status }) => status)).toEqual([{ phase: 'Revoked' }]);
  });

  test.each(['deleted', 'revoked and deleted'])('when its object was %s, also where it had just begun', async (how) => {
    const { cluster, replica } = lab();
    const { sessions, ended } = await replica();
    const { session, refreshToken } = await sessions.create(login);
    const { name } = session.metadata;
    if (how !== 'deleted') cluster.put(path, { ...session, status: { phase: 'Revoked' } });
    cluster.delete(path, name);
    await settle();
    expect(await sessions.active(name)).toBeUndefined();
    expect(await sessions.rotation.refresh(refreshToken, always)).toBe('unknown');
    expect(ended).toContain(name);
  });

  test('when its object was deleted before the answer to our own write arrived', async () => {
    const { cluster, replica } = lab();
    const { sessions, client } = await replica();
    const { session, refreshToken } = await sessions.create(login);
    client.after = async ({ method }) => {
      if (method !== 'PUT') return;
      cluster.delete(path, session.metadata.name);
      await settle();
    };
    await sessions.rotation.refresh(refreshToken, always);
    expect(await sessions.active(session.metadata.name)).toBeUndefined();
  });

  test.each([{ status: {} }, { spec: {} }, { status: { phase: 'Active' }, spec: { ...login, expiresAt: 'never' } }])(
    'when somebody made it unreadable: %j',
    async (damage) => {
      const { cluster, clock, replica } = lab();
      const { sessions } = await replica();
      const { session } = await sessions.create(login);
      cluster.put(path, { ...session, ...damage });
      await clock.advance(0);
      expect(await sessions.active(session.metadata.name)).toBeUndefined();
      expect(sessions.ofUser(login.userUID)).toEqual([]);
    },
  );
});
