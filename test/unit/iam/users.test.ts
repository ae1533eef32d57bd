import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { usersPath } from '../../../src/config/names.ts';
import { settle } from '../../labs/cluster-fakes.ts';
import { createLab, type Lab } from '../../labs/iam.ts';

const merge = 'application/merge-patch+json';
const jsonPatch = 'application/json-patch+json';

let lab: Lab;
let bob: string;
beforeEach(async () => {
  lab = await createLab({ authentication: { users: [{ username: 'alice', displayName: 'Alice', groups: ['a'] }] } });
  await lab.putUser('bob', { displayName: 'Bob', email: 'bob@example.com', groups: ['b'], state: 'Active' });
  await lab.putUser('carol', { groups: ['c'], state: 'Disabled' });
  bob = await lab.login('bob');
});
afterEach(() => lab.stop());

const may = (...rights: string[]): void => {
  lab.rights.set('bob', rights);
};
const names = (response: { json(): Record<string, unknown> }): string[] =>
  (response.json()['items'] as { metadata: { name: string } }[]).map(({ metadata }) => metadata.name);
const writes = (): unknown[] =>
  lab.client.requests.filter(({ method, path }) => method !== 'GET' && path.includes('/users'));

describe('a caller without the required right', () => {
  test.each([
    ['GET', 'users'],
    ['GET', 'users/carol'],
    ['GET', 'users/alice'],
    ['GET', 'users/nobody'],
    ['DELETE', 'users/alice'],
  ])('a caller without the required right gets 403 for %s %s', async (method, path) => {
    expect(await lab.call(bob, method, path)).toMatchObject({ status: 403 });
  });

  test('an anonymous request for users gets 401', async () => {
    for (const path of ['users', 'users/~', 'users/bob', 'whoami'])
      expect(await lab.call(undefined, 'GET', path)).toMatchObject({ status: 401 });
  });
});

