import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { UserConditions } from '../../../src/accounts/user-conditions.ts';
import { usersPath } from '../../../src/config/names.ts';
import { createLogger } from '../../../src/logger.ts';
import { createPlatform, type Platform } from '../../fakes/platform.ts';
import { settle } from '../kube/fakes.ts';

let platform: Platform;
let conditions: UserConditions;
beforeEach(async () => {
  platform = await createPlatform();
  conditions = new UserConditions({ ...platform, log: createLogger({ silent: true }) });
});
afterEach(() => {
  conditions.stop();
  platform.stop();
});

/** The memory cluster serves the status as an object of its own. */
const patches = (): unknown[] => platform.client.asked('PATCH', '/status').map(({ path, body }) => ({ path, body }));

async function look(username: string): Promise<void> {
  conditions.look(username);
  await platform.clock.advance(1_000);
  await settle();
}

test('a user who may log in is told so, once it is not yet so', async () => {
  await platform.putUser('bob');
  const { resourceVersion } = platform.users.get('bob')?.metadata ?? {};
  await look('bob');
  const condition = {
    type: 'Accepted',
    status: 'True',
    reason: 'Accepted',
    message: expect.any(String) as unknown,
    lastTransitionTime: expect.any(String) as unknown,
  };
  expect(patches()).toEqual([
    {
      path: `${usersPath}/bob/status`,
      body: { metadata: { resourceVersion }, status: { conditions: [expect.objectContaining(condition)] } },
    },
  ]);
  const told = { ...condition, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
  platform.cluster.put(usersPath, { metadata: { name: 'bob' }, spec: {}, status: { conditions: [told] } });
  await settle();
  await look('bob');
  expect(patches()).toHaveLength(1);
});

test.each([
  ['alice', {}, 'ConfiguredUser'],
  ['mallory', { groups: ['system:masters'] }, 'SystemName'],
])('%s is not accepted', async (username, spec, reason) => {
  await platform.putUser(username, spec);
  await look(username);
  expect(patches()).toMatchObject([{ body: { status: { conditions: [{ status: 'False', reason }] } } }]);
});

test('a write that fails is tried again', async () => {
  await platform.putUser('bob');
  platform.client.before = ({ method }) => {
    if (method === 'PATCH') throw new Error('no');
  };
  await look('bob');
  platform.client.before = () => undefined;
  await platform.clock.advance(10_000);
  await settle();
  expect(patches()).toHaveLength(2);
});

test('a change of the configuration has all looked at', async () => {
  await platform.putUser('bob');
  await platform.putUser('carol');
  conditions.lookAtAll();
  await platform.clock.advance(1_000);
  await settle();
  expect(patches()).toHaveLength(2);
});
