/** Logins of LDAP users at the token endpoint. Tests with a real LDAP server are in test/integration. */
import { describe, expect, test } from '@jest/globals';
import { providerTypes } from '../../../../src/accounts/providers/index.ts';
import { CredentialsRefused, type LookUp, type ProviderTypes } from '../../../../src/accounts/providers/provider.ts';
import type { Statement } from '../../../../src/accounts/providers/person.ts';
import { sessionsPath, usersPath } from '../../../../src/config/names.ts';
import type { Logger } from '../../../../src/runtime/logger.ts';
import { allRecorded } from '../../../../src/http/records.ts';
import type { AppResponse } from '../../../fakes/request.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { rightPassword } from '../../../labs/accounts.ts';
import { settle } from '../../../labs/cluster-fakes.ts';
import { createLab, login, refreshWith, type Lab } from '../../../labs/oauth.ts';

const elsewhere = 'known elsewhere';

const typed = [elsewhere, rightPassword, 'wrong'];

interface Entry extends Partial<Statement> {
  readonly subject: string;
}

const randomName = /^[-0-9a-f]{36}$/;

/** An LDAP server in memory that records its requests. */
class Fake {
  readonly entries = new Map<string, Entry>();
  readonly requests: string[] = [];
  /** Names that were looked up, except random names. */
  readonly lookedUp: string[] = [];
  /** Names for which the server received a password. */
  readonly shown: string[] = [];
  /** Runs before each response. */
  wait = async (): Promise<void> => undefined;
  isDown = false;
  rejectsBindDN = false;
  /** Open lookups; each holds a connection and a slot of the provider. */
  open = 0;

