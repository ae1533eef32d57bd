// evidence: login-limit
import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { Attempt, LoginAttempt, SecretAttempt } from '../../../../src/accounts/logins/attempt.ts';
import { LoginLimiter } from '../../../../src/accounts/logins/limit.ts';

const second = 1_000;
const minute = 60 * second;
const limit = { maxTries: 5, within: 10 * minute, perAddress: 12, perClient: 30 };

const attempt = (username: string, address = '10.0.0.1', client = 'platform'): LoginAttempt => ({
  guesses: 'password',
  username,
  address,
  client,
});

/** Returns an address in another /64 of the same /48 for each index. */
const addressOf = (index: number): string => `2001:db8:1:${index.toString(16)}::1`;

interface Lab {
  readonly limiter: LoginLimiter;
  readonly advance: (milliseconds: number) => void;
  readonly wait: (one: LoginAttempt) => number;
  readonly fail: (one: LoginAttempt, times?: number) => void;
}

function lab(chosen = limit): Lab {
  let now = 1_000_000;
  const limiter = new LoginLimiter(
    () => chosen,
    () => now,
  );
  return {
    limiter,
    advance: (milliseconds) => {
      now += milliseconds;
    },
    wait: (one) => limiter.retryAfter(one),
    fail: (one, times = 1) => {
      for (let time = 0; time < times; time += 1) limiter.failed(one);
    },
  };
}

describe('the delay of a user', () => {
  test.each([
    [0, 0],
    [1, 0],
    [2, 0],
    [3, 1],
    [4, 2],
    [5, 4],
    [6, 8],
    [7, 16],
    [8, 32],
    [9, 60],
    [10, 60],
    [11, 60],
  ])('the delay of a user after %d failures from different addresses is %d s', (failures, seconds) => {
    const { wait, fail } = lab({ ...limit, perAddress: 1_000 });
    for (let index = 0; index < failures; index += 1) fail(attempt('alice', `10.0.0.${index}`));
    expect(wait(attempt('alice', '10.1.0.1'))).toBe(seconds);
    expect(wait(attempt('bob', '10.1.0.1'))).toBe(0);
  });

  test('the delay of a user is reported in whole seconds, rounded up, until the delay is over', () => {
    const { wait, fail, advance } = lab();
    fail(attempt('alice'), 4);
    expect(wait(attempt('alice'))).toBe(2);
    advance(1);
    expect(wait(attempt('alice'))).toBe(2);
    advance(second);
    expect(wait(attempt('alice'))).toBe(1);
    advance(998);
    expect(wait(attempt('alice'))).toBe(1);
    advance(1);
    expect(wait(attempt('alice'))).toBe(0);
  });

  test('the delay of a user returns to zero one window after the last failure', () => {
    const { wait, fail, advance } = lab();
    fail(attempt('alice'), 4);
    advance(limit.within - 1);
    fail(attempt('alice'));
    expect(wait(attempt('alice', '10.1.0.1'))).toBe(4);
    advance(limit.within);
    fail(attempt('alice'));
    expect(wait(attempt('alice', '10.1.0.1'))).toBe(0);
  });
});

describe('an address with a recent login of the user', () => {
  const own = attempt('alice', '10.1.0.1');

  // evidence: familiar-address-no-lockout
  test('an address with a recent login of the user is not delayed by failures from other addresses', () => {
    const { limiter, wait, fail, advance } = lab({ ...limit, perAddress: 1_000 });
    limiter.succeeded(own);
    for (let index = 0; index < 25; index += 1) fail(attempt('alice', `10.2.0.${index}`));
    expect(wait(own)).toBe(0);
    expect(wait(attempt('alice', '10.1.0.2'))).toBe(60);
    advance(31 * 24 * 60 * minute);
    for (let index = 0; index < 25; index += 1) fail(attempt('alice', `10.2.0.${index}`));
    expect(wait(own)).toBe(60);
  });

  // evidence: familiar-address-limit
  test('an address with a recent login of the user is still limited by its own failures', () => {
    const { limiter, wait, fail } = lab();
    limiter.succeeded(own);
    fail(own, limit.maxTries);
    expect(wait(own)).toBe(limit.within / second);
  });

  test('an address with a recent login of the user is not delayed by pending attempts from other addresses', () => {
    const { limiter } = lab();
    limiter.succeeded(own);
    for (let time = 0; time < 3; time += 1) expect(limiter.enter(attempt('alice', `10.2.0.${time}`))).toBe(0);
    expect(limiter.enter(attempt('alice', '10.1.0.2'))).toBeInstanceOf(Promise);
    expect(limiter.enter(own)).toBe(0);
  });

  test('an address with a recent login of the user is stored for a month after the last login', () => {
    const { limiter, wait, fail, advance } = lab();
    for (let time = 0; time < 90; time += 1) {
      limiter.succeeded(own);
      advance(12 * 60 * minute);
    }
    advance(28 * 24 * 60 * minute);
    fail(attempt('alice', '10.2.0.1'), 4);
    expect(wait(own)).toBe(0);
  });
});

