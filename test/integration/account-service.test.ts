/** The account service (docs/guides/accounts.md) with a real kube-apiserver that authorizes writes as the caller. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../labs/integration/eventually.ts';
import { call, gateway, type HttpResponse } from '../labs/integration/http.ts';
import {
  bind,
  createClusterRole,
  get,
  patch,
  releasePath,
  removeClusterRole,
  unbind,
  type KubeObject,
} from '../labs/integration/kube.ts';
import { adminToken, login, passwordForm, postForm } from '../labs/integration/login.ts';
import { carolSecret, passwords } from '../labs/integration/people.ts';
import { remember } from '../labs/integration/secrets.ts';
import { expectStatus } from '../labs/integration/status.ts';
import { createUser, createUserWithPassword, removeUser, userPath } from '../labs/integration/user-objects.ts';

const base = '/kapis/iam.platform.io/v1alpha2';
const merge = 'application/merge-patch+json';
const jsonPatch = 'application/json-patch+json';

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (let task = undo.pop(); task !== undefined; task = undo.pop()) await task();
});

async function person(name: string, spec: object = {}): Promise<string> {
  undo.push(() => removeUser(name));
  await createUserWithPassword(name, spec);
  return (await login(name, undefined, passwords.alice)).access_token;
}

const send = (
  token: string,
  method: string,
  path: string,
  body?: unknown,
  type = 'application/json',
): Promise<HttpResponse> =>
  call(`${gateway()}${base}/${path}`, {
    token,
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': type } }),
  });

const user = (name: string, spec: object = {}): object => ({
  apiVersion: 'iam.platform.io/v1alpha2',
  kind: 'User',
  metadata: { name },
  spec,
});

describe('an administrator', () => {
  test('an administrator can create, change, list and delete users, and reads every change immediately', async () => {
    const token = await adminToken();
    undo.push(() => removeUser('mia'));
    const made = await send(token, 'POST', 'users', user('mia', { groups: ['m', 'n'] }));
    expect(made).toMatchObject({ status: 201 });
    expect(made.json).toMatchObject({ kind: 'User', spec: { groups: ['m', 'n'], state: 'Active' } });
    expect((await send(token, 'GET', 'users/mia')).json).toMatchObject({ spec: { groups: ['m', 'n'] } });
    await send(token, 'PATCH', 'users/mia', { spec: { displayName: 'Mia' } }, merge);
    expect((await send(token, 'GET', 'users/mia')).json).toMatchObject({ spec: { displayName: 'Mia' } });
    const failing = { op: 'test', path: '/spec/displayName', value: 'Nobody' };
    expect(await send(token, 'PATCH', 'users/mia', [failing], jsonPatch)).toMatchObject({ status: 422 });
    const add = { op: 'add', path: '/spec/groups/-', value: 'o' };
    expect((await send(token, 'PATCH', 'users/mia', [add], jsonPatch)).json).toMatchObject({
      spec: { groups: ['m', 'n', 'o'] },
    });
    // The server may write conditions between GET and PUT, which then gets 409.
    const whole = await eventually('the object is replaced', async () => {
      const current = (await send(token, 'GET', 'users/mia')).json as KubeObject;
      const changed = { ...current, spec: { ...current.spec, state: 'Disabled' } };
      expect(await send(token, 'PUT', 'users/mia', changed)).toMatchObject({ status: 200 });
      return changed;
    });
    expectStatus(await send(token, 'PUT', 'users/mia', whole), 409, 'Conflict');
    const list = (await send(token, 'GET', 'users?names=mia,alice&sortBy=name&ascending=true')).json;
    expect(list).toMatchObject({
      kind: 'UserList',
      totalItems: 2,
      items: [{ metadata: { name: 'alice' } }, { metadata: { name: 'mia' }, spec: { state: 'Disabled' } }],
    });
    expect(await send(token, 'DELETE', 'users/mia')).toMatchObject({ status: 200 });
    expectStatus(await send(token, 'GET', 'users/mia'), 404, 'NotFound');
  });

  test('an administrator gets the validation errors of kube-apiserver', async () => {
    const token = await adminToken();
    const refused = expectStatus(
      await send(token, 'POST', 'users', user('nina', { groups: ['system:masters'] })),
      422,
      'Invalid',
    );
    expect(refused.message).toContain('must not begin with "system:"');
    expectStatus(await send(token, 'POST', 'users', user('Nina')), 422, 'Invalid');
    expectStatus(await send(token, 'POST', 'users', user('alice')), 409, 'AlreadyExists');
    const unknown = user('nina', { password: 'x', group: 'staff' });
    const typo = expectStatus(await send(token, 'POST', 'users', unknown), 400, 'BadRequest');
    expect(typo.message).toMatch(/unknown field "spec.group".*unknown field "spec.password"/);
    const warned = await send(token, 'POST', 'users?fieldValidation=Warn&dryRun=All', unknown);
    expect(warned).toMatchObject({
      status: 201,
      headers: { warning: expect.stringContaining('spec.group') as unknown },
    });
  });
});

describe('a user', () => {
  test('a user can read their own object and change its displayName, but no other field', async () => {
    const token = await person('olga', { groups: ['o'], email: 'olga@example.org' });
    expect((await send(token, 'GET', 'users/~')).json).toMatchObject({ metadata: { name: 'olga' } });
    expect((await send(token, 'PATCH', 'users/~', { spec: { displayName: 'Olga' } }, merge)).json).toMatchObject({
      spec: { displayName: 'Olga', groups: ['o'] },
    });
    for (const spec of [{ groups: ['platform:admins'] }, { email: 'admin@example.org' }, { state: 'Active' }])
      expectStatus(await send(token, 'PATCH', 'users/olga', { spec }, merge), 403, 'Forbidden');
    const add = { op: 'add', path: '/spec/groups/-', value: 'platform:admins' };
    expectStatus(await send(token, 'PATCH', 'users/~', [add], jsonPatch), 403, 'Forbidden');
    expectStatus(await send(token, 'DELETE', 'users/~'), 403, 'Forbidden');
    expectStatus(await send(token, 'GET', 'users'), 403, 'Forbidden');
    expectStatus(await send(token, 'GET', 'users/alice'), 403, 'Forbidden');
    expectStatus(await send(token, 'POST', 'users', user('olga2')), 403, 'Forbidden');
    expect((await get(userPath('olga'))).spec).toMatchObject({ groups: ['o'], email: 'olga@example.org' });
  });
});

describe('a user with the right to write users', () => {
  beforeAll(async () => {
    await createClusterRole('accounts-test', [{ apiGroups: ['iam.platform.io'], resources: ['users'], verbs: ['*'] }]);
    await bind('accounts-test', 'accounts-test', { kind: 'User', name: 'peter' });
  });
  afterAll(async () => {
    await unbind('accounts-test');
    await removeClusterRole('accounts-test');
  });

  // evidence: groups-grant-impersonation
  test('a user with the right to write users cannot add anyone to groups that they are not allowed to impersonate', async () => {
    const token = await person('peter', { groups: ['p'] });
    undo.push(() => removeUser('quinn'));
    await createUser('quinn');
    for (const name of ['peter', '~', 'quinn'])
      await eventually(`the policy rejects ${name}`, async () => {
        const response = await send(
          token,
          'PATCH',
          `users/${name}`,
          { spec: { groups: ['p', 'platform:admins'] } },
          merge,
        );
        expect(expectStatus(response, 403, 'Forbidden').message).toContain('permission to impersonate');
      });
    expect(await send(token, 'PATCH', 'users/~', { spec: { groups: [] } }, merge)).toMatchObject({ status: 200 });
  });
});

/** Returns the statuses with which both replicas respond to a token. */
const everywhere = (token: string): Promise<number[]> =>
  Promise.all([gateway(0), gateway(1)].map(async (url) => (await call(`${url}${base}/whoami`, { token })).status));

