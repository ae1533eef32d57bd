/** The account service from outside (API group iam.platform.io): every endpoint, what it answers, and how it refuses. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Answer } from '../fakes/ask.ts';
import { asClient, login, startLab, type Lab } from '../labs/conformance/lab.ts';
import { expectFailure } from '../labs/conformance/status.ts';

const base = '/kapis/iam.platform.io/v1alpha2';
const apiVersion = 'iam.platform.io/v1alpha2';
const merge = 'application/merge-patch+json';
const jsonPatch = 'application/json-patch+json';
const password = 'nine lives of a cat';

let lab: Lab;
/** Tokens: of alice, who may do everything and stands in the configuration, and of bob, a User, who may do nothing. */
const tokens = new Map<string, string>();
let people = 0;

beforeAll(async () => {
  lab = await startLab();
  tokens.set('alice', await logIn('alice', login.password));
  await makePerson('bob');
});
afterAll(() => lab.stop());

async function logIn(username: string, secret = password): Promise<string> {
  const answer = await lab.token({ grant_type: 'password', username, password: secret, ...asClient });
  expect(answer.status).toBe(200);
  return String(answer.json()['access_token']);
}

/** A User with a password, both by the API itself; the token is kept by the name. */
async function makePerson(name = `person-${(people += 1)}`): Promise<string> {
  const spec = { displayName: 'Bob', email: `${name}@example.com` };
  expect(await call('alice', 'POST', 'users', { metadata: { name }, spec })).toMatchObject({ status: 201 });
  expect(await call('alice', 'PUT', `users/${name}/password`, { password })).toMatchObject({ status: 200 });
  tokens.set(name, await logIn(name));
  return name;
}