describe('the hard limit', () => {
  test('the hard limit of a user and address lasts one window after the last failure, and does not affect other users and addresses', () => {
    const { wait, fail, advance } = lab();
    fail(attempt('alice'), limit.maxTries - 1);
    advance(minute);
    expect(wait(attempt('alice'))).toBe(0);
    fail(attempt('alice'));
    expect(wait(attempt('alice'))).toBe(limit.within / second);
    advance(minute);
    expect(wait(attempt('alice'))).toBe(limit.within / second - 60);
    expect(wait(attempt('alice', '10.0.0.2'))).toBe(0);
    expect(wait(attempt('bob'))).toBe(0);
    advance(limit.within - minute - 1);
    expect(wait(attempt('alice'))).toBe(1);
    advance(1);
    expect(wait(attempt('alice'))).toBe(0);
  });

  // evidence: address-limit-any-name
  test('the hard limit of an address counts failures of all usernames', () => {
    const { wait, fail } = lab();
    for (let index = 0; index < limit.perAddress - 1; index += 1) fail(attempt(`nobody-${index}`));
    expect(wait(attempt('alice'))).toBe(0);
    fail(attempt('another'));
    expect(wait(attempt('alice'))).toBe(limit.within / second);
    expect(wait(attempt('alice', '10.0.0.2'))).toBe(0);
  });

  test('the hard limit of an address allows an attempt when the oldest failure expires, not when the latest failure does', () => {
    const { wait, fail, advance } = lab({ ...limit, perAddress: 2 });
    fail(attempt('one'));
    advance(4 * minute);
    fail(attempt('two'));
    advance(minute);
    expect(wait(attempt('alice'))).toBe(5 * 60);
    advance(5 * minute);
    expect(wait(attempt('alice'))).toBe(0);
    fail(attempt('three'));
    expect(wait(attempt('alice'))).toBe(4 * 60);
  });

  test('the hard limit of an IPv6 /48 counts failures from all its /64s, and is five times the limit of an address', () => {
    const { wait, fail } = lab({ ...limit, perClient: 1_000 });
    const addresses = Array.from({ length: 5 * limit.perAddress + 1 }, (_, index) => `2001:db8:1:${index}::1`);
    const [first = '', last = '', ...others] = addresses;
    for (const [index, address] of others.entries()) fail(attempt(`nobody-${index}`, address));
    expect(wait(attempt('alice', first))).toBe(0);
    fail(attempt('another', last));
    expect(wait(attempt('alice', first))).toBe(limit.within / second);
    expect(wait(attempt('alice', '2001:db8:2::1'))).toBe(0);
  });

  test.each([
    ['half of `perClient` if that is less than five times `perAddress`', { perAddress: 300, perClient: 1_000 }, 500],
    ['half of `perClient`, rounded down, if `perClient` is odd', { perAddress: 12, perClient: 31 }, 15],
    ['`perAddress` if half of `perClient` is less than `perAddress`', { perAddress: 12, perClient: 20 }, 12],
  ])('the hard limit of an IPv6 /48 is %s', (_, chosen, max) => {
    const { wait, fail } = lab({ ...limit, ...chosen });
    for (let index = 1; index < max; index += 1) fail(attempt(`nobody-${index}`, addressOf(index)));
    expect(wait(attempt('alice', addressOf(0)))).toBe(0);
    fail(attempt('another', addressOf(max)));
    expect(wait(attempt('alice', addressOf(0)))).toBe(limit.within / second);
    expect(wait(attempt('alice'))).toBe(0);
  });

  test.each<[string, (username: string, address: string) => Attempt]>([
    ['a user', (username, address) => attempt(username, address)],
    ['a client', (client, address) => secret(client, address)],
  ])('the hard limit of an IPv6 /48 does not apply to %s at a /64 with an earlier successful login', (_, guess) => {
    const { limiter } = lab({ ...limit, perClient: 1_000 });
    limiter.succeeded(guess('alice', '2001:db8:1:a::1'));
    for (let index = 0; index < 5 * limit.perAddress; index += 1)
      limiter.failed(guess(`nobody-${index}`, `2001:db8:1:${index % 6}::1`));
    expect(limiter.enter(guess('alice', '2001:db8:1:a::2'))).toBe(0);
    expect(limiter.enter(guess('alice', '2001:db8:1:b::1'))).toBe(limit.within / second);
    expect(limiter.enter(guess('bob', '2001:db8:1:a::1'))).toBe(limit.within / second);
    // The limit of the /64 itself still applies.
    for (let index = 0; index < limit.perAddress; index += 1)
      limiter.failed(guess(`neighbor-${index}`, '2001:db8:1:a::3'));
    expect(limiter.enter(guess('alice', '2001:db8:1:a::2'))).toBe(limit.within / second);
  });

  // evidence: client-limit-any-address
  test('the hard limit of a client counts failures from all addresses', () => {
    const { wait, fail } = lab();
    for (let index = 0; index < limit.perClient - 1; index += 1) fail(attempt(`nobody-${index}`, `10.2.0.${index}`));
    expect(wait(attempt('alice'))).toBe(0);
    fail(attempt('another', '10.3.0.1'));
    expect(wait(attempt('alice'))).toBe(limit.within / second);
    expect(wait(attempt('alice', '10.0.0.1', 'console'))).toBe(0);
  });

  test.each([
    ['a client', (index: number) => attempt(`name-${index}`, `10.2.${index % 256}.${index}`)],
    ['an address', (index: number) => attempt(`name-${index}`)],
  ])('the hard limit of %s ignores failures older than a window, even during a continuous flood', (_, one) => {
    const { limiter, wait, advance } = lab();
    // Each window contains ten failures. The limits are twelve per address and thirty per client.
    for (let index = 0; index < 500; index += 1) {
      expect(wait(one(index))).toBe(0);
      limiter.failed(one(index));
      advance(minute);
    }
  });

  test.each([
    ['together', '2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff'],
    ['together', '2001:db8:1:2::1', '2001:0DB8:0001:0002::9'],
    ['together', '2001:db8::1', '2001:db8:0:0:8000::'],
    ['together', 'fe80::1%eth0', 'fe80::2%eth0'],
    ['separately', '2001:db8:1:2::1', '2001:db8:1:3::1'],
    ['separately', '2001:db8::1', '2001:db8:1::1'],
    ['separately', '1::', '::1'],
    ['separately', '10.0.0.1', '10.0.0.2'],
  ])('the hard limit counts failures from two addresses %s: %s and %s', (outcome, one, other) => {
    const isSame = outcome === 'together';
    const { wait, fail } = lab();
    fail(attempt('alice', one), limit.maxTries);
    for (let index = limit.maxTries; index < limit.perAddress; index += 1) fail(attempt(`nobody-${index}`, one));
    expect(wait(attempt('alice', other)) === limit.within / second).toBe(isSame);
    expect(wait(attempt('bob', other)) > 0).toBe(isSame);
  });

  test('the hard limit of a client does not apply to a user at the address of a recent login', () => {
    const { limiter, wait, fail, advance } = lab({ ...limit, perAddress: 1_000 });
    limiter.succeeded(attempt('alice', '10.1.0.1'));
    for (let index = 0; index < limit.perClient; index += 1) fail(attempt(`nobody-${index}`));
    expect(wait(attempt('alice', '10.1.0.1'))).toBe(0);
    expect(wait(attempt('alice', '10.1.0.2'))).toBeGreaterThan(0);
    expect(wait(attempt('bob', '10.1.0.1'))).toBeGreaterThan(0);
    fail(attempt('alice', '10.1.0.1'), limit.maxTries);
    expect(wait(attempt('alice', '10.1.0.1'))).toBe(limit.within / second);
    advance(31 * 24 * 60 * minute);
    for (let index = 0; index < limit.perClient; index += 1) fail(attempt(`nobody-${index}`));
    expect(wait(attempt('alice', '10.1.0.1'))).toBeGreaterThan(0);
  });

  test('the hard limit counts failures separately for each pair of user and address, whatever characters the names contain', () => {
    const { wait, fail } = lab();
    fail(attempt('a","b', 'c'), limit.maxTries);
    expect(wait(attempt('a', 'b","c'))).toBe(0);
    fail(attempt('x', ''), limit.maxTries);
    expect(wait(attempt('', 'x'))).toBe(0);
  });

  test('the hard limit follows configuration changes', () => {
    let maxTries = 100;
    const limiter = new LoginLimiter(
      () => ({ ...limit, maxTries }),
      () => 0,
    );
    limiter.failed(attempt('alice'));
    limiter.failed(attempt('alice'));
    expect(limiter.retryAfter(attempt('alice'))).toBe(0);
    maxTries = 2;
    expect(limiter.retryAfter(attempt('alice'))).toBe(limit.within / second);
  });
});

