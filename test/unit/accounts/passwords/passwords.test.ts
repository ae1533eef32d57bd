import { describe, expect, test } from '@jest/globals';
import bcrypt from 'bcrypt';
import * as fc from 'fast-check';
import {
  maxPasswordBytes,
  nativeHashFunctions,
  Passwords,
  preferred,
} from '../../../../src/accounts/passwords/passwords.ts';
import { parametersOf } from '../../../../src/config/hash-parameters.ts';
import { CountingHashes } from '../../../fakes/hashes.ts';
import { FakeClock, settle } from '../../../labs/cluster-fakes.ts';

const slow = 'argon2id:65536:3:4';
const fast = 'bcrypt:4';

/** Verifies a password of an unknown user while hashes with these parameters are in use. Returns the result and the decoy. */
async function verifiedDecoy(parameters: string): Promise<{ result: boolean; decoy: string }> {
  let decoy = '';
  const passwords = new Passwords({
    ...nativeHashFunctions,
    async verify(hash, password) {
      decoy = hash;
      return await nativeHashFunctions.verify(hash, password);
    },
  });
  await passwords.prepare([parameters]);
  return { result: await passwords.verify(undefined, 'x'), decoy };
}

describe('the hash functions', () => {
  test.each([
    // crypt_blowfish test vectors.
    ['U*U', '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'],
    ['U*U*U', '$2b$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a'],
    ['U*U*U', '$2y$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a'],
    // Test vectors of the Argon2 reference implementation.
    ['password', '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'],
    ['password', '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4'],
    ['password', '$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc'],
  ])('the hash functions verify the password %j against the hash %s', async (password, hash) => {
    expect(parametersOf(hash)).toBeDefined();
    expect(await nativeHashFunctions.verify(hash, password)).toBe(true);
    for (const other of [`${password}x`, password.slice(0, -1), password.toLowerCase().replace('p', 'P'), ''])
      expect(await nativeHashFunctions.verify(hash, other)).toBe(false);
  });

  test.each(['bcrypt:4', 'bcrypt:5', 'argon2id:256:2:1', 'argon2id:1024:1:4', preferred])(
    'a new hash with the parameters %s contains the parameters and matches only its password',
    async (parameters) => {
      const [one, two] = [
        await nativeHashFunctions.hash('pässword', parameters),
        await nativeHashFunctions.hash('pässword', parameters),
      ];
      expect(parametersOf(one)).toBe(parameters);
      expect(one).not.toBe(two);
      expect(await nativeHashFunctions.verify(one, 'pässword')).toBe(true);
      expect(await nativeHashFunctions.verify(one, 'password')).toBe(false);
    },
  );

  test.each(['bcrypt:4', 'bcrypt:12', 'argon2id:256:2:1', 'argon2id:1024:1:4', preferred])(
    'verifying a password of an unknown user verifies a hash with the parameters %s, which matches no password',
    async (parameters) => {
      const { result, decoy } = await verifiedDecoy(parameters);
      expect(result).toBe(false);
      expect(parametersOf(decoy)).toBe(parameters);
    },
  );

  // bcrypt would reject a malformed salt at once, and without an error.
  test('verifying a password of an unknown user verifies a bcrypt hash whose salt bcrypt accepts', async () => {
    const { decoy } = await verifiedDecoy('bcrypt:4');
    expect((await bcrypt.hash('x', decoy.slice(0, 29))).slice(0, 28)).toBe(decoy.slice(0, 28));
  });

  test.each(['bcrypt:4', 'argon2id:256:2:1'])(
    'a hash with the parameters %s depends on every byte of a password that contains a NUL',
    async (parameters) => {
      const hash = await nativeHashFunctions.hash('a\0b', parameters);
      expect(await nativeHashFunctions.verify(hash, 'a\0b')).toBe(true);
      expect(await nativeHashFunctions.verify(hash, 'a\0c')).toBe(false);
      expect(await nativeHashFunctions.verify(hash, 'a')).toBe(false);
    },
  );
});

describe('a new hash', () => {
  test('a new hash uses the preferred parameters, which meet the OWASP recommendation', async () => {
    const hash = await new Passwords().hash('correct horse');
    expect(parametersOf(hash)).toBe('argon2id:19456:2:1');
    expect(await new Passwords().verify(hash, 'correct horse')).toBe(true);
  });
});

