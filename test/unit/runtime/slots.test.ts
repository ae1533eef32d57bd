// evidence: fair-share-of-slots
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import * as fc from 'fast-check';
import { Slots, type SlotsOptions } from '../../../src/runtime/slots.ts';
import { settle } from '../../labs/cluster-fakes.ts';

/** Names of the started tasks, in order. */
let started: string[];
/** Functions that complete the tasks, by name. */
let ends: Map<string, () => void>;
beforeEach(() => {
  started = [];
  ends = new Map();
});

const queue = { total: 5, perUser: 4, timeout: 1_000 };
const slotsOf = (options: Partial<SlotsOptions> = {}): Slots =>
  new Slots({ what: 'works', total: 2, queue, ...options });

/** Starts work for the user in the first letter of `name`. Returns `name`, or the code and message of the rejection. */
const come = (slots: Slots, name: string, signal?: AbortSignal): Promise<string> =>
  slots
    .run(
      name.charAt(0),
      () => {
        started.push(name);
        return new Promise<string>((resolve) => {
          ends.set(name, () => resolve(name));
        });
      },
      signal,
    )
    .catch((error: { code?: number; message: string }) => `${error.code}: ${error.message}`);

async function end(name: string): Promise<void> {
  ends.get(name)?.();
  await settle();
}

const tryLater = 'please try again later';

describe('the slots for concurrent work', () => {
  test('work that requires a slot starts when a slot is free, and users take turns', async () => {
    const slots = slotsOf();
    const names = ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'c1'];
    const all = names.map((name) => come(slots, name));
    await settle();
    expect(started).toEqual(['a1', 'a2']);
    for (let i = 0; i < all.length; i += 1) await end(started[i] ?? '');
    expect(started).toEqual(['a1', 'a2', 'a3', 'b1', 'c1', 'a4', 'a5']);
    expect(await Promise.all(all)).toEqual(names);
  });

  test('work of a user with a long name takes turns with the work of other users', async () => {
    const slots = slotsOf({ total: 1 });
    const long = 'x'.repeat(200);
    const order: string[] = [];
    const free = await slots.wait('a');
    const all = [long, long, 'b'].map(async (user) => {
      const leave = await slots.wait(user);
      order.push(user.charAt(0));
      leave();
    });
    free();
    await Promise.all(all);
    expect(order).toEqual(['x', 'b', 'x']);
  });

  test('work of one network waits while two shares are in use, whatever addresses it comes from', async () => {
    const slots = slotsOf({ total: 4, perUser: 1 });
    const holders = ['1', '2', '3'].map((host): [string, string] => [`address ${host}`, 'network']);
    const [one] = [slots.take(holders[0] ?? ''), slots.take(holders[1] ?? '')];
    expect(() => slots.take(holders[2] ?? '')).toThrow('works: your share of 2 is in use; please try again later');
    const third = slots.wait(holders[2] ?? '');
    slots.take('another');
    one?.();
    await third;
  });

  test('work of a user whose share is in use waits even while slots are free, and does not delay other users', async () => {
    const slots = slotsOf({ total: 3, perUser: 2 });
    const all = ['a1', 'a2', 'a3', 'b1', 'b2'].map((name) => come(slots, name));
    await settle();
    expect(started).toEqual(['a1', 'a2', 'b1']);
    await end('b1');
    expect(started).toEqual(['a1', 'a2', 'b1', 'b2']);
    await end('b2');
    expect(started).toEqual(['a1', 'a2', 'b1', 'b2']);
    await end('a1');
    expect(started.at(-1)).toBe('a3');
    for (const name of ['a2', 'a3']) await end(name);
    await Promise.all(all);
  });

  test('the latest work of the user with the longest queue is rejected first when the queue for slots is full', async () => {
    const slots = slotsOf();
    const all = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'b1', 'a7', 'c1'].map((name) => come(slots, name));
    expect(await Promise.all([all[7], all[5]])).toEqual([
      `429: works: your share of 4 waiting requests is in use; ${tryLater}`,
      `429: works: the server's limit of 5 waiting requests is reached; ${tryLater}`,
    ]);
    for (let i = 0; i < 7; i += 1) await end(started[i] ?? '');
    expect(await Promise.all(all)).toMatchObject(['a1', 'a2', 'a3', 'a4', 'a5', {}, 'b1', {}, 'c1']);
  });

  test('work of the network with the longest queue is rejected first when the queue for slots is full', async () => {
    const slots = slotsOf({ total: 1 });
    const free = await slots.wait('a');
    const all = ['1', '2', '3'].map((host) => slots.wait([`address ${host}`, 'network 1']));
    all.push(slots.wait(['address 4', 'network 2']), slots.wait('b'), slots.wait('b'), slots.wait('c'));
    const settled = Promise.allSettled(all.map(async (slot) => (await slot)()));
    await settle();
    free();
    expect((await settled).map(({ status }) => status === 'fulfilled')).toEqual([
      true,
      true,
      false,
      true,
      true,
      false,
      true,
    ]);
  });

  test('work that fails releases its slot', async () => {
    const slots = slotsOf();
    for (let i = 0; i < 10; i += 1)
      await expect(slots.run('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    const last = come(slots, 'b1');
    await settle();
    await end('b1');
    expect(await last).toBe('b1');
  });

  test('work that waits for a slot leaves the queue when its signal is aborted', async () => {
    const slots = slotsOf();
    const gone = new AbortController();
    const all = [come(slots, 'a1'), come(slots, 'a2'), come(slots, 'a3', gone.signal), come(slots, 'a4')];
    gone.abort(new Error('gone'));
    expect(await all[2]).toBe('undefined: gone');
    expect(await come(slots, 'a5', gone.signal)).toBe('undefined: gone');
    for (const name of ['a1', 'a2', 'a4']) await end(name);
    expect(started).toEqual(['a1', 'a2', 'a4']);
  });

  test('concurrent work never exceeds the total of slots or the share of a user, and all work is completed', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 0, max: 3 })), { maxLength: 40 }),
        async (total, perUser, works) => {
          const slots = new Slots({
            what: 'works',
            total,
            perUser,
            queue: { total: 40, perUser: 40, timeout: 60_000 },
          });
          const running: string[] = [];
          let done = 0;
          await Promise.all(
            works.map(([user, turns]) =>
              slots.run(user, async () => {
                running.push(user);
                expect(running.length).toBeLessThanOrEqual(total);
                expect(running.filter((one) => one === user).length).toBeLessThanOrEqual(perUser);
                for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
                running.splice(running.indexOf(user), 1);
                done += 1;
              }),
            ),
          );
          expect(done).toBe(works.length);
        },
      ),
    );
  });
});

