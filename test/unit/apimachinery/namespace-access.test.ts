import { beforeEach, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { NamespaceAccessCache } from '../../../src/apimachinery/namespace-access-cache.ts';
import type { NamespaceAccess } from '../../../src/apimachinery/namespace-access.ts';
import type { ResourceAttributes } from '../../../src/auth/authorizers/authorizer.ts';
import type { Bindings, Granted } from '../../../src/cluster/catalogue/granted-namespaces.ts';
import { serviceUnavailable } from '../../../src/runtime/errors.ts';
import { FakeClock, settle } from '../../labs/cluster-fakes.ts';

const listPods = { verb: 'list', group: '', resource: 'pods', namespace: '', name: '' };
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Namespaces in which kube-apiserver allows the list now. */
let allowed: Set<string>;
let reviewed: string[];
/** Reviews in progress. */
const open = { now: 0, max: 0 };
let failing: boolean;
let clock: FakeClock;
let cache: NamespaceAccessCache;
let user: { username: string; groups: string[]; via: 'token'; extra?: Record<string, string[]> };
beforeEach(() => {
  allowed = new Set();
  reviewed = [];
  Object.assign(open, { now: 0, max: 0 });
  failing = false;
  clock = new FakeClock();
  user = { username: 'anna', groups: [], via: 'token' };
  cache = new NamespaceAccessCache(
    {
      authorize: async () => ({ allowed: false, reason: '' }),
      async review(_, { namespace = '' }) {
        reviewed.push(namespace);
        const at = clock.monotonic();
        open.max = Math.max(open.max, (open.now += 1));
        await turn();
        open.now -= 1;
        if (failing) throw serviceUnavailable('no decision', 1);
        return { decision: { allowed: allowed.has(namespace), reason: '' }, at };
      },
    },
    clock,
  );
});

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `n${index}`);
/** Returns the state of a role binding that changed long ago. */
const old = (lastChange = 1): Bindings => ({ count: 1, lastChange, changedAt: -Infinity });
const bound = (some: Iterable<string>): Granted => new Map([...some].map((name) => [name, old()]));
/** Returns the state of a role binding that changes now. */
const changed = (lastChange: number): Bindings => ({ count: 1, lastChange, changedAt: clock.monotonic() });

const of = (candidates: Granted, resource = 'pods'): Promise<NamespaceAccess> => {
  const attributes = { ...listPods, resource };
  return cache.of({ user, attributes, within: (): ResourceAttributes => attributes }, candidates);
};

/** Advances the time, and waits for all reviews in each second. */
async function pass(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    while (open.now > 0) await turn();
    await clock.advance(1_000);
  }
  while (open.now > 0) await turn();
}

/** Sends a request every second. */
async function poll(seconds: number, request: () => Promise<unknown>): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    await request();
    await pass(1);
  }
}

/** Returns the namespaces that were reviewed since the last call. */
const taken = (): string[] => reviewed.splice(0).toSorted();

test('each namespace is reviewed once, with bounded concurrency, and not again for the next request', async () => {
  const candidates = bound(names(200));
  allowed = new Set(['n7', 'n77']);
  const both = await Promise.all([of(candidates), of(candidates)]);
  expect(both.map(({ visible }) => [...visible])).toEqual([
    ['n7', 'n77'],
    ['n7', 'n77'],
  ]);
  expect(taken()).toEqual(names(200).toSorted());
  expect(open.max).toBe(16);
  const { visible } = await of(candidates);
  expect(visible).toBe(both[0].visible);
  expect(await both[0].confirm(visible)).toBe(true);
  expect(taken()).toEqual([]);
});

test('a request reviews only the namespaces whose role bindings have changed', async () => {
  allowed = new Set(names(200));
  await of(bound(names(200)));
  taken();
  const candidates = new Map([...bound(names(201)), ['n3', changed(2)]]);
  candidates.delete('n5');
  allowed.add('n200').delete('n3');
  const { visible } = await of(candidates);
  expect(taken()).toEqual(['n200', 'n3']);
  expect(visible).toEqual(new Set(names(201).filter((name) => name !== 'n3' && name !== 'n5')));
});