const ways = (hashes: CountingHashes): [string, string | undefined, string, boolean][] => [
  ['an unknown user', undefined, 'right', true],
  ['a wrong password', hashes.of('right', slow), 'wrong', true],
  ['a disabled user', hashes.of('right', slow), 'right', false],
  ['a disabled user with a wrong password', hashes.of('right', slow), 'wrong', false],
  ['a malformed hash', 'right', 'right', true],
  ['an empty hash', '', '', true],
  ['a password that is too long', hashes.of('right', slow), 'x'.repeat(maxPasswordBytes + 1), true],
  [
    'a password that is too long, and the hash of an empty password',
    hashes.of('', slow),
    'é'.repeat(maxPasswordBytes),
    true,
  ],
  ['an empty password', hashes.of('right', slow), '', true],
];

/** Verifications that end when the test resolves them. */
function held() {
  const { promise: gate, resolve: release } = Promise.withResolvers<void>();
  const hashes = new CountingHashes();
  const passwords = new Passwords({
    hash: (password, parameters) => hashes.hash(password, parameters),
    verify: async (hash, password) => {
      await gate;
      return await hashes.verify(hash, password);
    },
  });
  const hash = hashes.of('right', fast);
  const verify = (source: string): Promise<unknown> =>
    passwords.verify(hash, 'right', { source }).catch((error: unknown) => error);
  return { release, hashes, passwords, hash, verify };
}