describe('a successful login', () => {
  test('a successful login resets the failures of the user, whatever addresses they came from', () => {
    const { limiter, wait, fail } = lab();
    fail(attempt('alice'), 4);
    limiter.succeeded(attempt('alice'));
    expect(wait(attempt('alice'))).toBe(0);
    fail(attempt('alice'), 2);
    expect(wait(attempt('alice'))).toBe(0);
  });

  test('a successful login does not reset the failures of the address or the client', () => {
    const { limiter, wait, fail } = lab({ ...limit, perClient: 12 });
    for (let index = 0; index < 11; index += 1) {
      fail(attempt(`victim-${index}`));
      limiter.succeeded(attempt('mallory'));
    }
    expect(wait(attempt('mallory'))).toBe(0);
    fail(attempt('victim'));
    limiter.succeeded(attempt('mallory'));
    expect(wait(attempt('mallory'))).toBe(limit.within / second);
    expect(wait(attempt('mallory', '10.9.9.9'))).toBe(limit.within / second);
  });
});

const secret = (client = 'console', address = '10.0.0.1'): SecretAttempt => ({ guesses: 'secret', client, address });

describe('guesses at a client secret', () => {
  test('guesses at a client secret are limited per address, and do not delay the client at other addresses', () => {
    const { limiter } = lab();
    for (let time = 0; time < limit.maxTries; time += 1) {
      expect(limiter.retryAfter(secret())).toBe(0);
      limiter.failed(secret());
    }
    expect(limiter.retryAfter(secret())).toBe(limit.within / second);
    expect(limiter.retryAfter(secret('other'))).toBe(0);
    expect(limiter.retryAfter(secret('console', '10.0.0.2'))).toBe(0);
  });

  test('guesses at a client secret are limited per address and per client, except at an address where the client recently authenticated', () => {
    const { limiter } = lab();
    limiter.succeeded(secret('console', '10.1.0.1'));
    for (let index = 0; index < limit.perAddress; index += 1) limiter.failed(secret(`client-${index}`));
    expect(limiter.retryAfter(secret('another'))).toBeGreaterThan(0);
    for (let index = 0; index < limit.perClient; index += 1) limiter.failed(secret('console', `10.2.0.${index}`));
    expect(limiter.retryAfter(secret('console', '10.1.0.2'))).toBeGreaterThan(0);
    expect(limiter.retryAfter(secret('console', '10.1.0.1'))).toBe(0);
  });

  test('guesses at a client secret are counted separately from guesses at device codes and passwords, even with similar names', () => {
    const names = ['alice', 'device:alice', 'p:alice', 'u:alice', '["alice","10.0.0.1"]', ''];
    const all = names.flatMap((username): Attempt[] => [
      attempt(username),
      { ...attempt(username), guesses: 'user code' },
      { guesses: 'secret', client: username, address: '10.0.0.1' },
    ]);
    for (const one of all) {
      const alone = lab({ ...limit, perAddress: 1_000, perClient: 1_000 }).limiter;
      for (let time = 0; time < limit.maxTries; time += 1) alone.failed(one);
      expect(all.filter((other) => alone.retryAfter({ ...other }) > 0)).toEqual([one]);
    }
  });

  test('guesses at a client secret are counted separately from failed logins', () => {
    const { limiter, wait, fail } = lab();
    fail(attempt('alice', '10.0.0.1', 'console'), limit.perClient);
    expect(limiter.retryAfter(secret())).toBe(0);
    for (let index = 0; index < limit.perClient; index += 1) limiter.failed(secret('platform', `10.2.0.${index}`));
    for (let index = 0; index < limit.perAddress; index += 1) limiter.failed(secret(`client-${index}`, '10.3.0.1'));
    expect(wait(attempt('bob', '10.3.0.1'))).toBe(0);
  });
});

