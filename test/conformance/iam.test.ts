/** The account service (API group iam.platform.io) from outside: every endpoint, its responses and its errors. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import type { AppResponse } from '../fakes/request.ts';
import { asClient, login, startLab, type Lab } from '../labs/conformance/lab.ts';
import { expectFailure } from '../labs/conformance/status.ts';

const base = '/kapis/iam.platform.io/v1alpha2';
const apiVersion = 'iam.platform.io/v1alpha2';
const merge = 'application/merge-patch+json';
const jsonPatch = 'application/json-patch+json';
const password = 'nine lives of a cat';

let lab: Lab;
/** Tokens by user. alice, from the configuration object, has all rights. bob, a User object, has none. */
const tokens = new Map<string, string>();
let userCount = 0;

beforeAll(async () => {
  lab = await startLab();
  tokens.set('alice', await logIn('alice', login.password));
  await createUser('bob');
});
afterAll(() => lab.stop());

async function logIn(username: string, secret = password): Promise<string> {
  const response = await lab.token({ grant_type: 'password', username, password: secret, ...asClient });
  expect(response.status).toBe(200);
  return String(response.json()['access_token']);
}

/** Creates a User with a password over the API and stores a token under its name. */
async function createUser(name = `person-${(userCount += 1)}`): Promise<string> {
  const spec = { displayName: 'Bob', email: `${name}@example.com` };
  expect(await call('alice', 'POST', 'users', { metadata: { name }, spec })).toMatchObject({ status: 201 });
  expect(await call('alice', 'PUT', `users/${name}/password`, { password })).toMatchObject({ status: 200 });
  tokens.set(name, await logIn(name));
  return name;
}

