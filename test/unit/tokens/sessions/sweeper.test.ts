import { describe, expect, test } from '@jest/globals';
import { newSessionID } from '../../../../src/tokens/refresh-tokens.ts';
import { KubeError, unreachable } from '../../../../src/cluster/client/kube-error.ts';
import {
  failing,
  granted,
  lab,
  lives,
  login,
  minute,
  namesIn,
  path,
  second,
  silent,
  stored,
} from '../../../labs/sessions.ts';

describe('a replica', () => {
  test('sweeps what is over and nothing else', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions } = await replica();
    const kept = await sessions.create(login);
    const revoked = await sessions.create(login);
    await sessions.revoke(revoked.session.metadata.name);
    await clock.advance(2 * minute);
    expect(namesIn(cluster)).toEqual([kept.session.metadata.name]);
    await clock.advance(lives.refreshTokenIdle + 2 * minute);
    expect(stored(cluster)).toEqual([]);
  });

  test('is swept by the replica whose turn it is, and by no other', async () => {
    let isOurs = false;
    const { cluster, clock, replica } = lab(lives, silent, () => isOurs);
    const { sessions } = await replica();
    const { session } = await sessions.create(login);
    await sessions.revoke(session.metadata.name);
    await clock.advance(10 * minute);
    expect(namesIn(cluster)).toEqual([session.metadata.name]);
    isOurs = true;
    await clock.advance(2 * minute);
    expect(namesIn(cluster)).toEqual([]);
  });

  test('sweeps all that is over in one go, however much it is', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions } = await replica();
    const { session } = await sessions.create(login);
    for (let index = 0; index < 1_000; index += 1)
      cluster.put(path, { ...session, metadata: { name: newSessionID() }, status: { phase: 'Revoked' } });
    await clock.advance(minute);
    expect(namesIn(cluster)).toEqual([session.metadata.name]);
  });

  test('gives a sweep up when the cluster refuses one deletion after the other', async () => {
    const { cluster, clock, replica } = lab();
    const { client } = await replica();
    for (let index = 0; index < 1_000; index += 1)
      cluster.put(path, { metadata: { name: newSessionID() }, spec: login, status: { phase: 'Revoked' } });
    let asked = 0;
    client.before = ({ method }) => {
      if (method !== 'DELETE') return;
      asked += 1;
      throw unreachable(new Error('reset'));
    };
    await clock.advance(minute);
    expect(asked).toBeGreaterThan(1);
    expect(asked).toBeLessThan(100);
  });

  test('does not let one session that cannot be deleted or read keep the others', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions, client } = await replica();
    // What the cluster sends may have any shape; jest fails a test that leaves a rejection unhandled.
    cluster.put(path, { metadata: { name: newSessionID() } });
    const { session: stuck } = await sessions.create(login);
    const { session } = await sessions.create(login);
    for (const one of [stuck, session]) await sessions.revoke(one.metadata.name);
    client.before = (request) => {
      if (request.method === 'DELETE' && request.path.endsWith(stuck.metadata.name))
        throw new KubeError(403, { message: 'a webhook forbids it' });
    };
    await clock.advance(minute);
    expect(namesIn(cluster)).not.toContain(session.metadata.name);
    expect(stored(cluster)).toHaveLength(2);
  });

  test('does not sweep a session that another has refreshed meanwhile', async () => {
    const { cluster, clock, replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const { refreshToken } = await one.sessions.create(login);
    await clock.advance(lives.refreshTokenIdle - second);
    two.client.holdWatches();
    await granted(one.sessions, refreshToken);
    await clock.advance(9 * second);
    expect(stored(cluster)).toHaveLength(1);
    await clock.advance(2 * minute);
    expect(stored(cluster).map(({ status }) => status.phase)).toEqual(['Active']);
  });

  test('still lists a session that was refreshed just before the sweep tried to delete it', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions, client } = await replica();
    const { session } = await sessions.create(login);
    const { name } = session.metadata;
    client.before = ({ method }) => {
      const current = stored(cluster).find(({ metadata }) => metadata.name === name);
      if (method !== 'DELETE' || current === undefined) return;
      const lastUsedAt = new Date(clock.now()).toISOString();
      cluster.put(path, { ...current, status: { ...current.status, lastUsedAt } });
    };
    const deletions = (): number => client.asked('DELETE', name).length;
    await clock.advance(lives.refreshTokenIdle);
    for (let elapsed = 0; deletions() === 0 && elapsed < 2 * minute; elapsed += second) await clock.advance(second);
    expect(deletions()).toBe(1);
    expect(sessions.ofUser(login.userUID).map(({ metadata }) => metadata.name)).toEqual([name]);
  });

  test('goes on sweeping after a failure, and nothing escapes', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions, client } = await replica();
    const { session } = await sessions.create(login);
    await sessions.revoke(session.metadata.name);
    client.before = failing('DELETE');
    await clock.advance(2 * minute);
    expect(stored(cluster)).toHaveLength(1);
    client.before = () => undefined;
    await clock.advance(2 * minute);
    expect(stored(cluster)).toEqual([]);
  });
});