const code = (address: string): Attempt => ({ guesses: 'provider code', address });

// evidence: provider-code-limit
test('guesses at provider login codes are limited per address, and counted separately from all other guesses', () => {
  const { limiter, wait } = lab();
  for (let time = 0; time < limit.perAddress; time += 1) {
    expect(limiter.retryAfter(code('10.0.0.1'))).toBe(0);
    limiter.failed(code('10.0.0.1'));
  }
  expect(limiter.retryAfter(code('10.0.0.1'))).toBe(limit.within / second);
  expect(limiter.retryAfter(code('10.0.0.2'))).toBe(0);
  expect(wait(attempt('alice', '10.0.0.1'))).toBe(0);
  expect(limiter.retryAfter(secret('console', '10.0.0.1'))).toBe(0);
});

/** Starts all attempts before the first one ends. Every attempt that the limiter allows fails. */
async function allFail(limiter: LoginLimiter, attempts: readonly Attempt[]): Promise<number> {
  let admitted = 0;
  await Promise.all(
    attempts.map(async (one) => {
      if ((await limiter.enter(one)) > 0) return;
      admitted += 1;
      await new Promise((resolve) => setImmediate(resolve));
      limiter.failed(one);
      limiter.leave(one);
    }),
  );
  return admitted;
}

