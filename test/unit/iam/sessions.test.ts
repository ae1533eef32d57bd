import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { sessionsPath } from '../../../src/config/names.ts';
import { namespace, startAccounts } from '../../labs/accounts.ts';
import { createLab, type Lab } from '../../labs/iam.ts';

let lab: Lab;
let token: string;
let other: string;
beforeEach(async () => {
  lab = await createLab();
  await lab.putUser('bob');
  token = await lab.login('bob');
  other = await lab.login('bob');
});
afterEach(() => lab.stop());

interface Item {
  readonly metadata: { readonly name: string };
  readonly current: boolean;
}

const list = async (by: string, name = '~'): Promise<readonly Item[]> =>
  (await lab.call(by, 'GET', `users/${name}/sessions`)).json()['items'] as Item[];
const status = async (by: string): Promise<number> => (await lab.call(by, 'GET', 'whoami')).status;

test('users see their own sessions, which contain no credentials', async () => {
  const response = await lab.call(token, 'GET', 'users/~/sessions');
  expect(response.json()).toMatchObject({
    kind: 'SessionList',
    totalItems: 2,
    items: [{ spec: { sourceIP: '192.0.2.1', userAgent: '' } }, {}],
  });
  expect(response.text).not.toMatch(/[hH]ash|credential/);
  expect((await list(token)).filter(({ current }) => current)).toHaveLength(1);
  expect((await lab.call(token, 'GET', 'users/~/sessions?pretty=true')).text).toMatch(/^{\n {2}"kind"/);
});

test('users can revoke one of their sessions without effect on their other sessions', async () => {
  const name = (await list(token)).find(({ current }) => !current)?.metadata.name;
  expect(await lab.call(token, 'DELETE', `users/~/sessions/${name}`)).toMatchObject({ status: 200 });
  expect([await status(token), await status(other)]).toEqual([200, 401]);
  expect(await list(token)).toHaveLength(1);
  expect(await lab.call(token, 'DELETE', `users/~/sessions/${name}`)).toMatchObject({ status: 404 });
});

test('users can revoke all of their own sessions', async () => {
  expect(await lab.call(token, 'DELETE', 'users/bob/sessions')).toMatchObject({ status: 200 });
  expect([await status(token), await status(other)]).toEqual([401, 401]);
});

// evidence: session-end-all
test('revoking all sessions of a user also revokes sessions on other replicas, pending codes and device authorizations', async () => {
  const { uid = '' } = lab.directory.account('bob') ?? {};
  const spec = { userName: 'bob', userUID: uid, clientID: 'platform', code: {} };
  await lab.sessions.codes.create(spec, 60_000, true);
  lab.client.holdWatches();
  const elsewhere = await startAccounts({ beside: lab });
  try {
    await elsewhere.sessions.create({ userName: 'bob', userUID: uid, clientID: 'platform' });
    expect(await lab.call(token, 'DELETE', 'users/~/sessions')).toMatchObject({ status: 200 });
    const phases = lab.cluster.list(sessionsPath(namespace)).map((one) => (one['status'] as { phase: string }).phase);
    expect(phases).toEqual(['Revoked', 'Revoked', 'Revoked', 'Revoked']);
  } finally {
    lab.client.releaseWatches();
    await elsewhere.stop();
  }
});

test('revoking the sessions of another user requires the right to delete sessions, and revokes no sessions of other users', async () => {
  const alice = await lab.login('alice');
  const [bobs] = await list(token);
  for (const [method, path] of [
    ['GET', 'users/bob/sessions'],
    ['DELETE', 'users/bob/sessions'],
    ['DELETE', `users/bob/sessions/${bobs?.metadata.name}`],
    ['GET', 'users/nobody/sessions'],
  ] as const)
    expect(await lab.call(alice, method, path)).toMatchObject({ status: 403 });
  expect(await lab.call(alice, 'DELETE', `users/~/sessions/${bobs?.metadata.name}`)).toMatchObject({ status: 404 });
  lab.rights.set('alice', ['get users/sessions', 'delete users/sessions']);
  expect(await list(alice, 'bob')).toHaveLength(2);
  expect(await lab.call(alice, 'GET', 'users/nobody/sessions')).toMatchObject({ status: 404 });
  expect(await lab.call(alice, 'DELETE', 'users/bob/sessions')).toMatchObject({ status: 200 });
  expect([await status(token), await status(other), await status(alice)]).toEqual([401, 401, 200]);
});

test('a request for sessions with an unknown parameter gets 400', async () => {
  expect(await lab.call(token, 'DELETE', 'users/~/sessions?all=true')).toMatchObject({ status: 400 });
  expect(await status(other)).toBe(200);
});

test("a login revokes the user's other sessions if multipleLogin is disabled", async () => {
  lab.configure({ multipleLogin: false });
  const third = await lab.login('bob');
  expect([await status(token), await status(other), await status(third)]).toEqual([401, 401, 200]);
});