test('a request does not wait for role bindings that change after its start', async () => {
  allowed = new Set(['n0']);
  const done: number[] = [];
  const request = async (change: number): Promise<void> => {
    await of(new Map([['n0', changed(change)]]));
    done.push(change);
  };
  const all = [request(1)];
  for (let change = 2; change < 50; change += 1) {
    all.push(request(change), clock.advance(1));
    await turn();
  }
  expect(done).toContain(1);
  await Promise.all(all);
});

test('a review that started before a role binding changed does not decide about the changed role binding', async () => {
  const first = of(bound(['n0', 'n1']));
  const second = of(new Map([...bound(['n0']), ['n1', changed(2)]]));
  allowed = new Set(['n0', 'n1']);
  await Promise.all([first, second]);
  expect(taken()).toEqual(['n0', 'n1', 'n1']);
});

test('decisions about up to 166 namespaces are never older than 10 s', async () => {
  const candidates = bound(names(166));
  allowed = new Set(names(166));
  await of(candidates);
  allowed.delete('n1');
  taken();
  await clock.advance(10_000);
  expect((await of(candidates)).visible.has('n1')).toBe(false);
  expect(reviewed).toHaveLength(166);
});

describe('many namespaces', () => {
  const candidates = bound(names(1_000));
  /** Maximum age of the decisions in milliseconds. */
  const maxAge = 60_000;
  let access: NamespaceAccess;
  beforeEach(async () => {
    allowed = new Set(names(1_000));
    access = await of(candidates);
    taken();
  });

  test('a caller who polls for 11 minutes never waits for more reviews than one batch of the refresh', async () => {
    const waits: number[] = [];
    await poll(11 * 60, async () => {
      const before = reviewed.length;
      await of(candidates);
      waits.push(reviewed.length - before);
    });
    expect(Math.max(...waits)).toBeLessThanOrEqual(64);
    expect(reviewed.length / waits.length).toBeLessThan(34);
  });

  test('a namespace is reviewed twice after a change of its role bindings, because kube-apiserver may notice the change late', async () => {
    const more = new Map([...candidates, ['n1000', changed(2)]]);
    await of(more);
    allowed.add('n1000');
    await clock.advance(9_999);
    await of(more);
    expect(taken()).toEqual(['n1000']);
    await clock.advance(1);
    await poll(1, () => of(more));
    expect(taken()).toEqual(['n1000']);
    expect(access.visible.has('n1000')).toBe(true);
  });

  test('a namespace is reviewed twice after one of its role bindings is deleted', async () => {
    const before = new Map([...candidates, ['n0', { count: 2, lastChange: 1, changedAt: -Infinity }]]);
    await of(before);
    expect(taken()).toEqual(['n0']);
    await clock.advance(10_000);
    await poll(1, () => of(before));
    expect(taken()).toEqual(['n0']);
    await of(candidates);
    expect(taken()).toEqual(['n0']);
    allowed.delete('n0');
    await clock.advance(10_000);
    await poll(1, () => of(candidates));
    expect(taken()).toEqual(['n0']);
    expect(access.visible.has('n0')).toBe(false);
  });

  test('a namespace is reviewed twice after a change of its role bindings, even while all others are refreshed', async () => {
    await clock.advance(maxAge / 2);
    const more = new Map([...candidates, ['n1000', changed(2)]]);
    await of(more);
    allowed.add('n1000');
    await poll(12, () => of(more));
    expect(access.visible.has('n1000')).toBe(true);
  });

  test('a shown namespace is reviewed again after 10 s, and the others are not', async () => {
    await clock.advance(10_000);
    await of(candidates);
    expect(await access.confirm(new Set(['n1', 'n2']))).toBe(true);
    expect(taken()).toEqual(['n1', 'n2']);
  });

  test('concurrent responses that show the same namespaces in different orders share the reviews', async () => {
    await clock.advance(10_000);
    const shown = (start: number): Set<string> => new Set([...names(1_000).slice(start), ...names(start)]);
    await Promise.all(Array.from({ length: 30 }, (_, index) => access.confirm(shown(index * 33))));
    expect(taken()).toEqual(names(1_000).toSorted());
  });

  test('after a role is changed and one shown namespace is lost, two others are reviewed while the request waits, and the rest in the background', async () => {
    await clock.advance(10_000);
    allowed.delete('n1');
    await of(candidates);
    expect(await access.confirm(new Set(['n1', 'n2']))).toBe(false);
    expect(taken()).toHaveLength(4);
    await poll(16, () => of(candidates));
    expect(new Set(taken()).size).toBe(996);
  });

  test('after a role is changed and all namespaces but one are lost, the request waits for reviews of all', async () => {
    await clock.advance(10_000);
    allowed = new Set(['n500']);
    expect(await access.confirm(new Set(['n1', 'n2']))).toBe(false);
    expect(access.visible).toEqual(new Set(['n500']));
    expect(taken()).toHaveLength(1_000);
    expect(await access.confirm(new Set(['n500']))).toBe(true);
    expect(taken()).toEqual([]);
  });

  // In the first case, kube-apiserver may have noticed the role binding late. In the second case, only a role explains it.
  test.each([
    [13, 5],
    [30, 15],
  ])(
    'another tenant who restores a role and its role binding every %d s and changes the role after %d s makes no request wait for many reviews',
    async (period, delay) => {
      let state = changed(2);
      let second = 0;
      const waits: number[] = [];
      const mine = bound(names(1_000).slice(1));
      await poll(120, async () => {
        if (second % period === 0) {
          allowed.add('n0');
          state = changed(2 + second);
        }
        if (second % period === delay) allowed.delete('n0');
        second += 1;
        const before = reviewed.length;
        const { visible } = await of(new Map([...mine, ['n0', state]]));
        const shown = ['n0', 'n1', 'n2', 'n3'].filter((name) => visible.has(name));
        await access.confirm(new Set(shown));
        waits.push(reviewed.length - before);
      });
      expect(Math.max(...waits)).toBeLessThanOrEqual(64);
      expect(reviewed.length).toBeLessThan(120 * 67);
    },
  );

  test('due decisions are refreshed without a waiting request, at most 64 per second', async () => {
    await clock.advance(maxAge / 2);
    let total = 0;
    for (let second = 0; total < 1_000 && second < 60; second += 1) {
      await poll(1, () => of(candidates));
      const { length } = taken();
      // The first second contains the first two batches.
      expect(length).toBeLessThanOrEqual(second === 0 ? 2 * 64 : 64);
      total += length;
    }
    expect(total).toBe(1_000);
  });

  test('the refresh stops 10 s after the last request', async () => {
    await clock.advance(maxAge / 2);
    await of(candidates);
    await pass(15);
    expect(taken()).toHaveLength(10 * 64);
    expect(clock.pending()).toEqual([]);
  });

  test('a right that a role adds or removes is noticed by the refresh, and is visible before the refresh ends', async () => {
    allowed = new Set(['n0', 'n999']);
    await clock.advance(maxAge / 2);
    await poll(2, () => of(candidates));
    expect(access.visible.size).toBe(1_000 - 3 * 64 + 1);
    await poll(20, () => of(candidates));
    expect(access.visible).toEqual(new Set(['n0', 'n999']));
    expect(taken()).toHaveLength(1_000);
  });

  test('after a failed refresh, the pause doubles up to 8 s, and decisions are used until their maximum age', async () => {
    failing = true;
    await clock.advance(maxAge / 2);
    const before = reviewed.length;
    await poll(29, () => of(candidates));
    // At 0, 2, 6, 14 and 22 seconds, four concurrent reviews fail.
    expect(reviewed.length - before).toBe(5 * 4);
    expect((await of(candidates)).visible.size).toBe(1_000);
    await clock.advance(1_000);
    await expect(of(candidates)).rejects.toMatchObject({ code: 503 });
    failing = false;
    expect((await of(candidates)).visible.size).toBe(1_000);
  });

  test('a response cannot contain objects of more than a thousand namespaces', async () => {
    expect(await access.confirm(new Set(names(1_000)))).toBe(true);
    await expect(access.confirm(new Set(names(1_001)))).rejects.toMatchObject({
      code: 403,
      message: expect.stringContaining('more than 1000 namespaces (1001): request smaller pages') as unknown,
      details: { kind: 'pods' },
    });
  });
});