describe('concurrent login attempts', () => {
  const numbers = Array.from({ length: 64 }, (_, index) => index);

  // evidence: login-limit-concurrent
  test.each([
    ['of a user from one address', () => attempt('alice'), 3],
    ['of a user from many addresses', (index: number) => attempt('alice', `10.0.0.${index}`), 3],
    ['of any user from one address', (index: number) => attempt(`name-${index}`), limit.perAddress],
    ['of any user through one client', (index: number) => attempt(`name-${index}`, `10.0.0.${index}`), limit.perClient],
    ['with the secret of a client from one address', () => secret(), limit.maxTries],
  ])('concurrent login attempts %s fail no more often than sequential attempts could', async (_, one, maxFailures) => {
    const { limiter } = lab();
    expect(
      await allFail(
        limiter,
        numbers.map((index) => one(index)),
      ),
    ).toBe(maxFailures);
    expect(await limiter.enter(one(0))).toBeGreaterThan(0);
  });

  test('concurrent login attempts of a user with a delay run one at a time once the delay is over', async () => {
    const { limiter, fail, advance } = lab();
    fail(attempt('alice', '10.0.1.1'), 3);
    advance(second);
    expect(
      await allFail(
        limiter,
        numbers.map((index) => attempt('alice', `10.0.0.${index}`)),
      ),
    ).toBe(1);
  });

  test('concurrent login attempts that succeed are all processed in order, and do not count as failures afterwards', async () => {
    const { limiter } = lab();
    const order: number[] = [];
    let maxFailures = 0;
    let now = 0;
    for (let round = 0; round < 3; round += 1)
      await Promise.all(
        numbers.map(async (index) => {
          const one = attempt('alice');
          expect(await limiter.enter(one)).toBe(0);
          maxFailures = Math.max(maxFailures, (now += 1));
          order.push(index);
          await new Promise((resolve) => setImmediate(resolve));
          limiter.succeeded(one);
          now -= 1;
          limiter.leave(one);
        }),
      );
    expect(order).toEqual([...numbers, ...numbers, ...numbers]);
    expect(maxFailures).toBeLessThanOrEqual(limit.maxTries);
    expect(limiter.enter(attempt('alice'))).toBe(0);
  });

  test('concurrent login attempts that neither succeed nor fail are not counted', async () => {
    const { limiter } = lab();
    for (let time = 0; time < 100; time += 1) {
      const one = attempt('alice');
      expect(limiter.enter(one)).toBe(0);
      limiter.leave(one);
    }
  });

  test('concurrent login attempts count twice if they contain two guesses', async () => {
    const { limiter } = lab();
    const all = [secret(), secret(), secret(), secret()];
    expect(all.slice(0, 3).map((one) => limiter.enter(one, 2))).toEqual([0, 0, 0]);
    const last = limiter.enter(secret(), 2);
    expect(last).toBeInstanceOf(Promise);
    for (const one of all.slice(0, 3)) {
      limiter.failed(one);
      limiter.failed(one);
      limiter.leave(one, 2);
    }
    expect(await last).toBeGreaterThan(0);
  });

  test('concurrent login attempts are not delayed by login attempts of other users', () => {
    const { limiter } = lab();
    for (let time = 0; time < 3; time += 1) expect(limiter.enter(attempt('alice'))).toBe(0);
    expect(limiter.enter(attempt('alice'))).toBeInstanceOf(Promise);
    expect(limiter.enter(attempt('bob'))).toBe(0);
    expect(limiter.enter(secret())).toBe(0);
  });

  test('concurrent login attempts never fail more often than the limits allow, and never wait forever, whatever their outcomes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ user: fc.nat(2), host: fc.nat(2), right: fc.boolean(), lasts: fc.nat(3) }), {
          maxLength: 60,
        }),
        async (guesses) => {
          const { limiter } = lab();
          let failures = 0;
          const responses = await Promise.all(
            guesses.map(async ({ user, host, right, lasts }) => {
              const one = attempt(`user-${user}`, `10.0.0.${host}`);
              const seconds = await limiter.enter(one);
              if (seconds > 0) return seconds;
              for (let turn = 0; turn < lasts; turn += 1) await new Promise((resolve) => setImmediate(resolve));
              if (right) limiter.succeeded(one);
              else {
                failures += 1;
                limiter.failed(one);
              }
              limiter.leave(one);
              return 0;
            }),
          );
          expect(responses).toHaveLength(guesses.length);
          expect(failures).toBeLessThanOrEqual(limit.perClient);
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe('the login limiter', () => {
  test('the login limiter evicts the oldest names when a flood of names exceeds its size', () => {
    const { wait, fail, advance } = lab({ ...limit, perAddress: 1e9, perClient: 1e9 });
    fail(attempt('alice'), limit.maxTries);
    advance(second);
    expect(wait(attempt('alice'))).toBeGreaterThan(0);
    for (let index = 0; index < 30_000; index += 1) fail(attempt(`name-${index}`, `address-${index}`));
    expect(wait(attempt('alice'))).toBe(0);
    fail(attempt('name-29999', 'address-29999'), limit.maxTries);
    expect(wait(attempt('name-29999', 'address-29999'))).toBeGreaterThan(0);
  });

  test('the login limiter never allows more guesses at one username from one address than the limit, whatever their timing', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 4 * minute }), { maxLength: 60 }), (pauses) => {
        const { limiter, advance, wait } = lab();
        const guesses: number[] = [];
        let now = 0;
        for (const pause of pauses) {
          advance(pause);
          now += pause;
          if (wait(attempt('alice')) > 0) continue;
          limiter.failed(attempt('alice'));
          guesses.push(now);
        }
        for (const start of guesses)
          expect(guesses.filter((at) => at >= start && at < start + limit.within).length).toBeLessThanOrEqual(
            limit.maxTries,
          );
      }),
    );
  });

  test('the login limiter never allows more failures through a client in a window than the limit, whatever their timing', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: minute }), { maxLength: 150 }), (pauses) => {
        const { limiter, advance, wait } = lab();
        const failures: number[] = [];
        let now = 0;
        for (const [index, pause] of pauses.entries()) {
          const one = attempt(`name-${index}`, `10.0.0.${index}`);
          advance(pause);
          const needed = wait(one) * second;
          advance(needed);
          now += pause + needed;
          expect(wait(one)).toBe(0);
          limiter.failed(one);
          failures.push(now);
        }
        for (const start of failures)
          expect(failures.filter((at) => at >= start && at < start + limit.within).length).toBeLessThanOrEqual(
            limit.perClient,
          );
      }),
    );
  });

  test('the login limiter reports how long to wait before the next attempt', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: minute }), (failures, pause) => {
        const { limiter, advance, wait } = lab();
        for (let index = 0; index < failures; index += 1) {
          limiter.failed(attempt('alice', `10.0.0.${index % 7}`));
          advance(pause / 40);
        }
        const seconds = wait(attempt('alice'));
        expect(Number.isInteger(seconds)).toBe(true);
        advance(seconds * second);
        expect(wait(attempt('alice'))).toBe(0);
      }),
    );
  });
});