const refusalOf = (take: () => unknown): unknown => {
  try {
    take();
    return undefined;
  } catch (error) {
    const { code: status, message, headers } = error as { code: number; message: string; headers: object };
    return { status, message, headers };
  }
};

const refusal = (reason: string): object => ({
  status: 429,
  message: `watches: ${reason}; ${tryLater}`,
  headers: { 'Retry-After': '1' },
});

describe('requests for slots without a queue', () => {
  test('requests for slots without a queue are rejected beyond the share of a user and beyond the total', () => {
    const slots = new Slots({ what: 'watches', total: 3, perUser: 2 });
    const free = [slots.take('a'), slots.take('a')];
    expect(refusalOf(() => slots.take('a'))).toEqual(refusal('your share of 2 is in use'));
    free.push(slots.take('b'));
    expect(refusalOf(() => slots.take('b'))).toEqual(refusal("the server's total of 3 is in use"));
    for (let twice = 0; twice < 2; twice += 1) free[0]?.();
    slots.take('b');
    expect(refusalOf(() => slots.take('c'))).toEqual(refusal("the server's total of 3 is in use"));
  });

  test('a request for 50 slots takes 50 slots from the share of its user and from the total', () => {
    const slots = new Slots({ what: 'watches', total: 100, perUser: 60 });
    const free = slots.take('a', 50);
    expect(refusalOf(() => slots.take('a', 11))).toEqual(refusal('your share of 60 is in use'));
    expect(refusalOf(() => slots.take('b', 51))).toEqual(refusal("the server's total of 100 is in use"));
    free();
    slots.take('a', 60);
  });
});

describe('work that waits too long', () => {
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test('work that waits too long for a slot is rejected with 429 and leaves the queue', async () => {
    const slots = slotsOf();
    const [one, two, late, later] = ['a1', 'a2', 'b1', 'b2'].map((name) => come(slots, name));
    await jest.advanceTimersByTimeAsync(999);
    const inTime = come(slots, 'c1');
    await jest.advanceTimersByTimeAsync(1);
    const refused = `429: works: the server's total of 2 is in use; ${tryLater}`;
    expect(await Promise.all([late, later])).toEqual([refused, refused]);
    for (const name of ['a1', 'a2', 'c1']) await end(name);
    expect(await Promise.all([one, two, inTime])).toEqual(['a1', 'a2', 'c1']);
    const again = come(slots, 'd1');
    await settle();
    await end('d1');
    expect(await again).toBe('d1');
  });
});