const refused = {
  code: 403,
  message: 'pods is forbidden: User "anna" cannot list resource "pods" in API group "" at the cluster scope',
};

test('a caller without any visible namespace gets the 403 of the cluster-wide request', async () => {
  await expect(of(bound(names(3)))).rejects.toMatchObject(refused);
  await expect(of(new Map())).rejects.toMatchObject(refused);
});

test('before 403, 16 namespaces are reviewed again every 10 s, and all of them if a role now grants the right', async () => {
  const candidates = bound(names(1_000));
  await expect(of(candidates)).rejects.toMatchObject(refused);
  taken();
  await clock.advance(10_000);
  await expect(of(candidates)).rejects.toMatchObject(refused);
  await expect(of(candidates)).rejects.toMatchObject(refused);
  expect(taken()).toHaveLength(16);
  allowed = new Set(names(1_000));
  await clock.advance(10_000);
  expect((await of(candidates)).visible.size).toBe(1_000);
  expect(taken()).toHaveLength(1_000);
});

test('callers with other groups do not share decisions', async () => {
  allowed = new Set(['n0']);
  await of(bound(['n0']));
  user = { ...user, groups: ['other'] };
  await of(bound(['n0']));
  expect(reviewed).toEqual(['n0', 'n0']);
});

test('a caller who lists many resources, or has many tokens, evicts only the own decisions', async () => {
  const few = bound(names(100));
  const many = bound(names(10_000));
  allowed = new Set(names(10_000));
  await of(few);
  user = { ...user, username: 'ben' };
  for (let index = 0; index < 34; index += 1) {
    user = { ...user, extra: { 'authentication.kubernetes.io/credential-id': [`JTI=${index % 10}`] } };
    await of(many, `resource-${index}`);
  }
  taken();
  await of(many, 'resource-33');
  user = { username: 'anna', groups: [], via: 'token' };
  await of(few);
  expect(taken()).toEqual([]);
});