const stored = async (name: string): Promise<KubeObject & { readonly data: Readonly<Record<string, string>> }> =>
  get(`${releasePath}/secrets/platform-user-${(await get(userPath(name))).metadata.uid}`);

// evidence: password-set-replicas
describe('a password', () => {
  const next = 'sixteen quiet herons';
  const change = { currentPassword: passwords.alice, password: next };
  remember(next);

  test('a password change revokes all sessions on both replicas, and the Secret of the password is owned by the User object', async () => {
    const token = await person('rosa');
    expect(await send(token, 'PUT', 'users/~/password', change)).toMatchObject({ status: 200 });
    await eventually('the session has ended', async () => expect(await everywhere(token)).toEqual([401, 401]));
    await eventually('both replicas accept the new password', async () => {
      for (const url of [gateway(0), gateway(1)]) await login('rosa', url, next);
    });
    const secret = await stored('rosa');
    await removeUser('rosa');
    await eventually('the Secret is gone', async () => {
      await expect(get(`${releasePath}/secrets/${secret.metadata.name}`)).rejects.toThrow('not found');
    });
  });

  test('a password with a weak hash is hashed again at the next login, and sessions stay valid', async () => {
    const token = await person('sven');
    await eventually('the hash is argon2id', async () => {
      const { data } = await stored('sven');
      expect(Buffer.from(data['passwordHash'] ?? '', 'base64').toString()).toMatch(/^\$argon2id/);
    });
    const { access_token: later } = await login('sven', gateway(1), passwords.alice);
    expect([await everywhere(token), await everywhere(later)]).toEqual([
      [200, 200],
      [200, 200],
    ]);
  });

  test('a password set by an administrator must be changed by the new user at the first login', async () => {
    const admin = await adminToken();
    undo.push(() => removeUser('tara'));
    await send(admin, 'POST', 'users', user('tara', { groups: ['t'], passwordChangeRequired: true }));
    expectStatus(await send(admin, 'PUT', 'users/tara/password', { password: 'password1' }), 422, 'Invalid');
    expect(await send(admin, 'PUT', 'users/tara/password', { password: passwords.alice })).toMatchObject({
      status: 200,
    });
    const { access_token: first } = await login('tara', undefined, passwords.alice);
    const refused = await call(`${gateway()}/kapis`, { token: first });
    expect(expectStatus(refused, 403, 'Forbidden').message).toContain('users/~/password');
    expect(await send(first, 'PUT', 'users/~/password', change)).toMatchObject({ status: 200 });
    const { access_token: second } = await login('tara', undefined, next);
    expect((await send(second, 'GET', 'whoami')).json).toMatchObject({
      status: { userInfo: { groups: ['t', 'system:authenticated'] }, user: { passwordChangeRequired: false } },
    });
    expect((await get(userPath('tara'))).spec).toMatchObject({ passwordChangeRequired: false });
  });

  test('a password change of a configured user is written to the Secret that the configuration names', async () => {
    const { access_token: alice } = await login('alice');
    const inline = { currentPassword: passwords.alice, password: next };
    expectStatus(await send(alice, 'PUT', 'users/~/password', inline), 403, 'Forbidden');
    const { access_token: carol } = await login('carol');
    const back = await get<KubeObject & { data: Record<string, string> }>(`${releasePath}/secrets/${carolSecret}`);
    undo.push(() => patch(`${releasePath}/secrets/${carolSecret}`, { data: back.data }));
    const own = { currentPassword: passwords.carol, password: next };
    expect(await send(carol, 'PUT', 'users/~/password', own)).toMatchObject({ status: 200 });
    await login('carol', undefined, next);
    await eventually('the session has ended', async () => expect(await everywhere(carol)).toEqual([401, 401]));
  });

  // evidence: administrator-password-set
  test('a password of an administrator cannot be set by users who are only allowed to manage users', async () => {
    await bind('accounts-test-manager', 'platform-user-manager', { kind: 'User', name: 'uma' });
    undo.push(() => unbind('accounts-test-manager'));
    const token = await person('uma');
    undo.push(() => removeUser('vera'));
    await createUser('vera', { groups: ['platform:admins'] });
    undo.push(() => removeUser('wim'));
    await createUser('wim');
    // A binding by name to `view` does not protect the password of a user, but a binding to `cluster-admin` does.
    for (const [name, role] of [
      ['wim', 'view'],
      ['xena', 'cluster-admin'],
    ] as const) {
      await bind(`accounts-test-${name}`, role, { kind: 'User', name });
      undo.push(() => unbind(`accounts-test-${name}`));
    }
    undo.push(() => removeUser('xena'));
    await createUser('xena');
    undo.push(() => removeUser('yann'));
    await createUser('yann');
    undo.push(() => removeClusterRole('accounts-test-yann'));
    await createClusterRole('accounts-test-yann', [
      { apiGroups: [''], resources: ['groups'], resourceNames: ['platform:admins'], verbs: ['impersonate'] },
    ]);
    undo.push(() => unbind('accounts-test-yann'));
    await bind('accounts-test-yann', 'accounts-test-yann', { kind: 'User', name: 'yann' });
    await eventually('the roles are aggregated', async () => {
      expect(await send(token, 'PUT', 'users/wim/password', { password: next })).toMatchObject({ status: 200 });
    });
    for (const name of ['vera', 'admin', 'xena', 'yann'])
      expect(
        expectStatus(await send(token, 'PUT', `users/${name}/password`, { password: next }), 403, 'Forbidden').message,
      ).toContain('impersonate');
  });
});

