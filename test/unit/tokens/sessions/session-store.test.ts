import { describe, expect, test } from '@jest/globals';
import { KubeError } from '../../../../src/cluster/client/kube-error.ts';
import { newSessionID } from '../../../../src/tokens/refresh-tokens.ts';
import { settle } from '../../../labs/cluster-fakes.ts';
import { lab, login, minute, path, second } from '../../../labs/sessions.ts';

describe('the session store of a replica', () => {
  // evidence: session-watch-silent
  test('the session store of a replica whose watch sends nothing for 15 s returns 503, even if the cluster responds to other requests', async () => {
    const { clock, replica } = lab();
    const { sessions, client } = await replica();
    const { session } = await sessions.create(login);
    await settle();
    client.holdWatches();
    await clock.advance(15 * second);
    expect(await sessions.active(session.metadata.name)).toBeDefined();
    await clock.advance(1);
    await expect(sessions.active(session.metadata.name)).rejects.toMatchObject({ code: 503 });
    await expect(sessions.active(newSessionID())).rejects.toMatchObject({ code: 503 });
    client.releaseWatches();
    await clock.advance(30 * second);
    expect(await sessions.active(session.metadata.name)).toBeDefined();
  });

  test('the session store of a replica stays available if no session changes while its watch is open', async () => {
    const { clock, replica } = lab();
    const { sessions } = await replica();
    const { session } = await sessions.create(login);
    for (let elapsed = 0; elapsed < 3 * minute; elapsed += second) {
      await clock.advance(second);
      expect(await sessions.active(session.metadata.name)).toBeDefined();
    }
  });

  test('the session store of a replica returns 503 until the replica has read the sessions once', async () => {
    const { replica } = lab();
    const { sessions: other } = await replica();
    const { session } = await other.create(login);
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { sessions: late } = await replica((one) => (one.before = () => released));
    expect(late.problem()).toBe('not read yet');
    await expect(late.active(session.metadata.name)).rejects.toMatchObject({ code: 503 });
    release();
    await settle();
    expect(late.problem()).toBe('');
    expect(await late.active(session.metadata.name)).toBeDefined();
  });

  test('the session store of a replica returns the active sessions of a user, including a session that was just created', async () => {
    const { clock, replica } = lab();
    const [one, two] = [await replica(), await replica()];
    const first = await one.sessions.create(login);
    await one.sessions.create({ ...login, userName: 'bob', userUID: 'uid-bob' });
    await clock.advance(second);
    one.client.holdWatches();
    const latest = await one.sessions.create(login);
    const names = one.sessions.ofUser(login.userUID).map(({ metadata }) => metadata.name);
    expect(names.toSorted()).toEqual([first.session.metadata.name, latest.session.metadata.name].toSorted());
    await two.sessions.revoke(latest.session.metadata.name);
    await settle();
    expect(two.sessions.ofUser(login.userUID).map(({ metadata }) => metadata.name)).toEqual([
      first.session.metadata.name,
    ]);
  });

  test('the session store of a replica still lists the other sessions of a user after one session is deleted', async () => {
    const { cluster, replica } = lab();
    const { sessions } = await replica();
    const [deleted, kept] = [await sessions.create(login), await sessions.create(login)];
    await settle();
    cluster.delete(path, deleted.session.metadata.name);
    await settle();
    expect(sessions.ofUser(login.userUID).map(({ metadata }) => metadata.name)).toEqual([kept.session.metadata.name]);
  });
});

test('revoking a session fails with 503 after five attempts if the session is changed concurrently each time', async () => {
  const { sessions, client } = await lab().replica();
  const { session } = await sessions.create(login);
  let writes = 0;
  client.before = ({ method }) => {
    if (method !== 'PUT') return;
    writes += 1;
    throw writes > 9 ? new Error('too many attempts') : new KubeError(409, { message: 'changed' });
  };
  await expect(sessions.revoke(session.metadata.name)).rejects.toMatchObject({ code: 503 });
  expect(writes).toBe(5);
});