describe('verifying a password', () => {
  // evidence: password-check-equal-work
  test.each(ways(new CountingHashes()).map(([name], index) => [name, index] as const))(
    'verifying a password returns false for %s after exactly one verification with the parameters in use',
    async (_name, index) => {
      const hashes = new CountingHashes();
      const passwords = new Passwords(hashes);
      await passwords.prepare([slow]);
      hashes.verified.length = 0;
      hashes.hashed.length = 0;
      const [, hash, password, active] = ways(hashes)[index] ?? ['', '', '', true];
      expect(await passwords.verify(hash, password, { active })).toBe(false);
      expect(hashes.verified).toEqual([slow]);
      expect(hashes.hashed).toEqual([]);
    },
  );

  test('verifying a password returns true for the right password of an active user, after one verification', async () => {
    const hashes = new CountingHashes();
    const passwords = new Passwords(hashes);
    await passwords.prepare([slow]);
    hashes.verified.length = 0;
    expect(await passwords.verify(hashes.of('right', slow), 'right')).toBe(true);
    expect(await passwords.verify(hashes.of('x'.repeat(maxPasswordBytes), slow), 'x'.repeat(maxPasswordBytes))).toBe(
      true,
    );
    expect(hashes.verified).toEqual([slow, slow]);
  });

  test('verifying a password passes no more than the maximum password length to the hash function', async () => {
    const hashes = new CountingHashes();
    const passwords = new Passwords(hashes);
    await passwords.verify(hashes.of('right', slow), 'é'.repeat(maxPasswordBytes));
    expect(hashes.tried).toEqual(['']);
  });

  test('verifying a password succeeds before any hash parameters are prepared', async () => {
    const hashes = new CountingHashes();
    const passwords = new Passwords(hashes);
    expect(await passwords.verify(undefined, 'x')).toBe(false);
    expect(hashes.verified).toEqual([preferred]);
  });

  // The memory of the first hash stays with the process.
  test.each([
    ['no hash parameters', []],
    ['one set of hash parameters', [slow]],
    ['the same hash parameters twice', [slow, slow]],
  ])('preparing %s computes no hash', async (_what, inUse) => {
    const hashes = new CountingHashes();
    await new Passwords(hashes).prepare(inUse);
    expect(hashes).toMatchObject({ verified: [], hashed: [] });
  });

  test('verifying a password for an unknown user uses the slowest parameters currently in use', async () => {
    const clock = new FakeClock();
    const hashes = new CountingHashes({ clock, costs: { [fast]: 10, [slow]: 200, [preferred]: 50 } });
    const passwords = new Passwords(hashes, clock);
    const decoyFor = async (...inUse: string[]): Promise<string | undefined> => {
      await passwords.prepare(inUse);
      hashes.verified.length = 0;
      await passwords.verify(undefined, 'x');
      return hashes.verified[0];
    };
    expect(await decoyFor(fast)).toBe(fast);
    expect(await decoyFor(fast, slow)).toBe(slow);
    expect(await decoyFor(slow, fast)).toBe(slow);
    expect(await decoyFor(fast)).toBe(fast);
    expect(await decoyFor()).toBe(preferred);
  });

  test.each([
    ['a wrong password', 'wrong', true],
    ['the right password of a disabled user', 'right', false],
    ['a password that is too long', 'x'.repeat(2_000), true],
  ])(
    'verifying a password against a cheaper hash fails no sooner than against the slowest hash: %s',
    async (_what, password, active) => {
      const clock = new FakeClock();
      const hashes = new CountingHashes({ clock, costs: { [fast]: 10, [slow]: 200 } });
      const passwords = new Passwords(hashes, clock);
      await passwords.prepare([fast, slow]);
      const started = clock.now();
      let response: boolean | undefined;
      const verified = passwords
        .verify(hashes.of('right', fast), password, { active })
        .then((value) => (response = value));
      await settle();
      expect(response).toBeUndefined();
      await clock.advance(started + 199 - clock.now());
      expect(response).toBeUndefined();
      await clock.advance(1);
      await verified;
      expect(response).toBe(false);
    },
  );

  test('verifying a password against a cheaper hash succeeds at once', async () => {
    const clock = new FakeClock();
    const hashes = new CountingHashes({ clock, costs: { [fast]: 10, [slow]: 200 } });
    const passwords = new Passwords(hashes, clock);
    await passwords.prepare([fast, slow]);
    expect(await passwords.verify(hashes.of('right', fast), 'right')).toBe(true);
    expect(clock.pending()).toEqual([]);
  });

  const retryLater = { headers: { 'Retry-After': '1' } };

  // evidence: hash-queue-overflow
  test('verifying a password returns 429 only to an address with too many pending verifications, and only while they are pending', async () => {
    const { release, hashes, passwords, hash, verify } = held();
    const all = Array.from({ length: 500 }, (_, index) => verify(`2001:db8:1:2::${index.toString(16)}`));
    expect(await Promise.race(all)).toMatchObject({ reason: 'TooManyRequests', code: 429, ...retryLater });
    const other = verify('192.0.2.1');
    release();
    const responses = await Promise.all(all);
    const passed = responses.filter((response) => response === true).length;
    expect(passed).toBeGreaterThanOrEqual(65);
    expect(passed).toBeLessThan(200);
    expect(await other).toBe(true);
    expect(hashes.verified).toHaveLength(passed + 1);
    expect(await passwords.verify(hash, 'right')).toBe(true);
  });

  test('verifying a password returns 429 to the address with the most pending verifications when the queue is full', async () => {
    const { release, verify } = held();
    const all = Array.from({ length: 1_000 }, (_, index) => verify(`192.0.2.${index % 10}`));
    const other = verify('198.51.100.1');
    release();
    const responses = await Promise.all(all);
    expect(responses).toContainEqual(expect.objectContaining({ code: 429, ...retryLater }));
    expect(await other).toBe(true);
  });

  // evidence: hash-queue-fairness
  test('verifying a password waits for at most one verification of each other address', async () => {
    const ends: (() => void)[] = [];
    const passwords = new Passwords({
      hash: () => Promise.reject(new Error('nothing is hashed')),
      verify: async () => {
        const { promise, resolve } = Promise.withResolvers<boolean>();
        ends.push(() => resolve(true));
        return await promise;
      },
    });
    const hash = new CountingHashes().of('right', fast);
    const flood = Array.from({ length: 60 }, () => passwords.verify(hash, 'right', { source: '192.0.2.1' }));
    await settle();
    const atOnce = ends.length;
    let isIn = false;
    const other = passwords.verify(hash, 'right', { source: '192.0.2.2' }).then(() => (isIn = true));
    for (let index = 0; index < 2 * atOnce + 1; index += 1) {
      ends[index]?.();
      await settle();
    }
    expect(isIn).toBe(true);
    for (let index = 0; index < 61; index += 1) {
      ends[index]?.();
      await settle();
    }
    await Promise.all([...flood, other]);
  });

  test('verifying a password succeeds again after the hash function has failed', async () => {
    const hashes = new CountingHashes();
    const passwords = new Passwords(hashes);
    hashes.failure = new Error('out of memory');
    await passwords.prepare([slow, fast]);
    await expect(passwords.verify(undefined, 'x')).rejects.toThrow('out of memory');
    hashes.failure = undefined;
    expect(await passwords.verify(undefined, 'x')).toBe(false);
    await passwords.prepare([slow, fast]);
    hashes.verified.length = 0;
    expect(await passwords.verify(undefined, 'x')).toBe(false);
    expect(hashes.verified).toHaveLength(1);
  });

  // evidence: password-check-correct
  test('verifying a password returns true only for the same password, whatever the input', async () => {
    const hashes = new CountingHashes();
    const passwords = new Passwords(hashes);
    await fc.assert(
      fc.asyncProperty(fc.string({ minLength: 1 }), fc.string(), fc.boolean(), async (password, tried, active) => {
        expect(await passwords.verify(hashes.of(password, fast), tried, { active })).toBe(active && tried === password);
      }),
    );
  });
});
