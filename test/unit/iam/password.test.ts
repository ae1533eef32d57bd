import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { preferred } from '../../../src/accounts/passwords/passwords.ts';
import { passwordSecretType } from '../../../src/accounts/directory/users.ts';
import { parametersOf } from '../../../src/config/hash-parameters.ts';
import { allRecorded } from '../../../src/http/records.ts';
import { logOfLines } from '../../fakes/log.ts';
import { namespace, rightPassword } from '../../labs/accounts.ts';
import { settle } from '../../labs/cluster-fakes.ts';
import { createLab, type Lab } from '../../labs/iam.ts';

const secrets = `/api/v1/namespaces/${namespace}/secrets`;
const next = 'a much better horse';
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const change = { currentPassword: rightPassword, password: next };

let lab: Lab;
afterEach(() => lab.stop());
beforeEach(async () => {
  lab = await createLab();
  await lab.putUser('bob', { groups: ['b'], email: 'bob-the-builder@example.com' });
});

const status = async (token: string): Promise<number> => (await lab.call(token, 'GET', 'whoami')).status;

describe("the caller's own password", () => {
  test("the caller's own password is changed if the current password is right, and every session is revoked", async () => {
    const [one, other] = [await lab.login('bob'), await lab.login('bob')];
    const response = await lab.call(one, 'PUT', 'users/~/password', change);
    expect(response).toMatchObject({ status: 200 });
    expect(response.json()).toEqual({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' });
    expect([await status(one), await status(other)]).toEqual([401, 401]);
    expect(await lab.loginResponse('bob', rightPassword)).toMatchObject({ status: 400 });
    expect(await lab.loginResponse('bob', next)).toMatchObject({ status: 200 });
    expect(parametersOf(lab.directory.account('bob')?.passwordHash ?? '')).toBe(preferred);
  });

  test.each([
    ['without the current password', { password: next }, 422],
    ['with a wrong current password', { currentPassword: 'not that one', password: next }, 422],
    ['to a short password', { ...change, password: 'sho₂rt!' }, 422],
    ['to a long password', { ...change, password: 'ü'.repeat(513) }, 422],
    ['to a common password', { ...change, password: 'Password123' }, 422],
    ['to the username', { ...change, password: 'bob-the-builder@example.COM' }, 422],
    ['to the current password', { ...change, password: rightPassword }, 422],
    ['without a new password', {}, 400],
    ['to a number', { ...change, password: 12345678 }, 400],
    ['with additional fields', { ...change, groups: ['x'] }, 400],
    ['with a list', [], 400],
  ])("the caller's own password is not changed %s: %j gets %d", async (_, body, code) => {
    lab.rights.set('bob', ['update users/password']);
    const token = await lab.login('bob');
    const response = await lab.call(token, 'PUT', 'users/bob/password', body);
    expect(response).toMatchObject({ status: code });
    for (const text of Object.values(body)) expect(response.text).not.toContain(`${String(text)}"`);
    expect(await status(token)).toBe(200);
    expect(await lab.loginResponse('bob', rightPassword)).toMatchObject({ status: 200 });
  });

  test("the caller's own password can have as few as eight characters of several bytes, and as many as 1,024 bytes", async () => {
    for (const password of ['パスワードは短い', 'ü'.repeat(512)]) {
      const currentPassword = password.startsWith('パ') ? rightPassword : 'パスワードは短い';
      const token = String((await lab.loginResponse('bob', currentPassword)).json()['access_token']);
      expect(await lab.call(token, 'PUT', 'users/~/password', { currentPassword, password })).toMatchObject({
        status: 200,
      });
    }
  });

  test("the caller's own password cannot be changed after too many wrong passwords, each of which causes one hash computation", async () => {
    const token = await lab.login('bob');
    for (let attempt = 0; attempt < 5; attempt += 1) {
      await lab.call(token, 'PUT', 'users/~/password', { ...change, currentPassword: 'wrong' });
      expect(lab.hashes.tried.filter((tried) => tried === 'wrong')).toHaveLength(attempt + 1);
    }
    const limited = await lab.call(token, 'PUT', 'users/~/password', change);
    expect(limited).toMatchObject({ status: 429 });
    expect(limited.headers['retry-after']).toMatch(/^\d+$/);
    expect(await lab.loginResponse('bob', rightPassword)).toMatchObject({ status: 429 });
  });

  test("the caller's own password cannot be changed if an identity provider manages it, and the error explains this", async () => {
    const ldap = { url: 'ldaps://corp.example', userSearch: { base: 'dc=example' } };
    const other = await createLab({
      authentication: { identityProviders: [{ name: 'corp', displayName: 'Corp.', type: 'LDAP', ldap }] },
    });
    try {
      const identity = { provider: 'corp', subject: '1' };
      const userUID = await other.putUser('erin', { identities: [identity] }, false);
      const session = await other.sessions.createFixed({ userName: 'erin', userUID, clientID: 'platform', identity });
      const erin = other.directory.account('erin');
      const { token } = other.tokens.issueAccess(session, erin as NonNullable<typeof erin>, undefined);
      const response = await other.call(token, 'PUT', 'users/~/password', change);
      expect(response).toMatchObject({ status: 403 });
      expect(response.json()['message']).toContain('managed by the identity provider Corp.; change the password there');
      expect(other.hashes.tried).not.toContain(rightPassword);
      // A user who also has a local password can change the local password.
      await other.putUser('erin', { identities: [identity] });
      expect(await other.call(token, 'PUT', 'users/~/password', change)).toMatchObject({ status: 200 });
    } finally {
      await other.stop();
    }
  });

  test("the caller's own password is never logged", async () => {
    const { log, lines } = logOfLines();
    const logged = await createLab({ log });
    try {
      await logged.putUser('bob');
      const token = await logged.login('bob');
      await logged.call(token, 'PUT', 'users/~/password', { ...change, currentPassword: 'wrong secret' });
      await logged.call(token, 'PUT', 'users/~/password', '{"password": "half a secr');
      await logged.call(token, 'PUT', 'users/~/password', change);
      await allRecorded();
      const text = lines().join('\n');
      expect(text).toContain('password changed');
      for (const secret of [rightPassword, next, 'wrong secret', 'half a secr', token, '$argon2id'])
        expect(text).not.toContain(secret);
    } finally {
      await logged.stop();
    }
  });
});

// evidence: password-set
describe('setting the password of another user', () => {
  beforeEach(async () => {
    await lab.putUser('carol', { groups: ['helpers'] });
  });

  test('setting the password of another user requires the right to set passwords', async () => {
    const token = await lab.login('carol');
    for (const name of ['bob', 'nobody'])
      expect(await lab.call(token, 'PUT', `users/${name}/password`, { password: next })).toMatchObject({ status: 403 });
  });

  // evidence: password-set-group-rights
  test('setting the password of another user requires the right to impersonate the groups of that user', async () => {
    lab.rights.set('carol', ['update users/password']);
    const token = await lab.login('carol');
    const refused = await lab.call(token, 'PUT', 'users/bob/password', { password: next });
    expect(refused).toMatchObject({ status: 403 });
    expect(refused.text).toContain('impersonate');
    lab.rights.set('carol', ['update users/password', 'impersonate groups b']);
    expect(await lab.call(token, 'PUT', 'users/bob/password', { password: next })).toMatchObject({ status: 200 });
    expect(await lab.loginResponse('bob', next)).toMatchObject({ status: 200 });
    expect(await lab.call(token, 'PUT', 'users/nobody/password', { password: next })).toMatchObject({ status: 404 });
  });

  // evidence: password-set-root-equivalent
  test.each(['a configured user', 'a User'])(
    'setting the password of another user requires the right to impersonate the groups of %s, even if a password change is due',
    async (owner) => {
      lab.rights.set('carol', ['update users/password', 'get users']);
      if (owner === 'a User') await lab.putUser('erin', { groups: ['platform:admins'], passwordChangeRequired: true });
      else {
        lab.cluster.put(secrets, {
          metadata: { name: 'erin' },
          data: { hash: base64(lab.hashes.of('x', 'bcrypt:4')) },
        });
        const passwordRef = { name: 'erin', key: 'hash' };
        const groups = ['platform:admins'];
        const erin = { username: 'erin', groups, passwordHash: undefined, passwordRef, passwordChangeRequired: true };
        lab.configure({ users: [erin] });
        await settle();
      }
      const token = await lab.login('carol');
      const before = lab.directory.account('erin')?.passwordHash;
      const refused = await lab.call(token, 'PUT', 'users/erin/password', { password: next });
      expect(refused).toMatchObject({ status: 403 });
      expect(refused.text).toContain('platform:admins');
      expect(lab.directory.account('erin')?.passwordHash).toBe(before);
      expect((await lab.call(token, 'GET', 'users/erin')).json()).toMatchObject({
        spec: { groups: ['platform:admins'] },
      });
    },
  );

  describe.each([
    '* *',
    'impersonate users',
    'impersonate groups',
    'escalate clusterroles',
    'bind clusterroles',
    'patch mutatingwebhookconfigurations',
    'deletecollection validatingadmissionpolicies',
    'update customresourcedefinitions',
    'create configmaps',
    'update certificatesigningrequests/approval',
    'create nodes/proxy',
    'update users',
    'update users/password',
    'list secrets',
    'get secrets platform-signing-keys',
    'get secrets platform-serving-cert',
    'create serviceaccounts/token',
    'create pods',
    'patch deployments',
    'patch configmaps platform-config',
    'create sessions',
  ])('a user with the right "%s"', (power) => {
    const set = async (...rights: string[]): Promise<number> => {
      lab.rights.set('boss', [power]);
      lab.rights.set('carol', ['update users/password', ...rights]);
      const token = await lab.login('carol');
      return (await lab.call(token, 'PUT', 'users/boss/password', { password: next })).status;
    };
    beforeEach(() => lab.putUser('boss'));

    // evidence: password-set-own-rights
    test('setting the password of a user with a critical right requires the same right, or the right to impersonate the user', async () => {
      // Every caller that sets a password already has this right.
      const isOwn = power === 'update users/password';
      expect(await set()).toBe(isOwn ? 200 : 403);
      expect(await set('impersonate users bob', 'impersonate groups b', 'get secrets other')).toBe(isOwn ? 200 : 403);
      expect(await set(power)).toBe(200);
      expect(await set('impersonate users boss')).toBe(200);
    });
  });

  describe.each([
    ['', 'groups', 'impersonate', 'platform:admins'],
    ['', 'users', 'impersonate', 'admin'],
    ['', 'secrets', 'get', 'platform-refresh-key'],
    ['', 'secrets', 'patch', 'platform-admin'],
    ['', 'secrets', 'get', 'any-other'],
    ['', 'serviceaccounts/token', 'create', 'platform-apiserver'],
    ['', 'pods/exec', 'create', 'platform-apiserver-0'],
    ['apps', 'statefulsets', 'patch', 'etcd'],
    ['rbac.authorization.k8s.io', 'clusterroles', 'bind', 'cluster-admin'],
    ['iam.platform.io', 'users/password', 'update', 'admin'],
    ['iam.platform.io', '*/password', 'update', 'admin'],
    ['*', '*', '*', 'anything'],
    ['apiextensions.k8s.io', 'customresourcedefinitions', 'patch', 'users.iam.platform.io'],
    ['admissionregistration.k8s.io', 'validatingadmissionpolicybindings', 'delete', 'users.iam.platform.io'],
    ['', 'configmaps', 'delete', 'platform-config'],
    ['example.com', 'switches', 'flip', 'main'],
  ])('with a right to one object by name: %s/%s %s %s', (group, path, verb, name) => {
    const resource = path;
    const [plain = ''] = resource.split('/');
    beforeEach(async () => {
      await lab.putUser('boss');
      const rule = { verbs: [verb], apiGroups: [group], resources: [path], resourceNames: [name] };
      lab.cluster.respond('/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', () => ({
        status: { resourceRules: [rule] },
      }));
      lab.rights.set('boss', [`${verb} ${resource} ${name}`]);
    });

    test('setting the password of a user with a right to one object requires the same right, or the right to impersonate the user', async () => {
      const statuses: number[] = [];
      for (const right of [`${verb} ${plain} other`, `${verb} ${resource} ${name}`, 'impersonate users boss']) {
        lab.rights.set('carol', ['update users/password boss', right]);
        const token = await lab.login('carol');
        statuses.push((await lab.call(token, 'PUT', 'users/boss/password', { password: next })).status);
      }
      expect(statuses).toEqual([403, 200, 200]);
    });
  });

  test('setting the password of another user who has only read rights requires only the right to set passwords', async () => {
    await lab.putUser('dora');
    const rules = [
      { verbs: ['get', 'list', 'watch'], apiGroups: [''], resources: ['pods', 'pods/log', 'configmaps'] },
      { verbs: ['get'], apiGroups: ['apps'], resources: ['deployments/scale'], resourceNames: ['web'] },
    ];
    lab.cluster.respond('/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', () => ({
      status: { resourceRules: rules },
    }));
    lab.rights.set('dora', ['get pods', 'list pods', 'watch pods', 'get pods/log', 'get deployments/scale web']);
    lab.rights.set('carol', ['update users/password']);
    const token = await lab.login('carol');
    expect(await lab.call(token, 'PUT', 'users/dora/password', { password: next })).toMatchObject({ status: 200 });
  });

  test('setting the password of another user makes the server read the rights of that user by impersonating the user without groups', async () => {
    lab.rights.set('carol', ['update users/password', 'impersonate groups']);
    const uid = await lab.putUser('dora', { groups: ['staff'] });
    const token = await lab.login('carol');
    await lab.call(token, 'PUT', 'users/dora/password', { password: next });
    const reviews = lab.client.requestsTo('POST', '/selfsubjectrulesreviews');
    expect(reviews.map(({ body }) => body)).toEqual(
      ['kube-system', namespace].map((one) => expect.objectContaining({ spec: { namespace: one } })),
    );
    for (const { headers = {} } of reviews) {
      expect(headers).toMatchObject({ 'impersonate-user': 'dora', 'impersonate-uid': uid });
      expect([headers['impersonate-group']].flat()).toEqual(['system:authenticated']);
    }
  });

  test('setting the password of another user who has no password creates a Secret with an owner reference to the User', async () => {
    lab.rights.set('carol', ['update users/password']);
    const uid = await lab.putUser('dora', {}, false);
    const token = await lab.login('carol');
    expect(await lab.call(token, 'PUT', 'users/dora/password', { password: next })).toMatchObject({ status: 200 });
    expect(lab.cluster.get(secrets, `platform-user-${uid}`)).toMatchObject({
      type: 'iam.platform.io/password',
      metadata: { ownerReferences: [{ kind: 'User', name: 'dora', uid }] },
    });
    expect(await lab.loginResponse('dora', next)).toMatchObject({ status: 200 });
  });

  test('setting the password of a configured user writes the hash to the referenced key and removes the plain-text password from the Secret', async () => {
    lab.rights.set('carol', ['update users/password', 'impersonate groups']);
    const token = await lab.login('carol');
    expect(await lab.call(token, 'PUT', 'users/alice/password', { password: next })).toMatchObject({ status: 403 });
    const hash = lab.hashes.of(rightPassword, 'bcrypt:4');
    lab.cluster.put(secrets, {
      metadata: { name: 'platform-admin' },
      data: { passwordHash: base64(hash), password: base64(rightPassword) },
    });
    lab.configure({
      users: [
        {
          username: 'admin',
          groups: ['platform:admins'],
          passwordHash: undefined,
          passwordRef: { name: 'platform-admin', key: 'passwordHash' },
        },
      ],
    });
    await settle();
    expect(await lab.call(token, 'PUT', 'users/admin/password', { password: next })).toMatchObject({ status: 200 });
    expect(Object.keys(lab.cluster.get(secrets, 'platform-admin')?.['data'] as object)).toEqual(['passwordHash']);
    expect(await lab.loginResponse('admin', next)).toMatchObject({ status: 200 });
  });
});

describe('a weak hash', () => {
  test('a weak hash is replaced at a login, and existing sessions stay valid', async () => {
    const before = lab.directory.account('bob');
    const token = await lab.login('bob');
    await settle();
    const after = lab.directory.account('bob');
    expect(parametersOf(before?.passwordHash ?? '')).toBe('bcrypt:4');
    expect(parametersOf(after?.passwordHash ?? '')).toBe(preferred);
    expect(after?.credentialID).toBe(before?.credentialID);
    expect(await status(token)).toBe(200);
    const second = await lab.login('bob');
    await settle();
    expect(lab.directory.account('bob')).toBe(after);
    await lab.call(second, 'PUT', 'users/~/password', change);
    expect([await status(token), await status(second)]).toEqual([401, 401]);
  });

  // evidence: bcrypt-rehash-length
  test.each([
    [72, preferred],
    [74, 'bcrypt:4'],
  ])(
    'a weak hash of a password of %d bytes has the parameters %s after a login, since bcrypt is limited to 72 bytes',
    async (bytes, expected) => {
      const password = 'ü'.repeat(bytes / 2);
      const uid = lab.directory.account('bob')?.uid ?? '';
      const data = { passwordHash: base64(lab.hashes.of(password, 'bcrypt:4')) };
      lab.cluster.put(secrets, { metadata: { name: `platform-user-${uid}` }, type: passwordSecretType, data });
      await settle();
      expect(await lab.loginResponse('bob', password)).toMatchObject({ status: 200 });
      await settle();
      expect(parametersOf(lab.directory.account('bob')?.passwordHash ?? '')).toBe(expected);
    },
  );

  test('a weak hash is not replaced if the password is changed during the login', async () => {
    const uid = lab.directory.account('bob')?.uid ?? '';
    const name = `platform-user-${uid}`;
    const stolen = lab.hashes.of('another password', preferred);
    lab.client.after = ({ method, path }) => {
      if (method !== 'GET' || !path.endsWith(name)) return;
      lab.client.after = () => undefined;
      const secret = lab.cluster.get(secrets, name);
      lab.cluster.put(secrets, {
        ...secret,
        metadata: { name },
        data: { passwordHash: Buffer.from(stolen).toString('base64') },
      });
    };
    await lab.login('bob');
    await settle();
    expect(lab.directory.account('bob')?.passwordHash).toBe(stolen);
  });
});

describe('a user who must change the password', () => {
  test('a user who must change the password can log in, but is allowed only to change the password', async () => {
    await lab.putUser('bob', { groups: ['b'], passwordChangeRequired: true }, false);
    lab.rights.set('bob', ['list users', 'get users', 'update users/password']);
    const token = await lab.login('bob');
    for (const [method, path] of [
      ['GET', 'users'],
      ['GET', 'users/alice'],
      ['DELETE', 'users/~'],
      ['PATCH', 'users/~'],
    ] as const) {
      const refused = await lab.call(token, method, path);
      expect(refused).toMatchObject({ status: 403 });
      expect(refused.text).toContain('PasswordChangeRequired');
    }
    expect(await lab.call(token, 'PUT', 'users/alice/password', { password: next })).toMatchObject({ status: 403 });
    expect((await lab.call(token, 'GET', 'users/~')).json()).toMatchObject({ spec: { passwordChangeRequired: true } });
    expect((await lab.call(token, 'GET', 'whoami')).json()).toMatchObject({
      status: { user: { passwordChangeRequired: true }, userInfo: { groups: ['system:authenticated'] } },
    });
    expect(await lab.call(token, 'PUT', 'users/~/password', change)).toMatchObject({ status: 200 });
    const free = String((await lab.loginResponse('bob', next)).json()['access_token']);
    expect(await lab.call(free, 'GET', 'users')).toMatchObject({ status: 200 });
    expect((await lab.call(free, 'GET', 'whoami')).json()).toMatchObject({
      status: { userInfo: { groups: ['b', 'system:authenticated'] } },
    });
  });

  test('a user who must change the password stays restricted when an administrator sets the password', async () => {
    await lab.putUser('bob', { passwordChangeRequired: true });
    await lab.putUser('carol');
    lab.rights.set('carol', ['update users/password']);
    await lab.call(await lab.login('carol'), 'PUT', 'users/bob/password', { password: next });
    expect(lab.directory.account('bob')?.passwordChangeRequired).toBe(true);
  });

  test('a configured user who must change the password is no longer restricted after the change', async () => {
    const data = { hash: Buffer.from(lab.hashes.of(rightPassword, 'bcrypt:4')).toString('base64') };
    lab.cluster.put(secrets, { metadata: { name: 'erin' }, data });
    lab.configure({
      users: [
        {
          username: 'erin',
          groups: ['e'],
          passwordHash: undefined,
          passwordChangeRequired: true,
          passwordRef: { name: 'erin', key: 'hash' },
        },
      ],
    });
    await settle();
    const token = await lab.login('erin');
    expect(await lab.call(token, 'GET', 'users')).toMatchObject({ status: 403 });
    expect(await lab.call(token, 'PUT', 'users/~/password', change)).toMatchObject({ status: 200 });
    expect(lab.directory.account('erin')).toMatchObject({ passwordChangeRequired: false, groups: ['e'] });
  });
});
