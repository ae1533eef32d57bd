/** Links between Users and identity providers while other replicas and administrators change the Users. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Linking } from '../../../../src/accounts/providers/linking.ts';
import { PersonRefused, type Person } from '../../../../src/accounts/providers/person.ts';
import type { UserSpec } from '../../../../src/accounts/directory/users.ts';
import { usersPath } from '../../../../src/config/names.ts';
import type { KubeRequest } from '../../../../src/cluster/client/client.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { startAccounts, type Accounts } from '../../../labs/accounts.ts';
import { settle } from '../../../labs/cluster-fakes.ts';

const provider = (name: string, mapping: string): object => ({
  name,
  type: 'LDAP',
  mapping,
  ldap: { url: `ldaps://${name}.example`, userSearch: { base: 'dc=example' } },
});
const identity = { provider: 'corp', subject: '1' };
const erin: Person = { identity, username: 'erin', email: null, displayName: 'Erin', groups: [] };

let accounts: Accounts;
let linking: Linking;
let lines: () => string[];
let requests: string[];
/** Functions by request method. Each runs before the request and can throw an error or return a response instead. */
let before: Partial<Record<string, () => unknown>>;
let bodies: unknown[];

beforeEach(async () => {
  accounts = await startAccounts({
    authentication: { identityProviders: [provider('other', 'lookup'), provider('corp', 'auto')] },
  });
  requests = [];
  before = {};
  bodies = [];
  const log = logOfLines();
  ({ lines } = log);
  linking = new Linking({
    config: accounts.live,
    client: {
      json: async <T>(path: string, request?: KubeRequest): Promise<T> => {
        const { method = 'GET' } = request ?? {};
        requests.push(method);
        const instead = await before[method]?.();
        if (method === 'PATCH') bodies.push(request?.body);
        return instead === undefined ? await accounts.client.json<T>(path, request) : (instead as T);
      },
    },
    directory: accounts.directory,
    log: log.log,
  });
});
afterEach(() => accounts.stop());

/** Stores a User in the cluster. The watch of the replica returns the User later. */
const put = (name: string, spec: UserSpec | undefined): void =>
  accounts.cluster.put(usersPath, {
    apiVersion: 'iam.platform.io/v1alpha2',
    kind: 'User',
    metadata: { name },
    ...(spec === undefined ? {} : { spec }),
  });
const failure = (): never => {
  throw new Error('connect ECONNREFUSED');
};
/** Returns the result of a login after more time than a login waits for its User to appear in the watch. */
async function afterWaiting<T>(login: Promise<T>): Promise<T> {
  const result = login.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  await settle();
  await accounts.clock.advance(60_000);
  const settled = await result;
  if ('error' in settled) throw settled.error;
  return settled.value;
}

describe('a User that a first login creates', () => {
  test('a User that a first login creates is logged with its identity', async () => {
    await expect(linking.accountOf(erin)).resolves.toMatchObject({ username: 'erin', displayName: 'Erin' });
    expect(lines().map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { level: 'info', user: 'erin', provider: 'corp', subject: '1' },
    ]);
  });

  test.each<[string, NonNullable<UserSpec['identities']>]>([
    ['this identity', [identity]],
    ['this identity among others', [{ provider: 'other', subject: '2' }, identity]],
  ])('a first login uses the User that a faster replica has created with %s', async (_, identities) => {
    before = { POST: () => put('erin', { identities }) };
    await expect(linking.accountOf(erin)).resolves.toMatchObject({ username: 'erin' });
    expect(requests).toEqual(['POST', 'GET']);
  });

  test.each<[string, UserSpec | undefined]>([
    ['no spec', undefined],
    ['no identities', {}],
    ['the same subject of another provider', { identities: [{ provider: 'other', subject: '1' }] }],
    ['another subject of this provider', { identities: [{ provider: 'corp', subject: '2' }] }],
  ])('a first login does not use a User that was created in the meantime with %s', async (_, spec) => {
    before = { POST: () => put('erin', spec) };
    const login = linking.accountOf(erin);
    await expect(login).rejects.toBeInstanceOf(PersonRefused);
    await expect(login).rejects.toThrow('the username erin is already taken');
  });

  test('a first login fails with 503 and makes no further attempt when kube-apiserver fails', async () => {
    before = { POST: failure };
    await expect(linking.accountOf(erin)).rejects.toMatchObject({ code: 503, cause: expect.anything() as unknown });
    expect(requests).toEqual(['POST']);
  });

  test('a first login fails with 503 when the User of the same name cannot be read', async () => {
    before = { POST: () => put('erin', {}), GET: failure };
    await expect(linking.accountOf(erin)).rejects.toMatchObject({ code: 503, cause: expect.anything() as unknown });
  });

  test.each<[string, () => unknown]>([
    ['does not appear in the watch in time', () => ({ metadata: { name: 'erin', uid: 'unseen' } })],
    [
      'does not appear in the watch in time, although another User with the same identity does',
      () => {
        put('second', { identities: [identity] });
        return { metadata: { name: 'erin', uid: 'unseen' } };
      },
    ],
    ['is one of two that are linked to the same identity', () => put('second', { identities: [identity] })],
  ])('a first login fails with 503 when the User that it creates %s', async (_, post) => {
    before = { POST: post };
    await expect(afterWaiting(linking.accountOf(erin))).rejects.toMatchObject({
      code: 503,
      message: expect.stringContaining('not visible on this replica yet') as unknown,
    });
  });
});