  readonly types: ProviderTypes = {
    ...providerTypes,
    LDAP: { kind: 'password', create: ({ ldap: { url } }) => ({ lookUp: (name) => this.#lookUp(url, name) }) },
  };

  async #lookUp(url: string, name: string): Promise<LookUp> {
    this.requests.push(`${url} look up`);
    if (!randomName.test(name)) this.lookedUp.push(`${url} ${name}`);
    await this.wait();
    if (this.isDown) throw new Error('connect ECONNREFUSED');
    if (this.rejectsBindDN) throw new CredentialsRefused('the LDAP server rejects the bindDN');
    const entry = this.entries.get(name.toLowerCase());
    this.open += 1;
    return {
      subject: entry?.subject,
      authenticate: async (password) => {
        this.requests.push(`${url} authenticate`);
        if (entry !== undefined && typed.includes(password)) this.shown.push(`${url} ${name}`);
        if (entry === undefined || password !== elsewhere) return undefined;
        return { username: name.toLowerCase(), email: null, displayName: undefined, groups: [], ...entry };
      },
      close: () => {
        this.open -= 1;
      },
    };
  }
}

const provider = (name: string, mapping = 'auto'): object => ({
  name,
  type: 'LDAP',
  mapping,
  ldap: { url: `ldaps://${name}.example`, userSearch: { base: 'dc=example' } },
});

async function lab(mapping = 'auto', log?: Logger): Promise<Lab & { ldap: Fake }> {
  const ldap = new Fake();
  ldap.entries.set('erin', { subject: '1' });
  const made = await createLab({ identityProviders: [provider('corp', mapping)] }, { log, providerTypes: ldap.types });
  return { ...made, ldap };
}

const as = (made: Lab, username: string, password = elsewhere): Promise<AppResponse> =>
  made.token({ ...login, username, password });
const description = (response: AppResponse): unknown => response.json()['error_description'];
const usual = 'incorrect username or password';

describe('an LDAP login', () => {
  test('an LDAP login logs in the User linked to the entry, whatever the name of the User', async () => {
    const made = await lab('lookup');
    const uid = await made.putUser('e.miller', { identities: [{ provider: 'corp', subject: '1' }] }, false);
    const response = await as(made, 'erin');
    expect(response.status).toBe(200);
    expect(made.sessions.ofUser(uid)).toHaveLength(1);
  });

  test('an LDAP login requires exactly one User that is linked to the same provider and subject', async () => {
    const made = await lab('lookup');
    await made.putUser('a', { identities: [{ provider: 'other', subject: '1' }] }, false);
    await made.putUser('b', { identities: [{ provider: 'corp', subject: '2' }] }, false);
    expect(description(await as(made, 'erin'))).toContain('no user is linked');
    await made.putUser('c', { identities: [{ provider: 'corp', subject: '1' }] }, false);
    expect((await as(made, 'erin')).status).toBe(200);
    await made.putUser('d', { identities: [{ provider: 'corp', subject: '1' }] }, false);
    expect(description(await as(made, 'erin'))).toContain('more than one user');
  });

  test('an LDAP login never selects a User by name or e-mail address', async () => {
    const made = await lab('lookup');
    made.ldap.entries.set('erin', { subject: '1', email: 'alice@example.org', username: 'bob' });
    await made.putUser('bob', { email: 'alice@example.org' });
    expect(description(await as(made, 'erin'))).toContain('no user is linked');
  });

  test('an LDAP login is rejected if the typed name belongs to a User that is linked to another identity', async () => {
    const made = await lab('lookup');
    await made.putUser('erin', { identities: [{ provider: 'corp', subject: '7' }] }, false);
    await made.putUser('other', { identities: [{ provider: 'corp', subject: '1' }] }, false);
    expect(description(await as(made, 'erin'))).toBe(usual);
  });

  test('an LDAP login is rejected with the instruction to change the password if a password change is due for the linked User', async () => {
    const made = await lab('lookup');
    const identities = [{ provider: 'corp', subject: '1' }];
    await made.putUser('e.miller', { identities, passwordChangeRequired: true }, false);
    expect(description(await as(made, 'erin'))).toContain('must change your password first');
  });

  test('an LDAP login of a disabled User fails in the same way as an LDAP login with a wrong password', async () => {
    const made = await lab('lookup');
    await made.putUser('erin', { identities: [{ provider: 'corp', subject: '1' }], state: 'Disabled' }, false);
    expect(description(await as(made, 'erin'))).toBe(usual);
  });
});

describe('a first LDAP login', () => {
  test('a first LDAP login creates a User from the entry, and later logins use this User', async () => {
    const made = await lab();
    made.ldap.entries.set('erin', { subject: '1', displayName: 'Erin', email: 'e@example.org' });
    expect((await as(made, 'erin')).status).toBe(200);
    expect(made.cluster.get(usersPath, 'erin')?.['spec']).toEqual({
      displayName: 'Erin',
      email: 'e@example.org',
      identities: [{ provider: 'corp', subject: '1' }],
    });
    made.ldap.entries.set('erin', { subject: '1', displayName: 'Erin Miller', username: 'erin.miller' });
    expect((await as(made, 'erin')).status).toBe(200);
    expect(made.cluster.list(usersPath)).toHaveLength(1);
    expect(made.cluster.get(usersPath, 'erin')?.['spec']).toMatchObject({ displayName: 'Erin Miller' });
    expect(made.cluster.get(usersPath, 'erin')?.['spec']).not.toHaveProperty('email');
  });

  test.each([
    ['that of a configured user', 'ALICE'],
    ['that of a User', 'bob'],
    ['not a valid username', '爱丽丝'],
  ])('a first LDAP login is rejected if the username is %s', async (_, username) => {
    const made = await lab();
    await made.putUser('bob');
    made.ldap.entries.set('erin', { subject: '1', username });
    const response = await as(made, 'erin');
    expect({ status: response.status, error: response.json()['error'] }).toEqual({
      status: 400,
      error: 'invalid_grant',
    });
    expect(made.cluster.list(usersPath)).toHaveLength(1);
  });

  test('a first LDAP login does not use an e-mail address that another user needs to log in', async () => {
    const made = await lab();
    await made.putUser('bob', { email: 'Bob@example.org' });
    made.ldap.entries.set('erin', { subject: '1', email: 'bob@example.org' });
    expect((await as(made, 'erin')).status).toBe(200);
    expect((await as(made, 'bob@example.org', rightPassword)).status).toBe(200);
  });
});

describe('an e-mail address that an administrator has set', () => {
  test.each<[string, Partial<Entry>, string | undefined]>([
    ['stays if the provider returns no verified address', { email: undefined }, 'set@example.org'],
    ['stays if the provider returns the address of another user', { email: 'bob@example.org' }, 'set@example.org'],
    ['is replaced by the address that the provider returns', { email: 'e@example.org' }, 'e@example.org'],
    ['is removed if the provider reports that there is no address', {}, undefined],
  ])('after an LDAP login, an e-mail address that an administrator has set %s', async (_, claims, expected) => {
    const made = await lab();
    await made.putUser('bob', { email: 'bob@example.org' });
    await made.putUser('erin', { ...linked, email: 'set@example.org' }, false);
    made.ldap.entries.set('erin', { subject: '1', ...claims });
    expect((await as(made, 'erin')).status).toBe(200);
    const { spec } = made.cluster.get(usersPath, 'erin') as { readonly spec?: { readonly email?: string } };
    expect(spec?.email).toBe(expected);
  });
});

/** Logs in and returns a function that reports the groups of the session, or undefined once the session is invalid. */
const begin = async (made: Lab & { ldap: Fake }): Promise<() => Promise<readonly string[] | undefined>> => {
  made.ldap.entries.set('erin', { subject: '1', groups: ['engineers'] });
  const token = String((await as(made, 'erin')).json()['access_token']);
  return async () => (await made.accessTokens.validate(token))?.subject.groups;
};

describe('the session of an LDAP login', () => {
  test('the session of an LDAP login has the groups from the LDAP server and the groups of the User', async () => {
    const made = await lab();
    const groups = await begin(made);
    expect(await groups()).toEqual(['corp:engineers']);
    const { spec } = made.cluster.get(usersPath, 'erin') as { spec?: object };
    await made.putUser('erin', { ...spec, groups: ['staff'] }, false);
    expect(await groups()).toEqual(['staff', 'corp:engineers']);
    made.ldap.entries.set('erin', { subject: '1', groups: [] });
    expect(await groups()).toEqual(['staff', 'corp:engineers']);
    const again = String((await as(made, 'erin')).json()['access_token']);
    expect((await made.accessTokens.validate(again))?.subject.groups).toEqual(['staff']);
  });

  test.each<[string, (made: Lab) => unknown]>([
    ['the User is disabled', (made) => made.putUser('erin', { ...linked, state: 'Disabled' }, false)],
    ['the User is no longer linked', (made) => made.putUser('erin', {}, false)],
    [
      'the User is linked to another identity',
      (made) => made.putUser('erin', { identities: [{ provider: 'corp', subject: '2' }] }, false),
    ],
    ['the identity is linked to two Users', (made) => made.putUser('second', linked, false)],
    ['the User is deleted', (made) => made.cluster.delete(usersPath, 'erin')],
    ['the provider is removed from the configuration', (made) => made.configure({ identityProviders: [] })],
  ])('the session of an LDAP login is no longer valid when %s', async (_, change) => {
    const made = await lab();
    const groups = await begin(made);
    await change(made);
    await settle();
    expect(await groups()).toBeUndefined();
  });

  test('the session of an LDAP login can be refreshed until its maximum age', async () => {
    const made = await lab();
    await begin(made);
    const first = await as(made, 'erin');
    const second = await made.token(refreshWith(first.json()['refresh_token']));
    expect(second.status).toBe(200);
    made.configure({ identityProviders: [] });
    expect((await made.token(refreshWith(second.json()['refresh_token']))).status).toBe(400);
  });

  test('the session of an LDAP login stays valid when a local password is set', async () => {
    const made = await lab();
    const groups = await begin(made);
    const { spec } = made.cluster.get(usersPath, 'erin') as { spec?: object };
    await made.putUser('erin', { ...spec });
    expect(await groups()).toEqual(['corp:engineers']);
    expect((await as(made, 'erin', rightPassword)).status).toBe(200);
    expect((await as(made, 'erin')).status).toBe(400);
  });
});

const linked = { identities: [{ provider: 'corp', subject: '1' }] };

describe('a user with a local password', () => {
  test.each(['alice', 'Alice', 'ALICE', 'alice@example.org', 'bob'])(
    'a user with a local password is never looked up at LDAP providers: %s',
    async (name) => {
      const made = await lab();
      made.configure({
        users: [{ username: 'alice', email: 'alice@example.org' }],
        identityProviders: [provider('corp')],
      });
      await made.putUser('bob', linked);
      made.ldap.entries.set(name.toLowerCase(), { subject: '1' });
      expect(description(await as(made, name))).toBe(usual);
      expect(made.ldap.lookedUp).toEqual([]);
    },
  );

  test('a user with a local password is not looked up at LDAP providers by an e-mail address that several users share', async () => {
    const made = await lab();
    const email = 'both@example.org';
    made.configure({ identityProviders: [provider('corp')] });
    await made.putUser('bob', { email });
    await made.putUser('carol', { email });
    made.ldap.entries.set(email, { subject: '1' });
    expect(description(await as(made, email))).toBe(usual);
    expect(made.ldap.lookedUp).toEqual([]);
  });
});

const outcomeOf = ({ events }: Lab): string | undefined => events.at(-1)?.annotations?.['oauth.platform.io/login'];

describe('the audit event of a failed login', () => {
  test.each([
    ['erin', 'WrongPassword'],
    ['alice', 'WrongPassword'],
    ['passwordless', 'NoPassword'],
    ['nobody', 'UnknownUser'],
  ])('the audit event of a failed login of %s has the outcome %s', async (name, outcome) => {
    const made = await lab();
    await made.putUser('erin', linked, false);
    await made.putUser('passwordless', {}, false);
    await as(made, name, 'wrong');
    await allRecorded();
    expect(outcomeOf(made)).toBe(outcome);
  });

  test('a failed login without a local password has the outcome Unavailable in its audit event while a provider does not respond', async () => {
    const made = await lab();
    await made.putUser('erin', linked, false);
    made.ldap.isDown = true;
    const outcomes: unknown[] = [];
    for (const name of ['erin', 'nobody', 'alice']) {
      await as(made, name, 'wrong');
      await allRecorded();
      outcomes.push(outcomeOf(made));
    }
    expect(outcomes).toEqual(['Unavailable', 'Unavailable', 'WrongPassword']);
  });
});

test('an LDAP login looks up a name of 256 characters but not a longer name', async () => {
  const made = await lab();
  for (const length of [256, 257]) await as(made, 'n'.repeat(length), 'wrong');
  expect(made.ldap.lookedUp.filter((one) => one.includes('nn'))).toEqual([`ldaps://corp.example ${'n'.repeat(256)}`]);
});

test('an LDAP login is rejected if the username at the provider begins with "system:"', async () => {
  const made = await lab();
  made.ldap.entries.set('erin', { subject: '1', username: 'system:erin' });
  const response = await as(made, 'erin');
  expect({ status: response.status, error: response.json()['error'] }).toEqual({ status: 400, error: 'invalid_grant' });
  expect(description(response)).toContain('cannot be accepted');
});

describe('the password of an LDAP login', () => {
  test('the password of an LDAP login is sent only to the first provider that knows the name', async () => {
    const made = await lab();
    made.configure({ identityProviders: [provider('one'), provider('two'), provider('three')] });
    made.ldap.entries.clear();
    await as(made, 'erin');
    expect(made.ldap.lookedUp).toHaveLength(3);
    expect(made.ldap.shown).toEqual([]);
    made.ldap.entries.set('erin', { subject: '1' });
    await as(made, 'erin', 'wrong');
    expect(made.ldap.lookedUp.slice(3)).toEqual(['ldaps://one.example erin']);
    expect(made.ldap.shown).toEqual(['ldaps://one.example erin']);
  });

  test('the password of an LDAP login is not sent to providers after an unavailable provider, since that provider could know the name', async () => {
    const made = await lab();
    made.configure({ identityProviders: [provider('one'), provider('two')] });
    made.ldap.isDown = true;
    expect((await as(made, 'erin')).status).toBe(503);
    expect(made.ldap.lookedUp).toEqual(['ldaps://one.example erin']);
    expect(made.ldap.shown).toEqual([]);
  });

  test('the password of an LDAP login of a linked user is sent only to the linked providers', async () => {
    const made = await lab();
    made.configure({ identityProviders: [provider('one'), provider('two')] });
    await made.putUser('erin', { identities: [{ provider: 'two', subject: '1' }] }, false);
    expect((await as(made, 'erin')).status).toBe(200);
    await as(made, 'erin', 'wrong');
    expect(made.ldap.shown).toEqual(['ldaps://two.example erin', 'ldaps://two.example erin']);
  });

  test.each([
    ['is empty', ''],
    ['has 1,025 bytes', 'x'.repeat(1_025)],
    ['has 513 characters in 1,026 bytes', 'ö'.repeat(513)],
  ])('the password of an LDAP login causes no request to an LDAP server if it %s', async (_, password) => {
    const made = await lab();
    expect((await as(made, 'erin', password)).status).toBe(400);
    expect(made.ldap.requests).toEqual([]);
  });

  test('the password of an LDAP login is sent to the LDAP server if it has 1,024 bytes', async () => {
    const made = await lab();
    await as(made, 'erin', 'x'.repeat(1_024));
    expect(made.ldap.lookedUp).toEqual(['ldaps://corp.example erin']);
  });

  test('an LDAP login without a username causes no request to an LDAP server', async () => {
    const made = await lab();
    expect((await as(made, '')).status).toBe(400);
    expect(made.ldap.requests).toEqual([]);
  });
});

const atBoth = (...requests: string[]): string[] =>
  ['one', 'two'].flatMap((name) => requests.map((request) => `ldaps://${name}.example ${request}`));

describe('failed LDAP logins', () => {
  test('failed LDAP logins with spellings of one name in different case are counted together', async () => {
    const made = await lab();
    const statuses: number[] = [];
    for (const name of ['erin', 'ERIN', 'Erin', 'eRin']) statuses.push((await as(made, name, 'wrong')).status);
    expect(statuses).toEqual([400, 400, 400, 429]);
    expect((await as(made, 'erIn')).status).toBe(429);
  });

  test('failed LDAP logins cost the same work as failed local logins', async () => {
    const made = await lab();
    const before = made.hashes.verified.length;
    await as(made, 'erin', 'wrong');
    expect(made.hashes.verified).toHaveLength(before + 1);
  });

  // evidence: ldap-unavailable-counts
  test.each(['alice', 'erin', 'nobody'])(
    'failed LDAP logins of %s are counted and get a temporary error while a provider is unavailable',
    async (name) => {
      const made = await lab();
      await made.putUser('bob');
      made.ldap.isDown = true;
      for (let tries = 0; tries < 3; tries += 1) {
        const response = await as(made, name, 'wrong');
        expect(response.status).toBe(503);
        expect(response.json()['error']).toBe('temporarily_unavailable');
        expect(response.headers['retry-after']).toBeDefined();
      }
      expect((await as(made, name, 'wrong')).status).toBe(429);
      expect((await as(made, 'bob', rightPassword)).status).toBe(200);
    },
  );

  // evidence: ldap-unavailable-same-response
  test.each<[string, Partial<Pick<Fake, 'isDown' | 'rejectsBindDN'>>, string[]]>([
    ['respond', {}, atBoth('authenticate', 'look up')],
    ['are down', { isDown: true }, atBoth('look up')],
    ['reject bindDN', { rejectsBindDN: true }, atBoth('look up')],
  ])(
    'failed LDAP logins get the same response and cause the same requests for every name while the providers %s',
    async (_, state, requests) => {
      const made = await lab();
      made.configure({
        users: [{ username: 'alice', email: 'alice@example.org' }],
        identityProviders: [provider('one'), provider('two')],
        loginLimit: { perAddress: 10_000 },
      });
      await made.putUser('disabled', { state: 'Disabled' });
      await made.putUser('passwordless', {}, false);
      await made.putUser('linked', { identities: [{ provider: 'two', subject: '2' }] }, false);
      made.ldap.entries.set('linked', { subject: '2' });
      Object.assign(made.ldap, state);
      const names = ['nobody', 'nobody@example.org', 'erin', 'linked', 'alice', 'ALICE', 'alice@example.org'];
      const seen: object[] = [];
      for (const name of [...names, 'disabled', 'passwordless']) {
        made.ldap.requests.length = 0;
        const hashed = made.hashes.verified.length;
        const { status, headers, text } = await as(made, name, 'wrong');
        seen.push({
          response: [status, headers['retry-after'], text],
          requests: made.ldap.requests.toSorted(),
          hashed: made.hashes.verified.length - hashed,
        });
      }
      for (const one of seen) expect(one).toEqual(seen[0]);
      expect(seen[0]).toMatchObject({ requests, hashed: 1 });
    },
  );

  // evidence: ldap-silent-provider
  test('failed LDAP logins wait for an unresponsive provider for every name, while logins with a local password do not', async () => {
    const made = await lab();
    const names = ['alice', 'erin', 'nobody'];
    const all = Promise.withResolvers<void>();
    const timeout = Promise.withResolvers<void>();
    made.ldap.wait = async () => {
      if (made.ldap.requests.length === names.length) all.resolve();
      await timeout.promise;
    };
    const failures = names.map((name) => as(made, name, 'wrong'));
    expect((await as(made, 'alice', rightPassword)).status).toBe(200);
    await all.promise;
    expect(made.ldap.requests).toHaveLength(names.length);
    timeout.reject(new Error('timeout'));
    for (const failure of failures) expect((await failure).status).toBe(503);
  });

  test('failed LDAP logins at an unavailable provider do not affect users linked to another provider', async () => {
    const made = await lab();
    made.configure({ identityProviders: [provider('one'), provider('two')] });
    await made.putUser('erin', { identities: [{ provider: 'two', subject: '1' }] }, false);
    made.ldap.wait = async () => {
      if (made.ldap.requests.at(-1) === 'ldaps://one.example look up') throw new Error('timeout');
    };
    expect((await as(made, 'erin')).status).toBe(200);
    expect((await as(made, 'erin', 'wrong')).status).toBe(503);
  });

  test('failed LDAP logins are not counted if the password is right but no User is linked', async () => {
    const made = await lab('lookup');
    for (let tries = 0; tries < 10; tries += 1)
      expect(description(await as(made, 'erin'))).toContain('no user is linked');
  });
});

describe('the log of a rejected LDAP login', () => {
  const message = 'identity provider login refused';
  const hintsIn = (lines: readonly string[]): Record<string, unknown>[] =>
    lines.map((line) => JSON.parse(line) as Record<string, unknown>).filter((line) => line['message'] === message);

  test('the log of a rejected LDAP login names the subject and the User to link if no User is linked', async () => {
    const { log, lines } = logOfLines();
    const made = await lab('lookup', log);
    await as(made, 'erin', 'wrong');
    expect(hintsIn(lines())).toEqual([]);
    await as(made, 'erin');
    expect(hintsIn(lines())).toMatchObject([
      { level: 'info', provider: 'corp', subject: '1', username: 'erin', reason: 'no user is linked to this identity' },
    ]);
  });

  test('the log of a rejected LDAP login names the subject and the User to link if two Users are linked', async () => {
    const { log, lines } = logOfLines();
    const made = await lab('lookup', log);
    for (const name of ['b', 'a']) await made.putUser(name, linked, false);
    await as(made, 'erin');
    expect(hintsIn(lines())[0]).toMatchObject({
      subject: '1',
      reason: 'more than one user is linked to this identity',
    });
  });

  test('the log of a rejected LDAP login names the subject and the User to link if the name belongs to another User', async () => {
    const { log, lines } = logOfLines();
    const made = await lab('auto', log);
    await made.putUser(
      'erin',
      {
        identities: [
          { provider: 'other', subject: '1' },
          { provider: 'corp', subject: '2' },
        ],
      },
      false,
    );
    await as(made, 'erin');
    expect(hintsIn(lines())[0]).toMatchObject({
      subject: '1',
      reason: 'the username erin is already taken',
    });
  });
});

test('the slot of an LDAP login is released if the watch of Users stops responding during the login', async () => {
  const made = await lab('lookup');
  await made.putUser('erin', linked, false);
  const { before } = made.client;
  made.ldap.wait = async () => {
    made.ldap.wait = async () => undefined;
    made.client.before = async ({ path }) => {
      if (path === usersPath) await new Promise(() => undefined);
    };
    await made.clock.advance(25_000);
  };
  expect((await as(made, 'erin')).status).toBe(503);
  expect(made.ldap.open).toBe(0);
  made.client.before = before;
});

test('an LDAP provider that rejects bindDN is reported as a configuration warning until it accepts bindDN', async () => {
  const made = await lab();
  made.ldap.rejectsBindDN = true;
  expect((await as(made, 'erin')).status).toBe(503);
  const warnings = [
    {
      path: 'authentication.identityProviders[0] (corp).ldap.bindPasswordRef',
      message: 'the LDAP server rejects the bindDN',
    },
  ];
  expect(made.live.warnings).toEqual(warnings);
  made.ldap.rejectsBindDN = false;
  made.ldap.isDown = true;
  expect((await as(made, 'erin')).status).toBe(503);
  expect(made.live.warnings).toEqual(warnings);
  made.ldap.isDown = false;
  expect((await as(made, 'nobody')).status).toBe(400);
  expect(made.live.warnings).toEqual([]);
});

test.each(['system:masters', 'system:authenticated'])(
  'a token is rejected once its Session object has the reserved group %s',
  async (group) => {
    const made = await lab();
    const token = String((await as(made, 'erin')).json()['access_token']);
    await expect(made.accessTokens.validate(token)).resolves.toBeDefined();
    const sessions = sessionsPath('platform-system');
    const [session] = made.cluster.list(sessions);
    if (session === undefined) throw new Error('the login made no Session');
    made.cluster.put(sessions, { ...session, spec: { ...(session['spec'] as object), groups: [group] } });
    await settle();
    expect(await made.accessTokens.validate(token)).toBeUndefined();
  },
);