/** A change, or a list with the first namespaces on its page. */
const step = fc.oneof(
  fc.record({ bind: fc.nat(9), isDeleted: fc.boolean() }),
  fc.record({ flip: fc.nat(9) }),
  fc.record({ pass: fc.integer({ min: 1, max: 12_000 }) }),
  fc.record({ show: fc.nat(4) }),
);

test('concurrent lists show only allowed namespaces, and agree with kube-apiserver after the maximum age', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      user = { ...user, username: `${user.username}x` };
      allowed = new Set(names(400));
      let candidates = bound(names(400));
      /** Times at which a namespace, or its last role binding, was lost. */
      const lost = new Map<string, number>();
      const wrong: string[] = [];
      const lists: Promise<void>[] = [];
      const list = async (size: number): Promise<void> => {
        const started = clock.monotonic();
        const found = await of(candidates).catch(() => undefined);
        const shown = new Set(found?.visible.keys().take(size));
        if ((await found?.confirm(shown).catch(() => false)) !== true) return;
        for (const name of shown) if (started - (lost.get(name) ?? Infinity) >= 10_000) wrong.push(name);
      };
      let version = 1;
      for (const one of steps) {
        if ('bind' in one) {
          const next = new Map(candidates).set(`n${one.bind}`, changed((version += 1)));
          if (one.isDeleted) next.delete(`n${one.bind}`);
          candidates = next;
        } else if ('flip' in one) {
          const name = `n${one.flip}`;
          if (!allowed.delete(name)) allowed.add(name);
        } else if ('pass' in one) await clock.advance(one.pass);
        else lists.push(list(one.show));
        for (const name of names(10)) {
          if (allowed.has(name) && candidates.has(name)) lost.delete(name);
          else if (!lost.has(name)) lost.set(name, clock.monotonic());
        }
      }
      await Promise.all(lists);
      expect(wrong).toEqual([]);
      await poll(25, () => of(candidates).catch(() => undefined));
      const { visible } = await of(candidates);
      expect(visible).toEqual(new Set([...allowed].filter((name) => candidates.has(name))));
      await settle();
    }),
    { numRuns: 60 },
  );
});