describe('unlocking a user', () => {
  const email = 'alice@example.com';
  const byEmail = { ...attempt(email), account: 'alice' };

  test('unlocking a user resets the failures by username and by e-mail address, but not the failures of other users', () => {
    const { limiter, wait, fail } = lab({ ...limit, perAddress: 100 });
    const all = [attempt('alice'), byEmail, attempt('bob')];
    for (const one of all) fail(one, 5);
    for (const one of all) expect(wait(one)).toBeGreaterThan(0);
    limiter.unlock({ username: 'alice', email });
    expect(all.map((one) => wait(one) > 0)).toEqual([false, false, true]);
  });

  test('unlocking a user without an e-mail address resets the failures by username', () => {
    const { limiter, wait, fail } = lab();
    fail(attempt('alice'), 5);
    limiter.unlock({ username: 'alice', email: undefined });
    expect(wait(attempt('alice'))).toBe(0);
  });

  test('unlocking a user is reported only if there were failures to reset', () => {
    const { limiter, fail } = lab();
    const reported: string[] = [];
    limiter.onChange((what) => reported.push(what));
    limiter.unlock({ username: 'alice', email });
    expect(reported).toEqual([]);
    fail(attempt('alice'));
    limiter.unlock({ username: 'alice', email });
    expect(reported).toEqual(['failures', 'failures']);
  });
});