/** Sends a request as `caller`, or anonymously; objects are sent as JSON. */
function call(
  caller: string | undefined,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<AppResponse> {
  const user = { apiVersion, kind: 'User' };
  const isUser = typeof body === 'object' && body !== null && 'metadata' in body && !('kind' in body);
  const sent = isUser ? { ...user, ...body } : body;
  return lab.gateway(`${base}${path === '' ? '' : `/${path}`}`, {
    method,
    headers: {
      ...(caller === undefined ? {} : { authorization: `Bearer ${tokens.get(caller) ?? caller}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof sent === 'string' ? sent : JSON.stringify(sent) }),
  });
}

const type = (text: string): Record<string, string> => ({ 'content-type': text });
const item = (response: AppResponse): Record<string, unknown> =>
  (response.json()['items'] as Record<string, unknown>[])[0] ?? {};
const nameOf = (object: unknown): string => (object as { metadata: { name: string } }).metadata.name;

function expectResponse(response: AppResponse, status: number): void {
  expect({ status: response.status, text: response.text }).toMatchObject({ status });
  expect(response.headers).toMatchObject({
    'content-type': expect.stringMatching(/^application\/json/),
    'audit-id': expect.stringMatching(/./),
    'cache-control': 'no-cache, private',
    'x-content-type-options': 'nosniff',
  });
}

function expectSuccess(response: AppResponse): void {
  expectResponse(response, 200);
  expect(response.json()).toEqual({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' });
}

function expectStatus(response: AppResponse, code: number, reason: string): void {
  expectResponse(response, code);
  expectFailure(response, code, reason);
  expect(response.headers['retry-after'] !== undefined).toBe(code === 429);
}

/** Every path with its methods. */
const paths: readonly [string, readonly string[]][] = [
  ['users', ['GET', 'POST']],
  ['users/bob', ['GET', 'PUT', 'PATCH', 'DELETE']],
  ['users/~', ['GET', 'PUT', 'PATCH', 'DELETE']],
  ['users/bob/password', ['PUT']],
  ['users/bob/unlock', ['POST']],
  ['users/bob/loginrecords', ['GET']],
  ['users/bob/sessions', ['GET', 'DELETE']],
  ['users/bob/sessions/x', ['DELETE']],
  ['whoami', ['GET']],
];
const operations = paths.flatMap(([path, methods]) => methods.map((method) => [method, path] as const));
const reads = operations.filter(([method]) => method === 'GET').map(([, path]) => path);

test('discovery lists every resource of iam.platform.io with its verbs', async () => {
  const response = await call('bob', 'GET', '');
  expectResponse(response, 200);
  expect(response.json()).toMatchObject({ kind: 'APIResourceList', groupVersion: apiVersion });
  const resources = response.json()['resources'] as { name: string; verbs: string[] }[];
  expect(Object.fromEntries(resources.map(({ name, verbs }) => [name, verbs]))).toEqual({
    users: ['create', 'delete', 'get', 'list', 'patch', 'update'],
    'users/loginrecords': ['get'],
    'users/password': ['update'],
    'users/sessions': ['delete', 'get'],
    'users/unlock': ['create'],
    whoami: ['list'],
  });
});

describe('users', () => {
  test('users from the configuration object are listed, and the list can be filtered, sorted and paged', async () => {
    const response = await call('alice', 'GET', 'users?names=alice,bob&sortBy=name&ascending=true');
    expectResponse(response, 200);
    expect(response.json()).toMatchObject({
      kind: 'UserList',
      apiVersion,
      metadata: { resourceVersion: expect.stringMatching(/^\d+$/) },
      totalItems: 2,
    });
    expect(response.json()['items']).toMatchObject([
      {
        kind: 'User',
        apiVersion,
        metadata: { name: 'alice', annotations: { 'iam.platform.io/source': 'configuration' } },
        spec: { groups: ['readers'], state: 'Active' },
      },
      { kind: 'User', apiVersion, metadata: { name: 'bob' }, spec: { displayName: 'Bob' } },
    ]);
    const page = await call('alice', 'GET', 'users?names=alice,bob&sortBy=name&limit=1&page=2');
    expect([page.json()['totalItems'], nameOf(item(page))]).toEqual([2, 'alice']);
  });

  test.each(['users/bob', 'users/~'])('users can read their own object at %s', async (path) => {
    const response = await call('bob', 'GET', path);
    expectResponse(response, 200);
    expect(response.json()).toMatchObject({
      kind: 'User',
      apiVersion,
      metadata: { name: 'bob', selfLink: `${base}/users/bob` },
      spec: { displayName: 'Bob', email: 'bob@example.com' },
    });
  });

  test('users can be created, changed and deleted, and every change is readable immediately', async () => {
    const name = 'mia';
    const made = await call('alice', 'POST', 'users', { metadata: { name }, spec: { groups: ['m'] } });
    expectResponse(made, 201);
    expect(made.json()).toMatchObject({ kind: 'User', apiVersion, metadata: { name }, spec: { groups: ['m'] } });
    const patched = await call('alice', 'PATCH', `users/${name}`, { spec: { displayName: 'Mia' } }, type(merge));
    expectResponse(patched, 200);
    const read = (await call('alice', 'GET', `users/${name}`)).json();
    expect(read).toMatchObject({ spec: { displayName: 'Mia', groups: ['m'] } });
    const { selfLink: _, ...metadata } = read['metadata'] as Record<string, unknown>;
    const replaced = await call('alice', 'PUT', `users/${name}`, { ...read, metadata, spec: { displayName: 'M' } });
    expectResponse(replaced, 200);
    expect((await call('alice', 'GET', `users/${name}`)).json()['spec']).toEqual({ displayName: 'M' });
    expectStatus(await call('alice', 'PUT', `users/${name}`, { ...read, metadata }), 409, 'Conflict');
    const deleted = await call('alice', 'DELETE', `users/${name}`);
    expectResponse(deleted, 200);
    expect(deleted.json()).toMatchObject({ kind: 'Status', status: 'Success' });
    expectStatus(await call('alice', 'GET', `users/${name}`), 404, 'NotFound');
  });

  test('users can change only the displayName of their own object, with PUT and with PATCH', async () => {
    const name = await createUser();
    const patch = { spec: { displayName: 'One' } };
    expect((await call(name, 'PATCH', 'users/~', patch, type(merge))).json()).toMatchObject(patch);
    const operation = { op: 'replace', path: '/spec/displayName', value: 'Two' };
    expect((await call(name, 'PATCH', 'users/~', [operation], type(jsonPatch))).json()).toMatchObject({
      spec: { displayName: 'Two' },
    });
    const { spec } = (await call(name, 'GET', 'users/~')).json() as { spec: object };
    const whole = { metadata: { name }, spec: { ...spec, displayName: 'Three' } };
    expectResponse(await call(name, 'PUT', 'users/~', whole), 200);
    expect((await call(name, 'GET', 'users/~')).json()).toMatchObject({ spec: { displayName: 'Three' } });
    for (const field of [{ groups: ['a'] }, { state: 'Active' }, { email: 'a@example.com' }])
      expectStatus(await call(name, 'PATCH', 'users/~', { spec: field }, type(merge)), 403, 'Forbidden');
  });

  test('users cannot be created with a resourceVersion: the request gets 400', async () => {
    const metadata = { name: 'early', resourceVersion: '7' };
    expectStatus(await call('alice', 'POST', 'users', { metadata }), 400, 'BadRequest');
  });

  test('users cannot be created with the name of another user: the request gets 409', async () => {
    for (const name of ['alice', 'bob'])
      expectStatus(await call('alice', 'POST', 'users', { metadata: { name } }), 409, 'AlreadyExists');
  });

  test('users from the configuration object cannot be changed over the API: the request gets 403', async () => {
    expectStatus(await call('alice', 'PATCH', 'users/alice', { spec: {} }, type(merge)), 403, 'Forbidden');
    expectStatus(await call('alice', 'PUT', 'users/~', { metadata: { name: 'alice' } }), 403, 'Forbidden');
    expectStatus(await call('alice', 'DELETE', 'users/alice'), 403, 'Forbidden');
  });
});

describe('a password', () => {
  const next = 'a tenth life, at least';

  test('a password change with the current password revokes all sessions of the user', async () => {
    const name = await createUser();
    expectSuccess(await call(name, 'PUT', 'users/~/password', { password: next, currentPassword: password }));
    expectStatus(await call(name, 'GET', 'whoami'), 401, 'Unauthorized');
    tokens.set(name, await logIn(name, next));
    expectSuccess(await call(name, 'PUT', `users/${name}/password`, { password, currentPassword: next }));
  });

  test('a password change by another user with the required right revokes all sessions of the user', async () => {
    const name = await createUser();
    expectSuccess(await call('alice', 'PUT', `users/${name}/password`, { password: next }));
    expectStatus(await call(name, 'GET', 'whoami'), 401, 'Unauthorized');
    await logIn(name, next);
  });

  test.each<[string, unknown, number, string]>([
    ['no body', undefined, 400, 'BadRequest'],
    ['invalid JSON', '{', 400, 'BadRequest'],
    ['no password', {}, 400, 'BadRequest'],
    ['a password that is a number', { password: 1, currentPassword: password }, 400, 'BadRequest'],
    ['an unknown field', { password: next, currentPassword: password, username: 'alice' }, 400, 'BadRequest'],
    ['a list as its body', [], 400, 'BadRequest'],
    ['no current password', { password: next }, 422, 'Invalid'],
    ['a short password', { password: 'short', currentPassword: password }, 422, 'Invalid'],
    ['a long password', { password: 'x'.repeat(1_025), currentPassword: password }, 422, 'Invalid'],
    ['a common password', { password: 'password1', currentPassword: password }, 422, 'Invalid'],
    ['the current password as the new one', { password, currentPassword: password }, 422, 'Invalid'],
    ['a wrong current password', { password: next, currentPassword: 'wrong' }, 422, 'Invalid'],
  ])('a password change with %s is rejected', async (_, body, code, reason) => {
    const response = await call('bob', 'PUT', 'users/~/password', body);
    expectStatus(response, code, reason);
    for (const secret of [password, next]) expect(response.text).not.toContain(secret);
  });

  test.each([
    ['password', { password: 'short', currentPassword: password }],
    ['currentPassword', { password: next }],
    ['currentPassword', { password: next, currentPassword: 'wrong' }],
  ])('a rejected password change names the invalid field "%s"', async (field, body) => {
    const response = await call('bob', 'PUT', 'users/~/password', body);
    expect(response.json()['details']).toEqual({
      name: 'bob',
      group: 'iam.platform.io',
      kind: 'User',
      causes: [{ reason: 'FieldValueInvalid', field, message: expect.stringMatching(/./) }],
    });
  });

  test('password changes with a wrong current password count as failed logins until the user is unlocked', async () => {
    const name = await createUser();
    const guess = (currentPassword: string): Promise<AppResponse> =>
      call(name, 'PUT', 'users/~/password', { password: next, currentPassword });
    for (let tries = 0; tries < 5; tries += 1) expectStatus(await guess('wrong'), 422, 'Invalid');
    const response = await guess(password);
    expectStatus(response, 429, 'TooManyRequests');
    expect(response.json()['details']).toEqual({ retryAfterSeconds: Number(response.headers['retry-after']) });
    expectSuccess(await call('alice', 'POST', `users/${name}/unlock`));
    expectSuccess(await guess(password));
  });

  test('a request to change a password from the configuration object, or to unlock its user, gets 403', async () => {
    const body = { password: next, currentPassword: login.password };
    expectStatus(await call('alice', 'PUT', 'users/~/password', body), 403, 'Forbidden');
    expectStatus(await call('alice', 'POST', 'users/alice/unlock'), 403, 'Forbidden');
  });
});

test('login records of a user are returned from newest to oldest', async () => {
  const name = await createUser();
  const wrong = { grant_type: 'password', username: name, password: 'wrong', ...asClient };
  expect((await lab.token(wrong)).status).toBe(400);
  for (const caller of [name, 'alice']) {
    const response = await call(caller, 'GET', `users/${name}/loginrecords`);
    expectResponse(response, 200);
    expect(response.json()).toEqual({
      kind: 'LoginRecordList',
      apiVersion,
      metadata: {},
      items: [expect.objectContaining({ success: false }), expect.objectContaining({ success: true })],
      totalItems: 2,
    });
    expect(item(response)).toEqual({
      kind: 'LoginRecord',
      apiVersion,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      success: false,
      reason: expect.stringMatching(/^[A-Z]\w+$/),
      client: 'platform',
      sourceIP: '127.0.0.1',
      userAgent: expect.any(String),
    });
    const one = await call(caller, 'GET', `users/${name}/loginrecords?limit=1`);
    expect([one.json()['totalItems'], (one.json()['items'] as unknown[]).length]).toEqual([2, 1]);
  }
});

describe('sessions', () => {
  test('sessions are listed and revoked, one at a time or all at once', async () => {
    const name = await createUser();
    const other = await logIn(name);
    const list = await call(name, 'GET', 'users/~/sessions');
    expectResponse(list, 200);
    expect(list.json()).toMatchObject({ kind: 'SessionList', apiVersion, metadata: {}, totalItems: 2 });
    const items = list.json()['items'] as Record<string, unknown>[];
    for (const one of items)
      expect(one).toEqual({
        kind: 'Session',
        apiVersion,
        metadata: { name: expect.any(String), creationTimestamp: expect.any(String) },
        spec: {
          userName: name,
          clientID: 'platform',
          createdAt: expect.any(String),
          expiresAt: expect.any(String),
          sourceIP: '127.0.0.1',
          userAgent: expect.any(String),
        },
        status: { phase: 'Active', lastUsedAt: expect.any(String) },
        current: expect.any(Boolean),
      });
    const [another] = items.filter(({ current }) => current === false);
    expectSuccess(await call(name, 'DELETE', `users/~/sessions/${nameOf(another)}`));
    expectStatus(await call(other, 'GET', 'whoami'), 401, 'Unauthorized');
    expectStatus(await call(name, 'DELETE', `users/~/sessions/${nameOf(another)}`), 404, 'NotFound');
    expectResponse(await call(name, 'GET', 'whoami'), 200);
    expectSuccess(await call('alice', 'DELETE', `users/${name}/sessions`));
    expectStatus(await call(name, 'GET', 'whoami'), 401, 'Unauthorized');
    expect((await call('alice', 'GET', `users/${name}/sessions`)).json()).toMatchObject({ items: [], totalItems: 0 });
  });

  test('sessions of another user cannot be revoked under users/~: the request gets 404', async () => {
    const name = await createUser();
    const [session] = (await call(name, 'GET', 'users/~/sessions')).json()['items'] as unknown[];
    expectStatus(await call('bob', 'DELETE', `users/~/sessions/${nameOf(session)}`), 404, 'NotFound');
    expectResponse(await call(name, 'GET', 'whoami'), 200);
  });
});

test('whoami returns the identity of the caller', async () => {
  const response = await call('bob', 'GET', 'whoami');
  expectResponse(response, 200);
  expect(response.json()).toEqual({
    kind: 'WhoAmI',
    apiVersion,
    metadata: {},
    status: {
      userInfo: { username: 'bob', uid: expect.any(String), groups: ['system:authenticated'] },
      user: { displayName: 'Bob', email: 'bob@example.com', passwordChangeRequired: false },
    },
  });
});

describe('the account service', () => {
  test.each(operations)('the account service returns 401 for %s %s without a valid token', async (method, path) => {
    expectStatus(await call(undefined, method, path), 401, 'Unauthorized');
    const response = await call('nonsense', method, path);
    expectStatus(response, 401, 'Unauthorized');
    expect(response.headers['www-authenticate']).toBe('Bearer realm="platform", error="invalid_token"');
  });

  test.each<[string, string, unknown]>([
    ['GET', 'users', undefined],
    ['POST', 'users', { metadata: { name: 'alice' } }],
    ['GET', 'users/alice', undefined],
    ['GET', 'users/nobody', undefined],
    ['PATCH', 'users/alice', {}],
    ['DELETE', 'users/alice', undefined],
    ['PUT', 'users/alice/password', { password }],
    ['PUT', 'users/nobody/password', { password }],
    ['POST', 'users/alice/unlock', undefined],
    ['POST', 'users/bob/unlock', undefined],
    ['POST', 'users/~/unlock', undefined],
    ['GET', 'users/alice/loginrecords', undefined],
    ['GET', 'users/alice/sessions', undefined],
    ['GET', 'users/nobody/sessions', undefined],
    ['DELETE', 'users/alice/sessions', undefined],
    ['DELETE', 'users/alice/sessions/x', undefined],
  ])(
    'the account service returns 403 with the message of kube-apiserver for %s %s without the right',
    async (method, path, body) => {
      const response = await call('bob', method, path, body, method === 'PATCH' ? type(merge) : {});
      expectStatus(response, 403, 'Forbidden');
      expect(response.json()['message']).toMatch(/^users\.iam\.platform\.io (".*" )?is forbidden: User "bob" cannot /);
    },
  );

  test.each<[string, string, unknown]>([
    ['GET', 'users/nobody', undefined],
    ['PUT', 'users/nobody', { metadata: { name: 'nobody' } }],
    ['PATCH', 'users/nobody', {}],
    ['DELETE', 'users/nobody', undefined],
    ['PUT', 'users/nobody/password', { password }],
    ['POST', 'users/nobody/unlock', undefined],
    ['GET', 'users/nobody/loginrecords', undefined],
    ['GET', 'users/nobody/sessions', undefined],
    ['DELETE', 'users/nobody/sessions', undefined],
    ['DELETE', 'users/nobody/sessions/x', undefined],
    ['DELETE', 'users/bob/sessions/x', undefined],
    ['GET', 'users/bob/other', undefined],
    ['GET', 'other', undefined],
  ])('the account service returns 404 for %s %s, which does not exist', async (method, path, body) => {
    expectStatus(await call('alice', method, path, body, method === 'PATCH' ? type(merge) : {}), 404, 'NotFound');
  });

  test.each(paths)(
    'the account service returns 405 for unsupported methods at %s and lists the allowed methods: %j',
    async (path, methods) => {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((one) => !methods.includes(one))) {
        const response = await call('alice', method, path);
        expectStatus(response, 405, 'MethodNotAllowed');
        const allowed = response.headers.allow?.split(', ').filter((one) => one !== 'HEAD');
        expect(allowed?.toSorted()).toEqual(methods.toSorted());
      }
    },
  );

  test.each(reads)('the account service returns 406 for GET %s in an unsupported media type', async (path) => {
    expectStatus(await call('alice', 'GET', path, undefined, { accept: 'text/html' }), 406, 'NotAcceptable');
    expectResponse(await call('alice', 'GET', path, undefined, { accept: 'text/html, */*;q=0.1' }), 200);
  });

  test.each(reads)('the account service returns %s as YAML with the same values as JSON', async (path) => {
    const json = await call('alice', 'GET', path);
    const yaml = await call('alice', 'GET', path, undefined, { accept: 'application/yaml' });
    expect(yaml.headers['content-type']).toBe('application/yaml');
    expect(parse(yaml.text)).toEqual(json.json());
  });

  test.each(operations)(
    'the account service returns 400 for %s %s with an unknown parameter, and the error names the parameter',
    async (method, path) => {
      // The server checks first that a user is not from the configuration object, as alice is; bob is not allowed to
      // delete himself.
      const [caller, target] =
        path !== 'users/~' ? ['alice', path] : method === 'DELETE' ? ['alice', 'users/bob'] : ['bob', path];
      const body = method === 'PUT' || method === 'PATCH' ? bodyOf(path) : undefined;
      const response = await call(caller, method, `${target}?nothing=1`, body, method === 'PATCH' ? type(merge) : {});
      expectStatus(response, 400, 'BadRequest');
      expect(response.json()['message']).toContain('nothing');
    },
  );

  test.each([
    ['DELETE', 'users/bob/sessions?pretty=2'],
    ['DELETE', 'users/bob/sessions/x?pretty=2'],
    ['POST', 'users/bob/unlock?pretty='],
    ['PUT', 'users/bob/password?pretty=2'],
    ['DELETE', 'users/bob?fieldManager=x'],
    ['PATCH', 'users/bob?gracePeriodSeconds=1'],
  ])('the account service rejects an invalid parameter: %s %s gets 400', async (method, path) => {
    const body = method === 'PATCH' ? {} : method === 'PUT' ? { password } : undefined;
    const response = await call('alice', method, path, body, method === 'PATCH' ? type(merge) : {});
    expectStatus(response, 400, 'BadRequest');
  });

  test.each(['users?watch=true', 'users?limit=x', 'users?page=0', 'users?labelSelector=%3D', 'users?status=Gone'])(
    'the account service rejects an invalid parameter: GET %s gets 400',
    async (path) => expectStatus(await call('alice', 'GET', path), 400, 'BadRequest'),
  );

  test.each(['users/bob/loginrecords?limit=x', 'users/bob/loginrecords?limit=-2'])(
    'the account service rejects an invalid limit: GET %s gets 400',
    async (path) => expectStatus(await call('alice', 'GET', path), 400, 'BadRequest'),
  );

  test.each<[string, string]>([
    ['POST', 'users'],
    ['PUT', 'users/bob'],
    ['PATCH', 'users/bob'],
    ['PUT', 'users/bob/password'],
  ])(
    'the account service rejects malformed, oversized and non-JSON bodies with 400, 413 or 415: %s %s',
    async (method, path) => {
      const json = type(method === 'PATCH' ? merge : 'application/json');
      expectStatus(await call('alice', method, path, '{', json), 400, 'BadRequest');
      expectStatus(await call('alice', method, path, `"${'x'.repeat(1_048_576)}"`, json), 413, 'RequestEntityTooLarge');
      const others = path.endsWith('password') ? ['application/yaml'] : ['text/yaml', 'application/x-yaml'];
      for (const wrong of ['text/plain', 'application/x-www-form-urlencoded', ...others]) {
        const response = await call('alice', method, path, 'a: b', type(wrong));
        expectStatus(response, 415, 'UnsupportedMediaType');
        expect(response.text).toContain(json['content-type']);
        expect(response.text.includes('application/yaml')).toBe(!path.endsWith('password'));
      }
      const send = (headers: Record<string, string>) => call('alice', method, path, '{}', { ...json, ...headers });
      const compressed = await send({ 'content-encoding': 'gzip' });
      expectStatus(compressed, 415, 'UnsupportedMediaType');
      expect(compressed.json()['message']).toBe('the body must not be compressed');
      for (const charset of ['utf-16', 'latin1', '"iso-8859-1"', 'utf-80'])
        expectStatus(await send(type(`${json['content-type']}; charset=${charset}`)), 415, 'UnsupportedMediaType');
    },
  );
});

const userInYAML = (name: string, displayName: string): string =>
  `# a user\napiVersion: ${apiVersion}\nkind: User\nmetadata:\n  name: ${name}\nspec:\n  displayName: ${displayName}\n`;
const displayNameOf = (response: AppResponse): unknown =>
  (parse(response.text) as { spec?: { displayName?: unknown } }).spec?.displayName;

describe('a user in YAML', () => {
  const yaml = 'application/yaml';
  const inYAML = { 'content-type': yaml, accept: yaml };
  test('a user in YAML is created, replaced, patched and deleted, and returned as YAML', async () => {
    for (const [method, path, body, status, displayName] of [
      ['POST', 'users', userInYAML('in-yaml', 'First'), 201, 'First'],
      ['PUT', 'users/in-yaml', userInYAML('in-yaml', 'Second'), 200, 'Second'],
      ['PATCH', 'users/in-yaml', 'spec: {displayName: Third}', 200, 'Third'],
      ['DELETE', 'users/in-yaml', 'propagationPolicy: Background', 200, undefined],
    ] as const) {
      const response = await call('alice', method, path, body, inYAML);
      expect([response.status, response.headers['content-type'], displayNameOf(response)]).toEqual([
        status,
        yaml,
        displayName,
      ]);
    }
  });

  test('users can send YAML in PUT and PATCH requests for their own object, and change only its displayName', async () => {
    const name = await createUser();
    const own = await call(name, 'GET', `users/${name}`, undefined, { accept: yaml });
    const changed = own.text.replace('displayName: Bob', 'displayName: Robert');
    expect(displayNameOf(await call(name, 'PUT', `users/${name}`, changed, inYAML))).toBe('Robert');
    const patched = await call(name, 'PATCH', `users/${name}`, 'spec: {email: a@b.example}', type(yaml));
    expectStatus(patched, 403, 'Forbidden');
  });

  test('a user in YAML is parsed only after authorization', async () => {
    expectStatus(await call('bob', 'POST', 'users', 'a: &b', type(yaml)), 403, 'Forbidden');
    expectStatus(await call(undefined, 'POST', 'users', 'a: &b', type(yaml)), 401, 'Unauthorized');
  });

  test.each([
    ['spec: {}\nmetadata: &secret {}', 'line 2, column 11: anchors are not accepted'],
    ['spec: {}\nspec: {}', 'line 2, column 1: duplicate key'],
    ['spec: {}\n---\nspec: {}', 'line 2, column 1: only one document is allowed'],
    ['spec:\n  secret: "', 'line 2, column 12: a quote, bracket, colon, comma or space is missing'],
    ['- a\n'.repeat(1_000), 'at most 1000 tokens (about 200 lines) are accepted; send JSON'],
  ])('a user in YAML gets 400 with line and column for the text %j', async (body, message) => {
    for (const [method, path] of [
      ['POST', 'users'],
      ['PUT', 'users/bob'],
      ['PATCH', 'users/bob'],
    ] as const) {
      const response = await call('alice', method, path, body, type(yaml));
      expectStatus(response, 400, 'BadRequest');
      expect(response.json()['message']).toContain(`the body is not accepted as YAML: line `);
      expect(response.json()['message']).toContain(message);
      expect(response.text).not.toContain('secret');
    }
  });

  test('a user in YAML that exceeds 64 KiB gets 413', async () => {
    const body = `a: ${'x'.repeat(65_536)}`;
    const response = await call('alice', 'POST', 'users', body, type(yaml));
    expectStatus(response, 413, 'RequestEntityTooLarge');
  });
});

/** Returns a valid body if the path expects one. */
const bodyOf = (path: string): unknown =>
  path.endsWith('password') ? { password } : path.split('/').length < 3 ? { metadata: { name: 'bob' } } : undefined;

test.each(reads)('the account service returns the headers of GET without a body for HEAD %s', async (path) => {
  const [get, head] = [await call('alice', 'GET', path), await call('alice', 'HEAD', path)];
  expect([head.status, head.text, head.headers['content-length']]).toEqual([200, '', get.headers['content-length']]);
});

test('no response of the account service contains a hash or a password', async () => {
  for (const path of [...reads, 'users?managedFields=true'])
    expect((await call('alice', 'GET', path)).text).not.toMatch(/\$2[aby]\$|\$argon2|nine lives|correct horse/);
});
