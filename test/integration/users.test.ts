/** User objects (docs/guides/accounts.md): accounts like the configured ones, effective on every replica. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../labs/integration/eventually.ts';
import { call, gateway, nodesPath } from '../labs/integration/http.ts';
import { bind, createClusterRole, kube, merge, patch, removeClusterRole, unbind } from '../labs/integration/kube.ts';
import { kubectl, succeed } from '../labs/integration/kubectl.ts';
import { login, postForm, refreshForm, type Tokens } from '../labs/integration/login.ts';
import { passwords } from '../labs/integration/people.ts';
import { tokenOf } from '../labs/integration/users.ts';
import {
  conditionsOf,
  createUser,
  createUserWithPassword,
  loginStatuses,
  removeUser,
  userPath,
  usersPath,
} from '../labs/integration/user-objects.ts';

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (let task = undo.pop(); task !== undefined; task = undo.pop()) await task();
});

async function person(name: string, spec: object = {}): Promise<void> {
  undo.push(() => removeUser(name));
  await createUserWithPassword(name, spec);
}

const session = (name: string): Promise<Tokens> => login(name, undefined, passwords.alice);

const bearerStatuses = ({ access_token: token }: Tokens, path = '/kapis'): Promise<number[]> =>
  Promise.all([gateway(0), gateway(1)].map(async (base) => (await call(`${base}${path}`, { token })).status));

const become = (what: string, fetchStatuses: () => Promise<number[]>, status: number): Promise<void> =>
  eventually(what, async () => {
    expect(await fetchStatuses()).toEqual([status, status]);
  });

/** Returns the reason for which kube-apiserver rejects the user. */
const refusal = (spec: object, name = 'refused'): Promise<string> =>
  createUser(name, spec).then(
    () => 'accepted',
    (error: unknown) => String(error),
  );

describe('a User object', () => {
  test('a user with a User object can log in, has the groups of the object, and loses removed rights immediately', async () => {
    await bind('users-test', 'platform-node-reader', { kind: 'Group', name: 'erins-friends' });
    undo.push(() => unbind('users-test'));
    await person('erin', { displayName: 'Erin', groups: ['erins-friends'] });
    const tokens = await session('erin');
    await become('erin reads nodes', () => bearerStatuses(tokens, `${nodesPath}?limit=1`), 200);
    await patch(userPath('erin'), { spec: { groups: [] } });
    await become('erin reads none', () => bearerStatuses(tokens, `${nodesPath}?limit=1`), 403);
    expect(await bearerStatuses(tokens)).toEqual([200, 200]);
    await patch(userPath('erin'), { spec: { state: 'Disabled' } });
    await become('the tokens of erin are rejected', () => bearerStatuses(tokens), 401);
    expect(await loginStatuses('erin')).toEqual([400, 400]);
    expect((await postForm(refreshForm(tokens.refresh_token))).status).toBe(400);
  });

  test('deleting a User object revokes its sessions, and a new User of the same name inherits neither sessions nor password', async () => {
    await person('frank');
    const tokens = await session('frank');
    await removeUser('frank');
    await become('the tokens of frank are rejected', () => bearerStatuses(tokens), 401);
    await createUser('frank');
    await eventually('the new user frank can log in', async () => {
      expect(await conditionsOf('frank')).toMatchObject([{ type: 'Accepted', status: 'True' }]);
    });
    expect(await bearerStatuses(tokens)).toEqual([401, 401]);
    expect(await loginStatuses('frank')).toEqual([400, 400]);
  });

  test('a user with a User object can log in by e-mail address while the address is unique', async () => {
    await person('grace', { email: 'Grace@example.org' });
    expect(await loginStatuses('grace@EXAMPLE.org')).toEqual([200, 200]);
    undo.push(() => removeUser('heidi'));
    await createUser('heidi', { email: 'grace@example.org' });
    await become('the address is ambiguous', () => loginStatuses('grace@example.org'), 400);
    expect(await loginStatuses('grace')).toEqual([200, 200]);
  });

  test('a User object with the name of a configured user has no effect and a status that reports the conflict', async () => {
    undo.push(() => removeUser('bob'));
    await createUser('bob', { groups: ['platform:admins'] });
    await eventually('the condition is there', async () => {
      expect(await conditionsOf('bob')).toMatchObject([
        { type: 'Accepted', status: 'False', reason: 'ConfiguredUser', observedGeneration: 1 },
      ]);
    });
    const { access_token: token } = await login('bob');
    expect((await call(`${gateway()}${nodesPath}`, { token })).status).toBe(403);
  });
});

