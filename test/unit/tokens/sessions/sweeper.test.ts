import { describe, expect, test } from '@jest/globals';
import { newSessionID } from '../../../../src/tokens/refresh-tokens.ts';
import { Lifetimes } from '../../../../src/tokens/sessions/lifetimes.ts';
import type { SessionStore } from '../../../../src/tokens/sessions/session-store.ts';
import { Sweeper } from '../../../../src/tokens/sessions/sweeper.ts';
import { KubeError, unreachable } from '../../../../src/cluster/client/kube-error.ts';
import { FakeClock, settle } from '../../../labs/cluster-fakes.ts';
import {
  failing,
  granted,
  lab,
  lifetimes,
  login,
  minute,
  namesIn,
  path,
  second,
  silent,
  stored,
} from '../../../labs/sessions.ts';

describe('the session sweep', () => {
  test('the session sweep deletes only expired and revoked sessions', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions } = await replica();
    const kept = await sessions.create(login);
    const revoked = await sessions.create(login);
    await sessions.revoke(revoked.session.metadata.name);
    await clock.advance(2 * minute);
    expect(namesIn(cluster)).toEqual([kept.session.metadata.name]);
    await clock.advance(lifetimes.refreshTokenIdle + 2 * minute);
    expect(stored(cluster)).toEqual([]);
  });

  test('only the replica that holds the Lease runs the session sweep', async () => {
    let isOurs = false;
    const { cluster, clock, replica } = lab(lifetimes, silent, () => isOurs);
    const { sessions } = await replica();
    const { session } = await sessions.create(login);
    await sessions.revoke(session.metadata.name);
    await clock.advance(10 * minute);
    expect(namesIn(cluster)).toEqual([session.metadata.name]);
    isOurs = true;
    await clock.advance(2 * minute);
    expect(namesIn(cluster)).toEqual([]);
  });

  test('the session sweep deletes all expired and revoked sessions in one run, however many there are', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions } = await replica();
    const { session } = await sessions.create(login);
    for (let index = 0; index < 1_000; index += 1)
      cluster.put(path, { ...session, metadata: { name: newSessionID() }, status: { phase: 'Revoked' } });
    await clock.advance(minute);
    while (stored(cluster).length > 1) await settle();
    expect(namesIn(cluster)).toEqual([session.metadata.name]);
  });

  test('the session sweep lets other tasks run while it checks many sessions', async () => {
    const clock = new FakeClock();
    const tasks: string[] = [];
    const store = {
      allWatched: () => Array.from({ length: 5 }, () => ({ metadata: { name: newSessionID() } })),
      watched() {
        tasks.push('check');
        // Longer than a slice.
        const end = performance.now() + 3;
        while (performance.now() < end);
      },
    };
    const sweeper = new Sweeper({
      store: store as unknown as SessionStore,
      lifetimes: new Lifetimes(() => lifetimes, clock),
      maySweep: () => true,
      isDismissed: () => false,
      clock,
      log: silent,
    });
    sweeper.start();
    const other = (): void => {
      tasks.push('other');
      if (tasks.filter((task) => task === 'check').length < 5) setImmediate(other);
    };
    setImmediate(other);
    await clock.advance(minute);
    while (tasks.filter((task) => task === 'check').length < 5) await settle();
    sweeper.stop();
    expect(tasks.slice(tasks.indexOf('check'), tasks.lastIndexOf('check'))).toContain('other');
  });

  test('the session sweep is aborted when the cluster rejects consecutive deletions', async () => {
    const { cluster, clock, replica } = lab();
    const { client } = await replica();
    for (let index = 0; index < 1_000; index += 1)
      cluster.put(path, { metadata: { name: newSessionID() }, spec: login, status: { phase: 'Revoked' } });
    let attempts = 0;
    client.before = ({ method }) => {
      if (method !== 'DELETE') return;
      attempts += 1;
      throw unreachable(new Error('reset'));
    };
    await clock.advance(minute);
    expect(attempts).toBeGreaterThan(1);
    expect(attempts).toBeLessThan(100);
  });

  test('the session sweep continues after a session that cannot be deleted or read', async () => {
    const { cluster, clock, replica } = lab();
    const { sessions, client } = await replica();
    // kube-apiserver can send objects of any shape. jest fails a test that leaves a rejected promise unhandled.
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

  test('the session sweep does not delete a session that another replica has refreshed in the meantime', async () => {
    const { cluster, clock, replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const { refreshToken } = await one.sessions.create(login);
    await clock.advance(lifetimes.refreshTokenIdle - second);
    two.client.holdWatches();
    await granted(one.sessions, refreshToken);
    await clock.advance(9 * second);
    expect(stored(cluster)).toHaveLength(1);
    await clock.advance(2 * minute);
    expect(stored(cluster).map(({ status }) => status.phase)).toEqual(['Active']);
  });

  test('the session sweep keeps a session that was refreshed just before its deletion', async () => {
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
    const deletions = (): number => client.requestsTo('DELETE', name).length;
    await clock.advance(lifetimes.refreshTokenIdle);
    for (let elapsed = 0; deletions() === 0 && elapsed < 2 * minute; elapsed += second) await clock.advance(second);
    expect(deletions()).toBe(1);
    expect(sessions.ofUser(login.userUID).map(({ metadata }) => metadata.name)).toEqual([name]);
  });

  test('the session sweep continues after a failure, and throws no error', async () => {
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