describe('the failures that a replica publishes', () => {
  test('the failures that a replica publishes do not include expired failures', () => {
    const { limiter, fail, advance } = lab();
    fail(attempt('old'));
    advance(limit.within - 1);
    fail(attempt('new'));
    expect(limiter.shared(10)).toHaveLength(4);
    advance(1);
    const keys = limiter.shared(10).map(({ key }) => key);
    expect(keys).toHaveLength(2);
    expect(keys.join(' ')).not.toContain('old');
  });

  test('the failures that a replica publishes are limited in number, with preference for high counts, then resets, then recent failures', () => {
    const { limiter, fail, advance } = lab();
    const first = (count: number): string[] => limiter.shared(count).map(({ key }) => key);
    fail(attempt('forgiven', '10.0.0.9'), 2);
    limiter.succeeded(attempt('forgiven', '10.0.0.9'));
    for (const name of ['a', 'b', 'c']) {
      advance(1);
      fail(attempt(name));
    }
    fail(attempt('most'), 4);
    expect(first(2).every((key) => key.includes('most'))).toBe(true);
    expect(
      first(4)
        .slice(2)
        .every((key) => key.includes('forgiven')),
    ).toBe(true);
    expect(
      first(6)
        .slice(4)
        .every((key) => key.includes('c')),
    ).toBe(true);
  });

  test('the failures that a replica publishes no longer count on other replicas after the replica is removed', () => {
    const { limiter, wait } = lab();
    limiter.setPeer('peer', [{ key: 'u:alice', count: 10, last: 1_000_000 }]);
    expect(wait(attempt('alice'))).toBeGreaterThan(0);
    limiter.removePeer('peer');
    expect(wait(attempt('alice'))).toBe(0);
  });
});
