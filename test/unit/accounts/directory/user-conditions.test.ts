import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { UserConditions } from '../../../../src/accounts/directory/user-conditions.ts';
import { usersPath } from '../../../../src/config/names.ts';
import { KubeError, unreachable } from '../../../../src/cluster/client/kube-error.ts';
import type { MemoryClient } from '../../../fakes/cluster.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { startAccounts, type Accounts } from '../../../labs/accounts.ts';
import { settle } from '../../../labs/cluster-fakes.ts';

let accounts: Accounts;
/** The client of these conditions alone; those of the replica have its own. */
let client: MemoryClient;
let conditions: UserConditions;
let lines: () => string[];
beforeEach(async () => {
  accounts = await startAccounts();
  client = accounts.cluster.client();
  const logged = logOfLines();
  ({ lines } = logged);
  conditions = new UserConditions({ ...accounts, client, log: logged.log });
});
afterEach(async () => {
  conditions.stop();
  await accounts.stop();
});

/** The memory cluster serves the status as an object of its own. */
const patches = (): unknown[] => client.asked('PATCH', '/status').map(({ path, body }) => ({ path, body }));

async function look(username: string): Promise<void> {
  conditions.look(username);
  await accounts.clock.advance(1_000);
  await settle();
}

test('a user who may log in is told so, once it is not yet so', async () => {
  await accounts.putUser('bob');
  const { resourceVersion } = accounts.users.get('bob')?.metadata ?? {};
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
  accounts.cluster.put(usersPath, { metadata: { name: 'bob' }, spec: {}, status: { conditions: [told] } });
  await settle();
  await look('bob');
  expect(patches()).toHaveLength(1);
});

test.each([
  ['alice', {}, 'ConfiguredUser'],
  ['mallory', { groups: ['system:masters'] }, 'SystemName'],
])('%s is not accepted', async (username, spec, reason) => {
  await accounts.putUser(username, spec);
  await look(username);
  expect(patches()).toMatchObject([{ body: { status: { conditions: [{ status: 'False', reason }] } } }]);
});

test('a write that fails is tried again', async () => {
  await accounts.putUser('bob');
  client.before = ({ method }) => {
    if (method === 'PATCH') throw new Error('no');
  };
  await look('bob');
  client.before = () => undefined;
  await accounts.clock.advance(10_000);
  await settle();
  expect(patches()).toHaveLength(2);
});

test('a change of the configuration has all looked at', async () => {
  await accounts.putUser('bob');
  await accounts.putUser('carol');
  conditions.lookAtAll();
  await accounts.clock.advance(1_000);
  await settle();
  expect(patches()).toHaveLength(2);
});

/** What bob and carol are told, the newest last. */
const toldTo = (username: string): unknown[] =>
  client
    .asked('PATCH', `${username}/status`)
    .map(
      ({ body }) => (body as { status: { conditions: { status: string; reason: string; message: string }[] } }).status,
    )
    .flatMap(({ conditions: [first] }) =>
      first === undefined ? [] : [`${first.status} ${first.reason}`, first.message],
    );

/** The memory cluster has no status beside the object: what was told is put there. */
async function write(username: string): Promise<void> {
  const user = accounts.cluster.get(usersPath, username);
  const { body } = client.asked('PATCH', `${username}/status`).at(-1) ?? {};
  accounts.cluster.put(usersPath, {
    ...user,
    metadata: { name: username },
    status: (body as { status: unknown } | undefined)?.status,
  });
  await settle();
}

const but = (name: string): string =>
  `the user may log in while Active, but not by the e-mail address: ${name} has it too`;

test('who shares an e-mail address is told with whom, and both are told when they do no longer', async () => {
  await accounts.putUser('bob', { email: 'both@example.com' });
  await look('bob');
  await write('bob');
  await accounts.putUser('carol', { email: 'BOTH@example.com' });
  await look('carol');
  expect(toldTo('carol')).toEqual(['True Ambiguous', but('bob')]);
  expect(toldTo('bob').slice(2)).toEqual(['True Ambiguous', but('carol')]);
  await write('bob');
  await accounts.putUser('carol', { email: 'carol@example.com' });
  await look('carol');
  expect(toldTo('bob').slice(4)).toEqual(['True Accepted', expect.any(String)]);
});

test('who shared an e-mail address is told when the other one is gone, or another one comes', async () => {
  await accounts.putUser('bob', { email: 'both@example.com' });
  await accounts.putUser('carol', { email: 'both@example.com' });
  await look('bob');
  await write('bob');
  await accounts.putUser('aaron', { email: 'both@example.com' });
  await look('aaron');
  expect(toldTo('bob').at(-1)).toContain('aaron, carol have it too');
  await write('bob');
  for (const name of ['aaron', 'carol']) {
    accounts.cluster.delete(usersPath, name);
    await settle();
    await look(name);
  }
  expect(toldTo('bob').at(-2)).toBe('True Accepted');
});

test('who shares an e-mail address with a configured user is told so', async () => {
  accounts.configure({ users: [{ username: 'alice', email: 'both@example.com' }] });
  await accounts.putUser('bob', { email: 'both@example.com' });
  await look('bob');
  expect(toldTo('bob').at(-1)).toContain('alice has it too');
});