describe('a list of users', () => {
  beforeEach(() => may('list users'));

  test('a list of users contains configured users and User objects, and supports the list parameters', async () => {
    const all = await lab.call(bob, 'GET', 'users?sortBy=name&ascending=true');
    expect(all.json()).toMatchObject({ kind: 'UserList', apiVersion: 'iam.platform.io/v1alpha2', totalItems: 3 });
    expect(names(all)).toEqual(['alice', 'bob', 'carol']);
    const page = await lab.call(bob, 'GET', 'users?sortBy=name&ascending=true&limit=1&page=2');
    expect(page.json()).toMatchObject({ totalItems: 3 });
    expect(names(page)).toEqual(['bob']);
    expect(names(await lab.call(bob, 'GET', 'users?status=Disabled'))).toEqual(['carol']);
    for (const name of ['group', 'ingroup'])
      expect(names(await lab.call(bob, 'GET', `users?${name}=a`))).toEqual(['alice']);
    for (const email of ['bob@example.com', 'Bob@Example.com'])
      expect(names(await lab.call(bob, 'GET', `users?email=${email}`))).toEqual(['bob']);
    for (const filter of ['email=bob', 'ingroup=A', 'ingroup=a&email=bob@example.com'])
      expect((await lab.call(bob, 'GET', `users?${filter}`)).json()).toMatchObject({ items: [] });
    expect(names(await lab.call(bob, 'GET', 'users?fieldSelector=spec.email%3Dbob@example.com'))).toEqual(['bob']);
  });

  test('a list of users marks configured users, and shows changes of the configuration', async () => {
    expect(await lab.call(bob, 'GET', 'users?names=alice')).toMatchObject({ status: 200 });
    const [alice] = (await lab.call(bob, 'GET', 'users?names=alice')).json()['items'] as unknown[];
    expect(alice).toMatchObject({
      kind: 'User',
      metadata: { annotations: { 'iam.platform.io/source': 'configuration' } },
      spec: { displayName: 'Alice', groups: ['a'], state: 'Active' },
    });
    await lab.putUser('alice');
    await lab.putUser('dora');
    expect(names(await lab.call(bob, 'GET', 'users?sortBy=name&ascending=true'))).toEqual([
      'alice',
      'bob',
      'carol',
      'dora',
    ]);
    lab.cluster.delete(usersPath, 'dora');
    await settle();
    expect(names(await lab.call(bob, 'GET', 'users?sortBy=name&ascending=true'))).toEqual(['alice', 'bob', 'carol']);
  });

  test('a list of users contains no password hash', async () => {
    expect((await lab.call(bob, 'GET', 'users')).text).not.toMatch(/\$2b\$|assword"/);
  });

  test.each(['users?watch=true', 'users?nothing=1', 'users?resourceVersionMatch=Exact&resourceVersion=1'])(
    'the unsupported list request %s gets 400',
    async (path) => {
      may('list users', 'watch users');
      expect(await lab.call(bob, 'GET', path)).toMatchObject({ status: 400 });
    },
  );
});

const sent = (): unknown => lab.client.requests.findLast(({ method }) => method === 'PATCH')?.query;

// kube-apiserver authorizes a list with a field selector by name in the same way.
test('a list of users that a fieldSelector limits to one name requires only the right to list this user', async () => {
  may('list users carol');
  expect(names(await lab.call(bob, 'GET', 'users?fieldSelector=metadata.name%3Dcarol'))).toEqual(['carol']);
  for (const query of ['', '?fieldSelector=metadata.name%3Dalice', '?fieldSelector=metadata.name!%3Dcarol'])
    expect(await lab.call(bob, 'GET', `users${query}`)).toMatchObject({ status: 403 });
});

describe('the query parameters of a write', () => {
  const body = { spec: { displayName: 'Robert' } };
  const change = (query: string) => lab.call(bob, 'PATCH', `users/bob?${query}`, body, merge);

  test.each(['fieldManager=console', 'dryRun=All', 'fieldValidation=Warn'])(
    'the query parameter %s applies when users change their own displayName',
    async (query) => {
      expect(await change(query)).toMatchObject({ status: 200 });
      expect(sent()).toMatchObject(Object.fromEntries(new URLSearchParams(query)));
    },
  );

  test('users who change their own object can request an indented response', async () => {
    expect((await change('pretty=true')).text).toMatch(/^{\n {2}"/);
    expect(sent()).not.toHaveProperty('pretty');
  });
});

describe("the caller's own user", () => {
  test.each(['users/~', 'users/bob'])("the caller's own user can be read without any right: %s", async (path) => {
    const { status, json } = await lab.call(bob, 'GET', path);
    expect(status).toBe(200);
    expect(json()).toMatchObject({ metadata: { name: 'bob' }, spec: { email: 'bob@example.com', groups: ['b'] } });
  });

  test("the caller's own user can be read even if the configuration defines this user", async () => {
    const { status, json } = await lab.call(await lab.login('alice'), 'GET', 'users/~');
    expect(status).toBe(200);
    expect(json()).toMatchObject({ metadata: { name: 'alice' } });
  });

  test("whoami returns the caller's own user", async () => {
    expect((await lab.call(bob, 'GET', 'whoami')).json()).toMatchObject({
      kind: 'WhoAmI',
      status: {
        userInfo: { username: 'bob', groups: ['b', 'system:authenticated'] },
        user: { displayName: 'Bob', email: 'bob@example.com' },
      },
    });
  });

  test.each([
    ['a merge patch', 'PATCH', { spec: { displayName: 'Bobby' } }, merge],
    ['a JSON Patch', 'PATCH', [{ op: 'replace', path: '/spec/displayName', value: 'Bobby' }], jsonPatch],
    [
      'a whole object',
      'PUT',
      {
        metadata: { name: 'bob' },
        spec: { displayName: 'Bobby', email: 'bob@example.com', groups: ['b'], state: 'Active' },
      },
      'application/json',
    ],
  ])(
    "the displayName of the caller's own user can be changed with %s, and the response and the next read show the change",
    async (_, method, body, type) => {
      const response = await lab.call(bob, method, 'users/~', body, type);
      expect(response).toMatchObject({ status: 200 });
      expect(response.json()).toMatchObject({ spec: { displayName: 'Bobby', groups: ['b'] } });
      expect((await lab.call(bob, 'GET', 'users/~')).json()).toMatchObject({ spec: { displayName: 'Bobby' } });
      const uid = lab.users.get('bob')?.metadata.uid;
      expect(writes()).toEqual([
        expect.objectContaining({ headers: {}, body: { metadata: { uid }, spec: { displayName: 'Bobby' } } }),
      ]);
    },
  );

  // evidence: own-user-groups
  test.each([
    ['displayName and groups', 'PATCH', { spec: { displayName: 'B', groups: ['platform:admins'] } }, merge],
    ['only groups', 'PATCH', { spec: { groups: ['b', 'platform:admins'] } }, merge],
    ['state', 'PATCH', { spec: { state: 'Disabled' } }, merge],
    ['email', 'PATCH', { spec: { email: 'eve@example.com' } }, merge],
    ['passwordChangeRequired', 'PATCH', { spec: { passwordChangeRequired: false } }, merge],
    ['labels', 'PATCH', { metadata: { labels: { a: 'b' } } }, merge],
    ['owner references', 'PATCH', { metadata: { ownerReferences: [] }, spec: { displayName: 'B' } }, merge],
    ['status', 'PATCH', { status: {}, spec: { displayName: 'B' } }, merge],
    ['the whole spec', 'PATCH', { spec: null }, merge],
    ['an invalid displayName', 'PATCH', { spec: { displayName: { groups: ['x'] } } }, merge],
    ['an empty object', 'PATCH', {}, merge],
    ['a list', 'PATCH', [], merge],
    ['groups in a JSON Patch', 'PATCH', [{ op: 'add', path: '/spec/groups/-', value: 'platform:admins' }], jsonPatch],
    ['spec in a JSON Patch', 'PATCH', [{ op: 'replace', path: '/spec', value: {} }], jsonPatch],
    ['an escaped path in a JSON Patch', 'PATCH', [{ op: 'add', path: '/spec~1displayName', value: 'x' }], jsonPatch],
    ['a copy in a JSON Patch', 'PATCH', [{ op: 'copy', from: '/spec/groups/0', path: '/spec/displayName' }], jsonPatch],
    [
      'displayName and then groups in a JSON Patch',
      'PATCH',
      [
        { op: 'add', path: '/spec/displayName', value: 'x' },
        { op: 'add', path: '/spec/groups/-', value: 'y' },
      ],
      jsonPatch,
    ],
    [
      'groups in a whole object',
      'PUT',
      { metadata: { name: 'bob' }, spec: { email: 'bob@example.com', groups: [], state: 'Active' } },
      'application/json',
    ],
    [
      'another name',
      'PUT',
      { metadata: { name: 'carol' }, spec: { email: 'bob@example.com', groups: ['b'], state: 'Active' } },
      'application/json',
    ],
    ['null', 'PUT', null, 'application/json'],
  ])("the caller's own user cannot be changed by a request with %s", async (_, method, body, type) => {
    expect(await lab.call(bob, method, 'users/bob', body, type)).toMatchObject({ status: 403 });
    expect(writes()).toEqual([]);
  });

  test("the caller's own user cannot be created or deleted without rights", async () => {
    const user = { apiVersion: 'iam.platform.io/v1alpha2', kind: 'User', metadata: { name: 'bob' }, spec: {} };
    expect(await lab.call(bob, 'DELETE', 'users/~')).toMatchObject({ status: 403 });
    expect(await lab.call(bob, 'POST', 'users', user)).toMatchObject({ status: 403 });
    expect(writes()).toEqual([]);
  });

  test("the caller's own user cannot be changed through the API if the configuration defines this user", async () => {
    const alice = await lab.login('alice');
    const response = await lab.call(alice, 'PATCH', 'users/~', { spec: { displayName: 'x' } }, merge);
    expect(response).toMatchObject({ status: 403 });
    expect(response.text).toContain('cluster configuration object');
  });
});

describe('a write to a user', () => {
  const identity = { 'impersonate-user': 'bob', 'impersonate-group': ['b'] };
  beforeEach(() => may('create users', 'update users', 'patch users', 'delete users'));

  test('a write to a user is sent to kube-apiserver with the identity of the caller, and the next read shows the change', async () => {
    may('get users', 'create users', 'patch users', 'delete users');
    const body = {
      apiVersion: 'iam.platform.io/v1alpha2',
      kind: 'User',
      metadata: { name: 'dora' },
      spec: { groups: ['d'] },
    };
    const made = await lab.call(bob, 'POST', 'users?dryRun=All', body);
    expect(made).toMatchObject({ status: 201 });
    expect(writes()).toMatchObject([
      { method: 'POST', path: usersPath, query: { dryRun: 'All' }, headers: identity, body },
    ]);
    await settle();
    expect(await lab.call(bob, 'PATCH', 'users/dora', { spec: { groups: [] } }, merge)).toMatchObject({ status: 200 });
    expect((await lab.call(bob, 'GET', 'users/dora')).json()).toMatchObject({ spec: { groups: [] } });
    expect(await lab.call(bob, 'DELETE', 'users/dora')).toMatchObject({ status: 200 });
    expect(await lab.call(bob, 'GET', 'users/dora')).toMatchObject({ status: 404 });
    expect(writes()).toHaveLength(3);
    for (const one of writes()) expect(one).toMatchObject({ headers: identity });
  });

  test('a write to a user with a JSON Patch is forwarded as a JSON Patch', async () => {
    const patch = [{ op: 'test', path: '/spec/state', value: 'Disabled' }];
    await lab.call(bob, 'PATCH', 'users/carol', patch, jsonPatch);
    expect(writes()).toMatchObject([{ method: 'PATCH', contentType: jsonPatch, body: patch, headers: identity }]);
  });

  test('a write to a user gets the response of kube-apiserver if kube-apiserver rejects it', async () => {
    const response = await lab.call(bob, 'PATCH', 'users/nobody', { spec: {} }, merge);
    expect(response).toMatchObject({ status: 404 });
    expect(response.json()).toMatchObject({ kind: 'Status', reason: 'NotFound' });
  });

  test('a write to a configured user is rejected even for callers with the right to write users', async () => {
    const body = { metadata: { name: 'alice' }, spec: {} };
    expect(await lab.call(bob, 'POST', 'users', body)).toMatchObject({ status: 409 });
    for (const [method, type] of [
      ['PUT', 'application/json'],
      ['PATCH', merge],
      ['DELETE', 'application/json'],
    ] as const) {
      const response = await lab.call(bob, method, 'users/alice', method === 'DELETE' ? undefined : body, type);
      expect(response.text).toContain('cluster configuration object');
      expect(response.status).toBe(403);
    }
    expect(writes()).toEqual([]);
  });

  test.each([
    ['YAML with an alias', 'POST', 'a: &b c\nd: *b', 'application/yaml', 400],
    ['two YAML documents', 'PATCH', 'spec: {}\n---\nspec: {}', 'application/yaml', 400],
    ['YAML of another type', 'POST', 'a: b', 'text/yaml', 415],
    ['a strategic merge patch', 'PATCH', {}, 'application/strategic-merge-patch+json', 415],
    ['server-side apply', 'PATCH', {}, 'application/apply-patch+yaml', 415],
    ['invalid JSON', 'PATCH', '{', merge, 400],
    ['invalid UTF-8', 'PATCH', '{"a":"\uD800', merge, 400],
    ['more than 64 KiB', 'PATCH', ' '.repeat(64 * 1024 + 1), merge, 413],
  ])('a write to a user with %s is rejected', async (_, method, body, type, status) => {
    const path = method === 'POST' ? 'users' : 'users/carol';
    expect(await lab.call(bob, method, path, body, type)).toMatchObject({ status });
    expect(writes()).toEqual([]);
  });

  test.each([
    ['POST', 'users', undefined],
    ['PUT', 'users/carol', 'application/json'],
    ['PATCH', 'users/carol', merge],
    ['DELETE', 'users/carol', undefined],
  ])('the write %s %s in YAML is sent to kube-apiserver as JSON', async (method, path, contentType) => {
    const body = '# a comment\nmetadata: {name: carol}\nspec:\n  displayName: Carol\n';
    await lab.call(bob, method, path, body, 'application/yaml; charset=utf-8');
    const value = { metadata: { name: 'carol' }, spec: { displayName: 'Carol' } };
    expect(writes()).toMatchObject([{ method, body: value, contentType }]);
  });

  test('a write to a user with an unknown parameter gets 400', async () => {
    expect(await lab.call(bob, 'DELETE', 'users/carol?force=true')).toMatchObject({ status: 400 });
    expect(writes()).toEqual([]);
  });
});

describe('the body of a request about users', () => {
  const nested = '['.repeat(512 * 1024) + ']'.repeat(512 * 1024);
  const requests = [
    ['POST', 'users', 'application/json'],
    ['PUT', 'users/carol', 'application/json'],
    ['PATCH', 'users/carol', merge],
    ['PATCH', 'users/carol', jsonPatch],
    ['DELETE', 'users/carol', 'application/json'],
    ['PUT', 'users/carol/password', 'application/json'],
  ] as const;

  test.each(requests)(
    'a request about users by a caller without the required right gets 403, whatever the body: %s %s (%s)',
    async (...request) => {
      const [method, path, type] = request;
      for (const body of [nested, '{', ' '.repeat(64 * 1024 + 1)])
        expect(await lab.call(bob, method, path, body, type)).toMatchObject({ status: 403 });
    },
  );

  test.each(requests)(
    'a request about users gets 400 if its JSON has more than 64 levels of nesting: %s %s (%s)',
    async (...request) => {
      const [method, path, type] = request;
      may('create users', 'update users', 'patch users', 'delete users', 'update users/password');
      const response = await lab.call(bob, method, path, '['.repeat(65) + ']'.repeat(65), type);
      expect(response).toMatchObject({ status: 400 });
      expect(response.json()).toMatchObject({ message: 'the body is nested deeper than 64 levels' });
      expect(await lab.call(bob, method, path, nested, type)).toMatchObject({ status: 413 });
      expect(writes()).toEqual([]);
    },
  );
});