/** A request of `who`, or of nobody; an object is sent as JSON. */
function call(
  who: string | undefined,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const users = { apiVersion, kind: 'User' };
  const isUser = typeof body === 'object' && body !== null && 'metadata' in body && !('kind' in body);
  const sent = isUser ? { ...users, ...body } : body;
  return lab.gateway(`${base}${path === '' ? '' : `/${path}`}`, {
    method,
    headers: {
      ...(who === undefined ? {} : { authorization: `Bearer ${tokens.get(who) ?? who}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof sent === 'string' ? sent : JSON.stringify(sent) }),
  });
}

const type = (text: string): Record<string, string> => ({ 'content-type': text });
const item = (answer: Answer): Record<string, unknown> =>
  (answer.json()['items'] as Record<string, unknown>[])[0] ?? {};
const nameOf = (object: unknown): string => (object as { metadata: { name: string } }).metadata.name;

function expectAnswer(answer: Answer, status: number): void {
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status });
  expect(answer.headers).toMatchObject({
    'content-type': expect.stringMatching(/^application\/json/),
    'audit-id': expect.stringMatching(/./),
    'cache-control': 'no-cache, private',
    'x-content-type-options': 'nosniff',
  });
}

function expectDone(answer: Answer): void {
  expectAnswer(answer, 200);
  expect(answer.json()).toEqual({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' });
}

function expectStatus(answer: Answer, code: number, reason: string): void {
  expectAnswer(answer, code);
  expectFailure(answer, code, reason);
  expect(answer.headers['retry-after'] !== undefined).toBe(code === 429);
}

/** Every path, and the methods that it has. */
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

test('discovery names every resource, with its verbs', async () => {
  const answer = await call('bob', 'GET', '');
  expectAnswer(answer, 200);
  expect(answer.json()).toMatchObject({ kind: 'APIResourceList', groupVersion: apiVersion });
  const resources = answer.json()['resources'] as { name: string; verbs: string[] }[];
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
  test('are listed, configured ones too, in the list language', async () => {
    const answer = await call('alice', 'GET', 'users?names=alice,bob&sortBy=name&ascending=true');
    expectAnswer(answer, 200);
    expect(answer.json()).toMatchObject({
      kind: 'UserList',
      apiVersion,
      metadata: { resourceVersion: expect.stringMatching(/^\d+$/) },
      totalItems: 2,
    });
    expect(answer.json()['items']).toMatchObject([
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

  test.each(['users/bob', 'users/~'])('%s is read by oneself', async (path) => {
    const answer = await call('bob', 'GET', path);
    expectAnswer(answer, 200);
    expect(answer.json()).toMatchObject({
      kind: 'User',
      apiVersion,
      metadata: { name: 'bob', selfLink: `${base}/users/bob` },
      spec: { displayName: 'Bob', email: 'bob@example.com' },
    });
  });

  test('are made, changed and deleted, and each read shows the write before', async () => {
    const name = 'mia';
    const made = await call('alice', 'POST', 'users', { metadata: { name }, spec: { groups: ['m'] } });
    expectAnswer(made, 201);
    expect(made.json()).toMatchObject({ kind: 'User', apiVersion, metadata: { name }, spec: { groups: ['m'] } });
    const patched = await call('alice', 'PATCH', `users/${name}`, { spec: { displayName: 'Mia' } }, type(merge));
    expectAnswer(patched, 200);
    const read = (await call('alice', 'GET', `users/${name}`)).json();
    expect(read).toMatchObject({ spec: { displayName: 'Mia', groups: ['m'] } });
    const { selfLink: _, ...metadata } = read['metadata'] as Record<string, unknown>;
    const replaced = await call('alice', 'PUT', `users/${name}`, { ...read, metadata, spec: { displayName: 'M' } });
    expectAnswer(replaced, 200);
    expect((await call('alice', 'GET', `users/${name}`)).json()['spec']).toEqual({ displayName: 'M' });
    expectStatus(await call('alice', 'PUT', `users/${name}`, { ...read, metadata }), 409, 'Conflict');
    const deleted = await call('alice', 'DELETE', `users/${name}`);
    expectAnswer(deleted, 200);
    expect(deleted.json()).toMatchObject({ kind: 'Status', status: 'Success' });
    expectStatus(await call('alice', 'GET', `users/${name}`), 404, 'NotFound');
  });

  test('change their own displayName, by each form of a change, and nothing else', async () => {
    const name = await makePerson();
    const patch = { spec: { displayName: 'One' } };
    expect((await call(name, 'PATCH', 'users/~', patch, type(merge))).json()).toMatchObject(patch);
    const operation = { op: 'replace', path: '/spec/displayName', value: 'Two' };
    expect((await call(name, 'PATCH', 'users/~', [operation], type(jsonPatch))).json()).toMatchObject({
      spec: { displayName: 'Two' },
    });
    const { spec } = (await call(name, 'GET', 'users/~')).json() as { spec: object };
    const whole = { metadata: { name }, spec: { ...spec, displayName: 'Three' } };
    expectAnswer(await call(name, 'PUT', 'users/~', whole), 200);
    expect((await call(name, 'GET', 'users/~')).json()).toMatchObject({ spec: { displayName: 'Three' } });
    for (const field of [{ groups: ['a'] }, { state: 'Active' }, { email: 'a@example.com' }])
      expectStatus(await call(name, 'PATCH', 'users/~', { spec: field }, type(merge)), 403, 'Forbidden');
  });

  test('are not made as what they will be: a resourceVersion is 400', async () => {
    const metadata = { name: 'early', resourceVersion: '7' };
    expectStatus(await call('alice', 'POST', 'users', { metadata }), 400, 'BadRequest');
  });

  test('whose names are taken are not made: 409', async () => {
    for (const name of ['alice', 'bob'])
      expectStatus(await call('alice', 'POST', 'users', { metadata: { name } }), 409, 'AlreadyExists');
  });

  test('that are configured are not written here: 403', async () => {
    expectStatus(await call('alice', 'PATCH', 'users/alice', { spec: {} }, type(merge)), 403, 'Forbidden');
    expectStatus(await call('alice', 'PUT', 'users/~', { metadata: { name: 'alice' } }), 403, 'Forbidden');
    expectStatus(await call('alice', 'DELETE', 'users/alice'), 403, 'Forbidden');
  });
});

describe('a password', () => {
  const next = 'a tenth life, at least';

  test('of one’s own is changed with the current one, and ends all sessions', async () => {
    const name = await makePerson();
    expectDone(await call(name, 'PUT', 'users/~/password', { password: next, currentPassword: password }));
    expectStatus(await call(name, 'GET', 'whoami'), 401, 'Unauthorized');
    tokens.set(name, await logIn(name, next));
    expectDone(await call(name, 'PUT', `users/${name}/password`, { password, currentPassword: next }));
  });

  test('of somebody else is set by who may, and ends all sessions', async () => {
    const name = await makePerson();
    expectDone(await call('alice', 'PUT', `users/${name}/password`, { password: next }));
    expectStatus(await call(name, 'GET', 'whoami'), 401, 'Unauthorized');
    await logIn(name, next);
  });

  test.each<[string, unknown, number, string]>([
    ['no body', undefined, 400, 'BadRequest'],
    ['no JSON', '{', 400, 'BadRequest'],
    ['no password', {}, 400, 'BadRequest'],
    ['a number', { password: 1, currentPassword: password }, 400, 'BadRequest'],
    ['another field', { password: next, currentPassword: password, username: 'alice' }, 400, 'BadRequest'],
    ['a list', [], 400, 'BadRequest'],
    ['without the current one', { password: next }, 422, 'Invalid'],
    ['that is short', { password: 'short', currentPassword: password }, 422, 'Invalid'],
    ['that is long', { password: 'x'.repeat(1_025), currentPassword: password }, 422, 'Invalid'],
    ['that is common', { password: 'password1', currentPassword: password }, 422, 'Invalid'],
    ['that it is already', { password, currentPassword: password }, 422, 'Invalid'],
    ['with a wrong current one', { password: next, currentPassword: 'wrong' }, 403, 'Forbidden'],
  ])('is refused, %s', async (_, body, code, reason) => {
    const answer = await call('bob', 'PUT', 'users/~/password', body);
    expectStatus(answer, code, reason);
    for (const secret of [password, next]) expect(answer.text).not.toContain(secret);
  });

  test('that is refused is told what is wrong with which field', async () => {
    const answer = await call('bob', 'PUT', 'users/~/password', { password: 'short', currentPassword: password });
    expect(answer.json()['details']).toEqual({
      name: 'bob',
      group: 'iam.platform.io',
      kind: 'User',
      causes: [{ reason: 'FieldValueInvalid', field: 'password', message: expect.stringMatching(/./) }],
    });
  });

  test('is guessed at as at a login: 429, until the user is unlocked', async () => {
    const name = await makePerson();
    const guess = (currentPassword: string): Promise<Answer> =>
      call(name, 'PUT', 'users/~/password', { password: next, currentPassword });
    for (let tries = 0; tries < 5; tries += 1) expectStatus(await guess('wrong'), 403, 'Forbidden');
    const answer = await guess(password);
    expectStatus(answer, 429, 'TooManyRequests');
    expect(answer.json()['details']).toEqual({ retryAfterSeconds: Number(answer.headers['retry-after']) });
    expectDone(await call('alice', 'POST', `users/${name}/unlock`));
    expectDone(await guess(password));
  });

  test('in the configuration object is changed there, and unlocked nowhere: 403', async () => {
    const body = { password: next, currentPassword: login.password };
    expectStatus(await call('alice', 'PUT', 'users/~/password', body), 403, 'Forbidden');
    expectStatus(await call('alice', 'POST', 'users/alice/unlock'), 403, 'Forbidden');
  });
});

test('the login records of a user, the newest first', async () => {
  const name = await makePerson();
  const wrong = { grant_type: 'password', username: name, password: 'wrong', ...asClient };
  expect((await lab.token(wrong)).status).toBe(400);
  for (const who of [name, 'alice']) {
    const answer = await call(who, 'GET', `users/${name}/loginrecords`);
    expectAnswer(answer, 200);
    expect(answer.json()).toEqual({
      kind: 'LoginRecordList',
      apiVersion,
      metadata: {},
      items: [expect.objectContaining({ success: false }), expect.objectContaining({ success: true })],
      totalItems: 2,
    });
    expect(item(answer)).toEqual({
      kind: 'LoginRecord',
      apiVersion,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      success: false,
      reason: expect.stringMatching(/^[A-Z]\w+$/),
      client: 'platform',
      sourceIP: '127.0.0.1',
      userAgent: expect.any(String),
    });
    const one = await call(who, 'GET', `users/${name}/loginrecords?limit=1`);
    expect([one.json()['totalItems'], (one.json()['items'] as unknown[]).length]).toEqual([2, 1]);
  }
});

describe('sessions', () => {
  test('are listed, ended one by one, and all', async () => {
    const name = await makePerson();
    const other = await logIn(name);
    const list = await call(name, 'GET', 'users/~/sessions');
    expectAnswer(list, 200);
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
    expectDone(await call(name, 'DELETE', `users/~/sessions/${nameOf(another)}`));
    expectStatus(await call(other, 'GET', 'whoami'), 401, 'Unauthorized');
    expectStatus(await call(name, 'DELETE', `users/~/sessions/${nameOf(another)}`), 404, 'NotFound');
    expectAnswer(await call(name, 'GET', 'whoami'), 200);
    expectDone(await call('alice', 'DELETE', `users/${name}/sessions`));
    expectStatus(await call(name, 'GET', 'whoami'), 401, 'Unauthorized');
    expect((await call('alice', 'GET', `users/${name}/sessions`)).json()).toMatchObject({ items: [], totalItems: 0 });
  });

  test('of somebody else are not ended by the way of one’s own: 404', async () => {
    const name = await makePerson();
    const [session] = (await call(name, 'GET', 'users/~/sessions')).json()['items'] as unknown[];
    expectStatus(await call('bob', 'DELETE', `users/~/sessions/${nameOf(session)}`), 404, 'NotFound');
    expectAnswer(await call(name, 'GET', 'whoami'), 200);
  });
});

test('whoami says who one is here', async () => {
  const answer = await call('bob', 'GET', 'whoami');
  expectAnswer(answer, 200);
  expect(answer.json()).toEqual({
    kind: 'WhoAmI',
    apiVersion,
    metadata: {},
    status: {
      userInfo: { username: 'bob', uid: expect.any(String), groups: ['system:authenticated'] },
      user: { displayName: 'Bob', email: 'bob@example.com', passwordChangeRequired: false },
    },
  });
});

describe('is refused', () => {
  test.each(operations)('%s %s without an identity, and with a bad one: 401', async (method, path) => {
    expectStatus(await call(undefined, method, path), 401, 'Unauthorized');
    const answer = await call('nonsense', method, path);
    expectStatus(answer, 401, 'Unauthorized');
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="platform", error="invalid_token"');
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
  ])('%s %s without the right: 403 in the words of kube-apiserver', async (method, path, body) => {
    const answer = await call('bob', method, path, body, method === 'PATCH' ? type(merge) : {});
    expectStatus(answer, 403, 'Forbidden');
    expect(answer.json()['message']).toMatch(/^users\.iam\.platform\.io (".*" )?is forbidden: User "bob" cannot /);
  });

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
  ])('%s %s, which there is not: 404', async (method, path, body) => {
    expectStatus(await call('alice', method, path, body, method === 'PATCH' ? type(merge) : {}), 404, 'NotFound');
  });

  test.each(paths)('another method at %s: 405 that names %j', async (path, methods) => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((one) => !methods.includes(one))) {
      const answer = await call('alice', method, path);
      expectStatus(answer, 405, 'MethodNotAllowed');
      const allowed = answer.headers.allow?.split(', ').filter((one) => one !== 'HEAD');
      expect(allowed?.toSorted()).toEqual(methods.toSorted());
    }
  });

  test.each(reads)('GET %s in another form than JSON: 406', async (path) => {
    for (const accept of ['text/html', 'application/yaml'])
      expectStatus(await call('alice', 'GET', path, undefined, { accept }), 406, 'NotAcceptable');
    expectAnswer(await call('alice', 'GET', path, undefined, { accept: 'text/html, */*;q=0.1' }), 200);
  });

  test.each(operations)('%s %s with an unknown parameter: 400 that names it', async (method, path) => {
    // Alice is a user of the configuration, which is checked first; Bob has no right to delete himself.
    const [who, target] =
      path !== 'users/~' ? ['alice', path] : method === 'DELETE' ? ['alice', 'users/bob'] : ['bob', path];
    const body = method === 'PUT' || method === 'PATCH' ? bodyOf(path) : undefined;
    const answer = await call(who, method, `${target}?nothing=1`, body, method === 'PATCH' ? type(merge) : {});
    expectStatus(answer, 400, 'BadRequest');
    expect(answer.json()['message']).toContain('nothing');
  });

  test.each([
    ['DELETE', 'users/bob/sessions?pretty=2'],
    ['DELETE', 'users/bob/sessions/x?pretty=2'],
    ['POST', 'users/bob/unlock?pretty='],
    ['PUT', 'users/bob/password?pretty=2'],
    ['DELETE', 'users/bob?fieldManager=x'],
    ['PATCH', 'users/bob?gracePeriodSeconds=1'],
  ])('%s %s: 400', async (method, path) => {
    const body = method === 'PATCH' ? {} : method === 'PUT' ? { password } : undefined;
    const answer = await call('alice', method, path, body, method === 'PATCH' ? type(merge) : {});
    expectStatus(answer, 400, 'BadRequest');
  });

  test.each(['users?watch=true', 'users?limit=x', 'users?page=0', 'users?labelSelector=%3D', 'users?status=Gone'])(
    'GET %s: 400',
    async (path) => expectStatus(await call('alice', 'GET', path), 400, 'BadRequest'),
  );

  test.each(['users/bob/loginrecords?limit=x', 'users/bob/loginrecords?limit=-2'])('GET %s: 400', async (path) =>
    expectStatus(await call('alice', 'GET', path), 400, 'BadRequest'),
  );

  test.each<[string, string]>([
    ['POST', 'users'],
    ['PUT', 'users/bob'],
    ['PATCH', 'users/bob'],
    ['PUT', 'users/bob/password'],
  ])('%s %s with what is no JSON: 400, 413 or 415', async (method, path) => {
    const json = type(method === 'PATCH' ? merge : 'application/json');
    expectStatus(await call('alice', method, path, '{', json), 400, 'BadRequest');
    expectStatus(await call('alice', method, path, `"${'x'.repeat(1_048_576)}"`, json), 413, 'RequestEntityTooLarge');
    for (const wrong of ['text/plain', 'application/yaml', 'application/x-www-form-urlencoded'])
      expectStatus(await call('alice', method, path, 'a: b', type(wrong)), 415, 'UnsupportedMediaType');
    const send = (headers: Record<string, string>) => call('alice', method, path, '{}', { ...json, ...headers });
    const compressed = await send({ 'content-encoding': 'gzip' });
    expectStatus(compressed, 415, 'UnsupportedMediaType');
    expect(compressed.json()['message']).toBe('the body must not be compressed');
    for (const charset of ['utf-16', 'latin1', '"iso-8859-1"', 'utf-80'])
      expectStatus(await send(type(`${json['content-type']}; charset=${charset}`)), 415, 'UnsupportedMediaType');
  });
});

/** A body that is right, wherever one is expected. */
const bodyOf = (path: string): unknown =>
  path.endsWith('password') ? { password } : path.split('/').length < 3 ? { metadata: { name: 'bob' } } : undefined;

test.each(reads)('HEAD is GET without the body: %s', async (path) => {
  const [get, head] = [await call('alice', 'GET', path), await call('alice', 'HEAD', path)];
  expect([head.status, head.text, head.headers['content-length']]).toEqual([200, '', get.headers['content-length']]);
});

test('no answer holds a hash or a password', async () => {
  for (const path of [...reads, 'users?managedFields=true'])
    expect((await call('alice', 'GET', path)).text).not.toMatch(/\$2[aby]\$|\$argon2|nine lives|correct horse/);
});