describe('sessions', () => {
  test('sessions are listed and revoked by their user and by administrators', async () => {
    const one = await person('xenia');
    const { access_token: two } = await login('xenia', gateway(1), passwords.alice);
    const { access_token: three } = await login('xenia', undefined, passwords.alice);
    const other = await person('yuri');
    expectStatus(await send(other, 'GET', 'users/xenia/sessions'), 403, 'Forbidden');
    expectStatus(await send(other, 'DELETE', 'users/xenia/sessions'), 403, 'Forbidden');
    interface List {
      readonly items: readonly { readonly metadata: { readonly name: string }; readonly current: boolean }[];
    }
    const list = await eventually('all sessions are listed', async () => {
      const { items } = (await send(two, 'GET', 'users/~/sessions')).json as List;
      // `createUserWithPassword` has started one session at each replica, and this test has started three.
      expect(items).toHaveLength(5);
      return items;
    });
    const current = list.find((session) => session.current)?.metadata.name;
    expect((await send(other, 'DELETE', `users/~/sessions/${current}`)).status).toBe(404);
    expect(await send(one, 'DELETE', `users/~/sessions/${current}`)).toMatchObject({ status: 200 });
    await eventually('the revoked session has ended', async () => expect(await everywhere(two)).toEqual([401, 401]));
    expect(await everywhere(three)).toEqual([200, 200]);
    expect(await send(await adminToken(), 'DELETE', 'users/xenia/sessions')).toMatchObject({ status: 200 });
    for (const token of [one, three])
      await eventually('all sessions have ended', async () => expect(await everywhere(token)).toEqual([401, 401]));
    expect(await everywhere(other)).toEqual([200, 200]);
  });
});