describe('kube-apiserver rejects a user', () => {
  // evidence: user-crd-validation
  test.each([
    ['a reserved group', { groups: ['ok', 'system:masters'] }, 'must not begin with "system:"'],
    ...[' system:masters', 'a\u00A0', 'a\nb', '\u0000'].map(
      (name) => ['a group with invisible characters', { groups: [name] }, 'should match'] as const,
    ),
    ['the same group twice', { groups: ['a', 'a'] }, 'Duplicate value'],
    ['an empty group', { groups: [''] }, 'should be at least 1 chars long'],
    ['an invalid e-mail address', { email: 'erin' }, 'should match'],
    ['an unknown state', { state: 'Gone' }, 'supported values: "Active", "Disabled"'],
    ['a long display name', { displayName: 'x'.repeat(257) }, 'Too long'],
  ])('kube-apiserver rejects a user with %s', async (_, spec, message) => {
    expect(await refusal(spec)).toContain(message);
  });

  test.each(['Refused', 'a@b', 'system:admin', 'x'.repeat(254)])(
    'kube-apiserver rejects a user with the name %s',
    async (name) => {
      expect(await refusal({}, name)).not.toBe('accepted');
    },
  );
});

test('kubectl explains every field of a User and prints users as a table', async () => {
  const explained = await succeed(kubectl, 'explain', 'users.iam.platform.io', '--recursive=false');
  expect(explained).toContain('allowed to log in to the platform');
  const spec = await succeed(kubectl, 'explain', 'users.iam.platform.io.spec');
  for (const field of ['displayName', 'email', 'groups', 'state', 'passwordChangeRequired'])
    expect(spec).toMatch(new RegExp(`${field}\\t.*\\n.*\\S`));
  undo.push(() => removeUser('judy'));
  await createUser('judy', { displayName: 'Judy', email: 'judy@example.org' });
  const [head, row] = (await succeed(kubectl, 'get', 'users.iam.platform.io', 'judy')).split('\n');
  expect(head).toMatch(/^NAME +DISPLAY NAME +EMAIL +STATE +ACCEPTED +LAST LOGIN +AGE/);
  expect(row).toMatch(/^judy +Judy +judy@example.org +Active/);
});

/** Returns the response of kube-apiserver to a change of the groups or to a new user; '' on success. */
const change = (user: string, groups: readonly string[], method: 'PATCH' | 'POST' = 'PATCH'): Promise<string> =>
  kube()
    .json(method === 'POST' ? usersPath : userPath('kim'), {
      method,
      ...(method === 'PATCH' ? { contentType: merge } : {}),
      headers: { 'impersonate-user': user },
      body: { apiVersion: 'iam.platform.io/v1alpha2', kind: 'User', metadata: { name: 'kim' }, spec: { groups } },
    })
    .then(() => '', String);

describe('adding a user to a group', () => {
  beforeAll(async () => {
    await createClusterRole('users-test-writer', [
      { apiGroups: ['iam.platform.io'], resources: ['users'], verbs: ['*'] },
      { apiGroups: [''], resources: ['groups'], verbs: ['impersonate'], resourceNames: ['a', 'b', 'c', 'd', 'e'] },
    ]);
    await createClusterRole('users-test-anybody', [
      { apiGroups: ['iam.platform.io'], resources: ['users'], verbs: ['*'] },
      { apiGroups: [''], resources: ['groups'], verbs: ['impersonate'] },
    ]);
    await bind('users-test-writer', 'users-test-writer', { kind: 'User', name: 'writer' });
    await bind('users-test-anybody', 'users-test-anybody', { kind: 'User', name: 'anybody' });
  });
  afterAll(async () => {
    for (const name of ['users-test-writer', 'users-test-anybody']) {
      await unbind(name);
      await removeClusterRole(name);
    }
  });
  afterEach(() => removeUser('kim'));

  test('adding a user to a group requires the right to impersonate the group', async () => {
    await createUser('kim', { groups: ['before'] });
    // A policy takes effect after a moment.
    await eventually('the policy is in force', async () => {
      expect(await change('writer', ['before', 'platform:admins'])).toContain('permission to impersonate');
    });
    expect(await change('writer', ['before', 'a', 'b', 'c', 'd', 'e'])).toBe('');
    expect(await change('writer', ['before', 'a', 'b', 'c', 'd', 'e', 'f'])).toContain('one of: f');
    expect(await change('writer', ['e'])).toBe('');
    expect(await change('writer', ['e', 'before'])).toContain('one of: before');
    expect(
      await change(
        'anybody',
        Array.from({ length: 50 }, (_, index) => `g${index}`),
      ),
    ).toBe('');
  });

  test('creating a user in a group requires the right to impersonate the group', async () => {
    expect(await change('writer', ['a', 'platform:admins'], 'POST')).toContain('permission to impersonate');
    expect(await change('writer', ['a'], 'POST')).toBe('');
  });
});

// evidence: own-user-object-replicas
test('users cannot edit their own User object through kube-apiserver', async () => {
  await person('liam', { groups: ['liams'] });
  const can = await kubectl('auth', 'can-i', 'patch', 'users.iam.platform.io/liam', '--as', 'liam');
  expect(can.stdout.trim()).toBe('no');
  expect(await tokenOf('liam')).toBeTruthy();
});
