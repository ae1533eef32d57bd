/** Failed logins by one name of a user do not reveal whether other names exist or belong to the same user. */
// evidence: names-unlinkable
import { afterEach, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { providerTypes } from '../../../../src/accounts/providers/index.ts';
import type { PasswordProvider } from '../../../../src/accounts/providers/provider.ts';
import type { Changeable } from '../../../../src/accounts/passwords/store.ts';
import { rightPassword } from '../../../labs/accounts.ts';
import { settle } from '../../../labs/cluster-fakes.ts';
import { createLab, login, type Lab } from '../../../labs/oauth.ts';

const second = 1_000;
const users = [
  { username: 'alice', email: 'alice@example.org' },
  { username: 'bob', email: 'robert@example.org' },
];
const loginLimit = { perAddress: 10_000, perClient: 10_000 };

/** Response of a login as an attacker sees it, and the work that it cost. */
async function seen(lab: Lab, username: string, from = '198.51.100.1', password = 'wrong'): Promise<unknown[]> {
  const before = lab.hashes.verified.length;
  const { status, headers, text } = await lab.token({ ...login, username, password }, { from });
  return [status, headers['retry-after'], text, lab.hashes.verified.slice(before)];
}

const statusOf = async (...attempt: Parameters<typeof seen>): Promise<unknown> => (await seen(...attempt))[0];

const limited = (limit: object = loginLimit): Promise<Lab> => createLab({ users, loginLimit: limit });

describe('failed logins by e-mail address and by username', () => {
  test('failed logins by e-mail address and by username do not reveal that both names belong to one user', async () => {
    for (const [first, next] of [
      ['alice@example.org', 'alice'],
      ['alice', 'alice@example.org'],
    ] as const) {
      const made = await limited();
      for (let time = 0; time < 3; time += 1) expect(await statusOf(made, first)).toBe(400);
      expect(await statusOf(made, first)).toBe(429);
      expect(await statusOf(made, next)).toBe(400);
    }
  });

  test('failed logins by e-mail address and by username get the same response, whether or not a user has the address', async () => {
    const guess = fc.record({
      isEmail: fc.boolean(),
      isUpper: fc.boolean(),
      host: fc.nat(2),
      pause: fc.constantFrom(0, second, 10 * second, 40 * second),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(guess, { minLength: 6, maxLength: 20 }), async (guesses) => {
        const transcripts = await Promise.all(
          [
            ['alice', 'alice@example.org'],
            ['alice', 'robert@example.org'],
            ['alice', 'nobody@example.org'],
            ['nobody', 'nobody@example.org'],
          ].map(async ([username = '', email = '']) => {
            const made = await limited({ ...loginLimit, within: '30s' });
            const transcript: unknown[] = [];
            for (const { isEmail, isUpper, host, pause } of guesses) {
              await made.clock.advance(pause);
              const name = isEmail ? email : username;
              transcript.push(await seen(made, isUpper ? name.toUpperCase() : name, `198.51.100.${host}`));
            }
            return transcript;
          }),
        );
        for (const transcript of transcripts) expect(transcript).toEqual(transcripts[0]);
      }),
      { numRuns: 10 },
    );
  });

  test.each(['alice@example.org', 'nobody@example.org', 'alice', 'nobody'])(
    'failed logins by e-mail address and by username are counted by the name regardless of case: %s',
    async (name) => {
      const made = await limited();
      const spellings = [name, name.toUpperCase(), `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`];
      for (const spelling of spellings) expect(await statusOf(made, spelling)).toBe(400);
      expect(await statusOf(made, name)).toBe(429);
    },
  );

  test('failed logins by e-mail address count for the user even after a change of the address, but not for logins by username', async () => {
    const made = await createLab({ loginLimit });
    await made.putUser('carol', { email: 'carol@example.org' });
    for (let time = 0; time < 3; time += 1) expect(await statusOf(made, 'carol@example.org')).toBe(400);
    await made.putUser('carol', { email: 'new@example.org' });
    expect(await statusOf(made, 'new@example.org')).toBe(429);
    expect(await statusOf(made, 'carol')).toBe(400);
  });

  test('failed logins by e-mail address and by username are both reset when the user is unlocked', async () => {
    const made = await createLab({ loginLimit });
    await made.putUser('carol', { email: 'Carol@example.org' });
    const names = ['carol', 'carol@example.org'];
    for (const name of names) for (let time = 0; time < 4; time += 1) await seen(made, name);
    for (const name of names) expect(await statusOf(made, name)).toBe(429);
    await made.passwordStore.unlock(made.directory.account('carol') as Changeable);
    await settle();
    for (const name of names) expect(await statusOf(made, name, '198.51.100.1', rightPassword)).toBe(200);
  });
});

describe('failed logins by the names of one LDAP entry', () => {
  /** All names of the LDAP entry. */
  const names = ['erin', 'e.miller', 'erin miller', 'erin@example.org', 'miller@example.org'];
  /** Names whose password was sent to the LDAP server. */
  const checked: string[] = [];
  /** Hook that runs before each response; undefined unless a test delays responses. */
  let wait: (() => Promise<void>) | undefined;
  afterEach(() => {
    wait = undefined;
  });
  /** Open connections. */
  const open = new Set<object>();
  const lookUp: PasswordProvider['lookUp'] = async (name) => {
    const connection = {};
    open.add(connection);
    return {
      subject: names.some((one) => name.toLowerCase().startsWith(one)) ? '1' : undefined,
      authenticate: async () => {
        checked.push(name);
        await wait?.();
        return undefined;
      },
      close: () => void open.delete(connection),
    };
  };
  const corp = {
    name: 'corp',
    type: 'LDAP',
    ldap: { url: 'ldaps://corp.example', userSearch: { base: 'dc=example' } },
  };

  async function lab(): Promise<Lab> {
    const types = { ...providerTypes, LDAP: { kind: 'password', create: () => ({ lookUp }) } } as const;
    const made = await createLab({ loginLimit, identityProviders: [corp] }, { providerTypes: types });
    await made.putUser('e.miller', { identities: [{ provider: 'corp', subject: '1' }] }, false);
    return made;
  }

  test.each([
    ['erin', 'e.miller'],
    ['erin@example.org', 'e.miller'],
    ['e.miller', 'erin'],
    ['e.miller', 'erin@example.org'],
    ['erin', 'erin@example.org'],
    ['erin@example.org', 'erin'],
  ])(
    'failed logins by the names of one LDAP entry do not reveal that %s and %s belong to one entry',
    async (first, next) => {
      const made = await lab();
      for (let time = 0; time < 3; time += 1) expect(await statusOf(made, first)).toBe(400);
      expect(await statusOf(made, first)).toBe(429);
      expect(await statusOf(made, next)).toBe(400);
    },
  );

  test.each([
    ['erin', 'erin miller'],
    ['erin@example.org', 'miller@example.org'],
  ])(
    'failed logins by the names of one LDAP entry count for the account, whatever the spelling: %s and %s',
    async (first, next) => {
      const made = await lab();
      for (let time = 0; time < 3; time += 1) expect(await statusOf(made, first)).toBe(400);
      expect(await statusOf(made, next)).toBe(429);
    },
  );

  test('failed logins by the names of one LDAP entry beyond the limit are not sent to the LDAP server', async () => {
    const made = await lab();
    for (let time = 0; time < 3; time += 1) await seen(made, 'erin');
    checked.length = 0;
    expect(await statusOf(made, 'erin miller')).toBe(429);
    expect(checked).toEqual([]);
  });

  test('failed logins by the names of one LDAP entry beyond the limit release their connection to the LDAP server', async () => {
    const made = await lab();
    for (let time = 0; time < 3; time += 1) await seen(made, 'erin');
    // The logins outnumber the connections and queue slots of the provider.
    const refused = Array.from({ length: 20 }, (_, index) => `erin miller ${index}`);
    for (const name of refused) expect(await statusOf(made, name)).toBe(429);
    expect(open.size).toBe(0);
    expect(await statusOf(made, 'nobody')).toBe(400);
  });

  test('concurrent failed logins by the names of one LDAP entry allow no more guesses than sequential logins, whatever the names', async () => {
    const made = await lab();
    // A provider serves this many logins of one address concurrently.
    const count = 4;
    const all = Promise.withResolvers<void>();
    checked.length = 0;
    wait = () => {
      if (checked.length === count) all.resolve();
      return all.promise;
    };
    const responses = await Promise.all(Array.from({ length: count }, (_, index) => statusOf(made, `erin ${index}`)));
    expect(responses.filter((status) => status === 400)).toHaveLength(3);
    expect(responses.filter((status) => status === 429)).toHaveLength(count - 3);
  });

  test('failed logins by the names of one LDAP entry are reset when the user is unlocked', async () => {
    const made = await lab();
    for (const name of names) for (let time = 0; time < 4; time += 1) await seen(made, name);
    const account = made.directory.account('e.miller');
    expect(account).toBeDefined();
    if (account !== undefined) made.limiter.unlock(account);
    for (const name of names) expect(await statusOf(made, name)).toBe(400);
  });
});