describe('the login history', () => {
  interface Records {
    readonly items: readonly Readonly<Record<string, unknown>>[];
    readonly totalItems: number;
  }
  const records = async (token: string, name: string, at = gateway()): Promise<Records> =>
    (await call(`${at}${base}/users/${name}/loginrecords?limit=2`, { token })).json as Records;

  test('the login history contains each login at either replica and is deleted together with the user', async () => {
    const token = await person('walt');
    const agent = { headers: { 'user-agent': 'a guess of a test' }, base: gateway(1) };
    expect((await postForm(passwordForm('walt', 'not the password of walt'), agent)).status).toBe(400);
    await eventually('both replicas return the failed login', async () => {
      for (const at of [gateway(0), gateway(1)]) {
        const { items, totalItems } = await records(token, '~', at);
        // `createUserWithPassword` has logged in at each replica.
        expect(totalItems).toBeGreaterThanOrEqual(4);
        expect(items).toMatchObject([
          { success: false, reason: 'WrongPassword', userAgent: 'a guess of a test', client: 'platform' },
          { success: true, reason: 'LoggedIn', sourceIP: '127.0.0.1' },
        ]);
      }
    });
    await eventually('the status has the time of the login', async () => {
      const { status } = await get(userPath('walt'));
      expect(Date.now() - Date.parse(String(status?.['lastLoginTime']))).toBeLessThan(120_000);
    });
    await bind('accounts-test-viewer', 'platform-user-viewer', { kind: 'User', name: 'xaver' });
    undo.push(() => unbind('accounts-test-viewer'));
    expectStatus(await send(token, 'GET', 'users/admin/loginrecords'), 403, 'Forbidden');
    const viewer = await person('xaver');
    await eventually('a user with the right reads the history', async () => {
      expect((await records(viewer, 'walt')).items).toHaveLength(2);
    });
    const { uid } = (await get(userPath('walt'))).metadata;
    const history = `/apis/iam.platform.io/v1alpha2/namespaces/platform-system/loginhistories/${uid}`;
    expect(await get(history)).toMatchObject({ spec: { userName: 'walt' } });
    await removeUser('walt');
    await eventually('the history is gone', async () => {
      await expect(get(history)).rejects.toThrow('not found');
    });
  });
});

test('a user who is locked out at one replica can be unlocked at the other', async () => {
  await person('zoe');
  const there = { base: gateway(1) };
  const wrong = passwordForm('zoe', 'not the password of zoe');
  await eventually('zoe is locked out', async () => {
    expect((await postForm(wrong, there)).status).toBe(429);
  });
  await eventually('zoe is unlocked', async () => {
    expect(await send(await adminToken(), 'POST', 'users/zoe/unlock')).toMatchObject({ status: 200 });
    expect((await postForm(passwordForm('zoe', passwords.alice), there)).status).toBe(200);
  });
});
