import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { UserConditions } from '../../../../src/accounts/directory/user-conditions.ts';
import { usersPath } from '../../../../src/config/names.ts';
import { KubeError, unreachable } from '../../../../src/cluster/client/kube-error.ts';
import type { MemoryClient } from '../../../fakes/cluster.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { startAccounts, type Accounts } from '../../../labs/accounts.ts';
import { settle } from '../../../labs/cluster-fakes.ts';

let accounts: Accounts;
/** Client that only the `UserConditions` under test uses. The replica has a separate client. */
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

/** Paths and bodies of the status patches; the memory cluster stores the status as a separate object. */
const patches = (): unknown[] => client.requestsTo('PATCH', '/status').map(({ path, body }) => ({ path, body }));

async function checkUser(username: string): Promise<void> {
  conditions.check(username);
  await accounts.clock.advance(1_000);
  await settle();
}

test('a User who is allowed to log in gets the condition Accepted, unless the condition is already set', async () => {
  await accounts.putUser('bob');
  const { resourceVersion } = accounts.users.get('bob')?.metadata ?? {};
  await checkUser('bob');
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
  const current = { ...condition, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
  accounts.cluster.put(usersPath, { metadata: { name: 'bob' }, spec: {}, status: { conditions: [current] } });
  await settle();
  await checkUser('bob');
  expect(patches()).toHaveLength(1);
});

test.each([
  ['alice', {}, 'ConfiguredUser'],
  ['mallory', { groups: ['system:masters'] }, 'SystemName'],
])(
  'the User %s with the spec %j is not allowed to log in and gets the status False and the reason %s in the condition Accepted',
  async (username, spec, reason) => {
    await accounts.putUser(username, spec);
    await checkUser(username);
    expect(patches()).toMatchObject([{ body: { status: { conditions: [{ status: 'False', reason }] } } }]);
  },
);

test("a failed write of a User's condition is retried", async () => {
  await accounts.putUser('bob');
  client.before = ({ method }) => {
    if (method === 'PATCH') throw new Error('no');
  };
  await checkUser('bob');
  client.before = () => undefined;
  await accounts.clock.advance(10_000);
  await settle();
  expect(patches()).toHaveLength(2);
});

test('a configuration change updates the conditions of all Users', async () => {
  await accounts.putUser('bob');
  await accounts.putUser('carol');
  conditions.checkAll();
  await accounts.clock.advance(1_000);
  await settle();
  expect(patches()).toHaveLength(2);
});

/** Statuses and messages written for the user, oldest first. */
const reportedTo = (username: string): unknown[] =>
  client
    .requestsTo('PATCH', `${username}/status`)
    .map(
      ({ body }) => (body as { status: { conditions: { status: string; reason: string; message: string }[] } }).status,
    )
    .flatMap(({ conditions: [first] }) =>
      first === undefined ? [] : [`${first.status} ${first.reason}`, first.message],
    );

/** Copies the last written status into the User, since the memory cluster stores the status as a separate object. */
async function write(username: string): Promise<void> {
  const user = accounts.cluster.get(usersPath, username);
  const { body } = client.requestsTo('PATCH', `${username}/status`).at(-1) ?? {};
  accounts.cluster.put(usersPath, {
    ...user,
    metadata: { name: username },
    status: (body as { status: unknown } | undefined)?.status,
  });
  await settle();
}

const but = (name: string): string =>
  `the user is allowed to log in while Active, but not with the e-mail address (shared with ${name})`;

test('while two Users share an e-mail address, each of them has a condition that names the other User', async () => {
  await accounts.putUser('bob', { email: 'both@example.com' });
  await checkUser('bob');
  await write('bob');
  await accounts.putUser('carol', { email: 'BOTH@example.com' });
  await checkUser('carol');
  expect(reportedTo('carol')).toEqual(['True Ambiguous', but('bob')]);
  expect(reportedTo('bob').slice(2)).toEqual(['True Ambiguous', but('carol')]);
  await write('bob');
  await accounts.putUser('carol', { email: 'carol@example.com' });
  await checkUser('carol');
  expect(reportedTo('bob').slice(4)).toEqual(['True Accepted', expect.any(String)]);
});

test('the condition of a User changes when another User with the same e-mail address is deleted or replaced', async () => {
  await accounts.putUser('bob', { email: 'both@example.com' });
  await accounts.putUser('carol', { email: 'both@example.com' });
  await checkUser('bob');
  await write('bob');
  await accounts.putUser('aaron', { email: 'both@example.com' });
  await checkUser('aaron');
  expect(reportedTo('bob').at(-1)).toContain('(shared with aaron, carol)');
  await write('bob');
  for (const name of ['aaron', 'carol']) {
    accounts.cluster.delete(usersPath, name);
    await settle();
    await checkUser(name);
  }
  expect(reportedTo('bob').at(-2)).toBe('True Accepted');
});

test('a User who shares an e-mail address with a configured user gets a condition about the shared address', async () => {
  accounts.configure({ users: [{ username: 'alice', email: 'both@example.com' }] });
  await accounts.putUser('bob', { email: 'both@example.com' });
  await checkUser('bob');
  expect(reportedTo('bob').at(-1)).toContain('(shared with alice)');
});

test('a User who shares an identity with another User gets a condition that names the identity', async () => {
  const identities = [{ provider: 'corp', subject: '17' }];
  await accounts.putUser('bob', { identities });
  await accounts.putUser('carol', { identities: [{ provider: 'corp', subject: '18' }, ...identities] });
  await checkUser('bob');
  expect(reportedTo('bob')).toEqual([
    'True Ambiguous',
    'the user is allowed to log in while Active, but not with the identity 17 at corp (shared with carol)',
  ]);
});

/** Stores bob with this status and returns the next conditions written for him. */
async function nextConditions(status: object, spec: object = {}): Promise<unknown> {
  accounts.cluster.put(usersPath, { metadata: { name: 'bob' }, spec, status });
  await settle();
  await checkUser('bob');
  return (patches() as { body: { status: { conditions: unknown } } }[]).at(-1)?.body.status.conditions;
}

describe('the new condition of a User', () => {
  const earlier = '2026-01-01T00:00:00Z';
  const ready = { type: 'Ready', status: 'False', reason: 'R', message: '', lastTransitionTime: earlier };
  const accepted = { type: 'Accepted', status: 'True', reason: 'Old', message: '', lastTransitionTime: earlier };

  test('the new condition of a User keeps the time of the last transition while its status is unchanged', async () => {
    expect(await nextConditions({ conditions: [accepted] })).toMatchObject([
      { reason: 'Accepted', lastTransitionTime: earlier },
    ]);
  });

  test('the new condition of a User has the current time when its status changes', async () => {
    const conditionsNow = await nextConditions({ conditions: [{ ...accepted, status: 'False' }] });
    expect(conditionsNow).toMatchObject([
      { status: 'True', lastTransitionTime: expect.not.stringMatching(earlier) as unknown },
    ]);
  });

  test('the new condition of a User keeps conditions of other types', async () => {
    expect(await nextConditions({ conditions: [ready, accepted] })).toMatchObject([
      ready,
      { reason: 'Accepted', lastTransitionTime: earlier },
    ]);
  });

  test('the new condition of a User is added to a status without conditions', async () => {
    expect(await nextConditions({ lastLoginTime: earlier })).toMatchObject([{ reason: 'Accepted' }]);
  });
});

test('the condition of a User who shares an e-mail address with many others lists ten names', async () => {
  const others = Array.from({ length: 11 }, (_, index) => `user-${index + 10}`);
  await accounts.putUser('bob', { email: 'all@example.com' });
  for (const name of others.slice(0, 10)) await accounts.putUser(name, { email: 'all@example.com' });
  await checkUser('bob');
  expect(reportedTo('bob').at(-1)).toContain(`(shared with ${others.slice(0, 10).join(', ')})`);
  await write('bob');
  await accounts.putUser(others.at(-1) ?? '', { email: 'all@example.com' });
  await checkUser('bob');
  expect(reportedTo('bob').at(-1)).toContain(`(shared with ${others.slice(0, 10).join(', ')} and 1 more)`);
  expect(reportedTo(others.at(-1) ?? '')).toEqual([]);
});

test('an unchanged condition about a shared e-mail address is not written again', async () => {
  for (const name of ['bob', 'carol']) await accounts.putUser(name, { email: 'both@example.com' });
  await checkUser('bob');
  for (const name of ['bob', 'carol']) await write(name);
  await checkUser('bob');
  expect(patches()).toHaveLength(2);
});

test('no condition is written for a User who was deleted in the meantime', async () => {
  await accounts.putUser('bob');
  conditions.check('bob');
  accounts.cluster.delete(usersPath, 'bob');
  await settle();
  await accounts.clock.advance(30_000);
  expect(patches()).toEqual([]);
  expect(lines()).toEqual([]);
});

test('no condition is written for a User whose condition another replica has already written', async () => {
  await accounts.putUser('bob');
  await checkUser('bob');
  conditions.check('bob');
  await write('bob');
  await accounts.clock.advance(1_000);
  expect(patches()).toHaveLength(1);
});

test.each([404, 409])(
  'a write of a condition that kube-apiserver rejects with %i is not retried until the next change',
  async (code) => {
    await accounts.putUser('bob');
    client.before = ({ method }) => {
      if (method === 'PATCH') throw new KubeError(code, {});
    };
    await checkUser('bob');
    await accounts.clock.advance(30_000);
    expect(patches()).toHaveLength(1);
    expect(lines()).toEqual([]);
  },
);

test('a failed write of a condition is logged with the user and the cause', async () => {
  await accounts.putUser('bob');
  client.before = ({ method }) => {
    if (method === 'PATCH') throw unreachable(new Error('reset'));
  };
  await checkUser('bob');
  const logged = lines().map((line) => JSON.parse(line) as unknown);
  expect(logged).toMatchObject([
    { level: 'warn', user: 'bob', error: { message: expect.stringContaining('reset') as unknown } },
  ]);
});

describe('after the server has stopped', () => {
  test('no condition is written for changes after the server has stopped', async () => {
    await accounts.putUser('bob');
    conditions.check('bob');
    conditions.stop();
    await accounts.clock.advance(2_000);
    const timers = accounts.clock.pending();
    conditions.check('bob');
    expect(accounts.clock.pending()).toEqual(timers);
    expect(patches()).toEqual([]);
  });

  test('no further condition is written after the write that is in progress when the server stops', async () => {
    for (const name of ['bob', 'carol']) await accounts.putUser(name);
    client.before = ({ method }) => {
      if (method === 'PATCH') conditions.stop();
    };
    conditions.checkAll();
    await accounts.clock.advance(30_000);
    expect(patches()).toHaveLength(1);
    expect(lines()).toEqual([]);
  });
});