describe('the User of a later login', () => {
  const linked = { identities: [identity], displayName: 'Erin', email: 'e@example.org' };

  test.each<[string, Partial<Person>, UserSpec]>([
    ['no change', { email: 'e@example.org' }, linked],
    ['no change for an unverified e-mail address', { email: undefined }, linked],
    [
      'a change of the display name',
      { email: 'e@example.org', displayName: 'Erin M.' },
      { ...linked, displayName: 'Erin M.' },
    ],
    ['a change of the e-mail address', { email: 'm@example.org' }, { ...linked, email: 'm@example.org' }],
    ['a change of the case of the e-mail address', { email: 'E@example.org' }, { ...linked, email: 'E@example.org' }],
  ])('the User of a later login has the current fields of the identity after %s', async (_, changes, expected) => {
    await accounts.putUser('e.miller', linked, false);
    const account = await linking.accountOf({ ...erin, ...changes });
    const { displayName, email } = account;
    expect({ displayName, email }).toEqual({ displayName: expected.displayName, email: expected.email });
    expect(accounts.cluster.get(usersPath, 'e.miller')?.['spec']).toEqual(expected);
    expect(requests).toEqual(expected === linked ? [] : ['PATCH']);
  });

  test('the User of a later login is updated by uid, so that a new User of the same name is never changed', async () => {
    const uid = await accounts.putUser('erin', linked, false);
    await linking.accountOf({ ...erin, displayName: undefined });
    expect(bodies).toEqual([{ metadata: { uid }, spec: { displayName: null, email: null } }]);
  });

  test('the User of a later login can log in when the update fails, and the log contains a warning', async () => {
    await accounts.putUser('erin', linked, false);
    before = { PATCH: failure };
    await expect(linking.accountOf({ ...erin, displayName: 'Erin M.' })).resolves.toMatchObject({
      displayName: 'Erin',
    });
    expect(lines().map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { level: 'warn', user: 'erin', error: expect.anything() as unknown },
    ]);
  });

  test('the User of a later login is returned unchanged when the User is deleted in the meantime', async () => {
    await accounts.putUser('erin', linked, false);
    before = {
      PATCH: () => {
        accounts.cluster.delete(usersPath, 'erin');
        return {};
      },
    };
    const login = linking.accountOf({ ...erin, displayName: 'Erin M.' });
    await expect(afterWaiting(login)).resolves.toMatchObject({ username: 'erin', displayName: 'Erin' });
  });

  test('the User of a later login is not updated by a provider that is no longer configured', async () => {
    await accounts.putUser('erin', linked, false);
    accounts.configure({});
    await expect(linking.accountOf({ ...erin, displayName: 'Erin M.' })).resolves.toMatchObject({
      displayName: 'Erin',
    });
    expect(requests).toEqual([]);
  });
});