test('who shares an identity is told which', async () => {
  const identities = [{ provider: 'corp', subject: '17' }];
  await accounts.putUser('bob', { identities });
  await accounts.putUser('carol', { identities: [{ provider: 'corp', subject: '18' }, ...identities] });
  await look('bob');
  expect(toldTo('bob')).toEqual([
    'True Ambiguous',
    'the user may log in while Active, but not by the identity 17 at corp: carol has it too',
  ]);
});

/** Puts bob with this status, and returns the conditions that he gets next. */
async function nextConditions(status: object, spec: object = {}): Promise<unknown> {
  accounts.cluster.put(usersPath, { metadata: { name: 'bob' }, spec, status });
  await settle();
  await look('bob');
  return (patches() as { body: { status: { conditions: unknown } } }[]).at(-1)?.body.status.conditions;
}

describe('the new condition', () => {
  const earlier = '2026-01-01T00:00:00Z';
  const ready = { type: 'Ready', status: 'False', reason: 'R', message: '', lastTransitionTime: earlier };
  const accepted = { type: 'Accepted', status: 'True', reason: 'Old', message: '', lastTransitionTime: earlier };

  test('has the time of the last transition while its status is the same', async () => {
    expect(await nextConditions({ conditions: [accepted] })).toMatchObject([
      { reason: 'Accepted', lastTransitionTime: earlier },
    ]);
  });

  test('has the present time when its status is another one', async () => {
    const conditionsNow = await nextConditions({ conditions: [{ ...accepted, status: 'False' }] });
    expect(conditionsNow).toMatchObject([
      { status: 'True', lastTransitionTime: expect.not.stringMatching(earlier) as unknown },
    ]);
  });

  test('leaves conditions of other types alone', async () => {
    expect(await nextConditions({ conditions: [ready, accepted] })).toMatchObject([
      ready,
      { reason: 'Accepted', lastTransitionTime: earlier },
    ]);
  });

  test('is written beside a status without conditions', async () => {
    expect(await nextConditions({ lastLoginTime: earlier })).toMatchObject([{ reason: 'Accepted' }]);
  });
});

test('a user who shares an e-mail address with many others is told the names of ten', async () => {
  const others = Array.from({ length: 11 }, (_, index) => `user-${index + 10}`);
  await accounts.putUser('bob', { email: 'all@example.com' });
  for (const name of others.slice(0, 10)) await accounts.putUser(name, { email: 'all@example.com' });
  await look('bob');
  expect(toldTo('bob').at(-1)).toContain(`: ${others.slice(0, 10).join(', ')} have it too`);
  await write('bob');
  await accounts.putUser(others.at(-1) ?? '', { email: 'all@example.com' });
  await look('bob');
  expect(toldTo('bob').at(-1)).toContain(`: ${others.slice(0, 10).join(', ')} and 1 more have it too`);
  expect(toldTo(others.at(-1) ?? '')).toEqual([]);
});

test('a user who is told of a shared e-mail address is not told again', async () => {
  for (const name of ['bob', 'carol']) await accounts.putUser(name, { email: 'both@example.com' });
  await look('bob');
  for (const name of ['bob', 'carol']) await write(name);
  await look('bob');
  expect(patches()).toHaveLength(2);
});

test('a user who was deleted meanwhile is not written', async () => {
  await accounts.putUser('bob');
  conditions.look('bob');
  accounts.cluster.delete(usersPath, 'bob');
  await settle();
  await accounts.clock.advance(30_000);
  expect(patches()).toEqual([]);
  expect(lines()).toEqual([]);
});

test('a user who was told by another replica meanwhile is not written', async () => {
  await accounts.putUser('bob');
  await look('bob');
  conditions.look('bob');
  await write('bob');
  await accounts.clock.advance(1_000);
  expect(patches()).toHaveLength(1);
});

test.each([404, 409])('a write that kube-apiserver refuses with %i is left to the next change', async (code) => {
  await accounts.putUser('bob');
  client.before = ({ method }) => {
    if (method === 'PATCH') throw new KubeError(code, {});
  };
  await look('bob');
  await accounts.clock.advance(30_000);
  expect(patches()).toHaveLength(1);
  expect(lines()).toEqual([]);
});

test('a write that fails is logged with the user and the cause', async () => {
  await accounts.putUser('bob');
  client.before = ({ method }) => {
    if (method === 'PATCH') throw unreachable(new Error('reset'));
  };
  await look('bob');
  const logged = lines().map((line) => JSON.parse(line) as unknown);
  expect(logged).toMatchObject([
    { level: 'warn', user: 'bob', error: { message: expect.stringContaining('reset') as unknown } },
  ]);
});

describe('after a stop', () => {
  test('nothing is written, and nothing that comes later is looked at', async () => {
    await accounts.putUser('bob');
    conditions.look('bob');
    conditions.stop();
    await accounts.clock.advance(2_000);
    const timers = accounts.clock.pending();
    conditions.look('bob');
    expect(accounts.clock.pending()).toEqual(timers);
    expect(patches()).toEqual([]);
  });

  test('the write that is under way is the last one', async () => {
    for (const name of ['bob', 'carol']) await accounts.putUser(name);
    client.before = ({ method }) => {
      if (method === 'PATCH') conditions.stop();
    };
    conditions.lookAtAll();
    await accounts.clock.advance(30_000);
    expect(patches()).toHaveLength(1);
    expect(lines()).toEqual([]);
  });
});
