import { beforeEach, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  NamespaceReviews,
  sameNamespaces,
  type ReviewedNamespaces,
} from '../../../src/apimachinery/namespace-reviews.ts';
import type { ResourceAttributes } from '../../../src/auth/authorizers/authorizer.ts';
import type { Granted } from '../../../src/cluster/catalogue/granted-namespaces.ts';
import { serviceUnavailable } from '../../../src/runtime/errors.ts';
import { FakeClock } from '../../labs/cluster-fakes.ts';

const listPods = { verb: 'list', group: '', resource: 'pods', namespace: '', name: '' };
const within = (): ResourceAttributes => listPods;

/** Namespaces in which kube-apiserver allows the list now. */
let allowed: Set<string>;
let reviewed: string[];
/** Reviews in progress. */
const open = { now: 0, max: 0 };
let failing: boolean;
let clock: FakeClock;
let reviews: NamespaceReviews;
let user: { username: string; groups: string[]; via: 'token' };
beforeEach(() => {
  allowed = new Set();
  reviewed = [];
  Object.assign(open, { now: 0, max: 0 });
  failing = false;
  clock = new FakeClock();
  user = { username: 'anna', groups: [], via: 'token' };
  reviews = new NamespaceReviews(
    {
      authorize: async () => ({ allowed: false, reason: '' }),
      async review(_, { namespace = '' }) {
        reviewed.push(namespace);
        const at = clock.monotonic();
        open.max = Math.max(open.max, (open.now += 1));
        await new Promise((resolve) => setImmediate(resolve));
        open.now -= 1;
        if (failing) throw serviceUnavailable('no decision', 1);
        return { decision: { allowed: allowed.has(namespace), reason: '' }, at };
      },
    },
    clock,
  );
});

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `n${index}`);
const bound = (some: Iterable<string>): Granted => new Map([...some].map((name) => [name, { count: 1, lastChange: 1 }]));
const of = (candidates: Granted): Promise<ReviewedNamespaces> =>
  reviews.of({ user, attributes: listPods, within }, candidates);

/** Waits until a refresh that a request has started ends. */
async function refreshed(candidates: Granted): Promise<void> {
  await of(candidates);
  do {
    await clock.advance(1_000);
    do await new Promise((resolve) => setImmediate(resolve));
    while (open.now > 0);
  } while (clock.pending().length > 0);
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
  const changed = new Map([...bound(names(201)), ['n3', { count: 1, lastChange: 2 }]]);
  changed.delete('n5');
  allowed.add('n200').delete('n3');
  const { visible } = await of(changed);
  expect(taken()).toEqual(['n200', 'n3']);
  expect(visible).toEqual(new Set(names(201).filter((name) => name !== 'n3' && name !== 'n5')));
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
  let namespaces: ReviewedNamespaces;
  beforeEach(async () => {
    allowed = new Set(names(1_000));
    namespaces = await of(candidates);
    await clock.advance(10_000);
    await refreshed(candidates);
    taken();
  });

  test('a namespace is reviewed twice after a change of its role bindings, because kube-apiserver may notice the change late', async () => {
    const more = bound(names(1_001));
    await of(more);
    allowed.add('n1000');
    await clock.advance(9_999);
    await of(more);
    expect(taken()).toEqual(['n1000']);
    await clock.advance(1);
    await refreshed(more);
    expect(taken()).toEqual(['n1000']);
    expect(namespaces.visible.has('n1000')).toBe(true);
  });

  test('a shown namespace is reviewed again after 10 s, and the others are not', async () => {
    await clock.advance(10_000);
    await of(candidates);
    expect(await namespaces.confirm(new Set(['n1', 'n2']))).toBe(true);
    expect(taken()).toEqual(['n1', 'n2']);
  });

  test('after a shown namespace is lost without a change of its role bindings, all namespaces are reviewed', async () => {
    await clock.advance(10_000);
    allowed = new Set(['n500']);
    expect(await namespaces.confirm(new Set(['n1', 'n2']))).toBe(false);
    expect(namespaces.visible).toEqual(new Set(['n500']));
    expect(taken()).toHaveLength(1_000);
    expect(await namespaces.confirm(new Set(['n500']))).toBe(true);
    expect(taken()).toEqual([]);
  });

  test('old decisions are refreshed without a waiting request, at most 64 per second', async () => {
    await clock.advance(30_001);
    await of(candidates);
    let total = 0;
    for (let second = 0; total < 1_000 && second < 60; second += 1) {
      await clock.advance(1_000);
      const { length } = taken();
      expect(length).toBeLessThanOrEqual(64);
      total += length;
    }
    expect(total).toBe(1_000);
  });

  test('a right that a role adds or removes is noticed by the refresh', async () => {
    await clock.advance(30_001);
    allowed = new Set(['n999']);
    await of(candidates);
    while (namespaces.visible.size > 1) await clock.advance(1_000);
    expect(namespaces.visible).toEqual(new Set(['n999']));
  });

  test('after a failed refresh, decisions are used until their maximum age, and then the request fails', async () => {
    failing = true;
    await clock.advance(40_000);
    expect((await of(candidates)).visible.size).toBe(1_000);
    await clock.advance(20_000);
    await expect(of(candidates)).rejects.toMatchObject({ code: 503 });
    failing = false;
    expect((await of(candidates)).visible.size).toBe(1_000);
  });

  test('a response cannot contain objects of more than a thousand namespaces', async () => {
    expect(await namespaces.confirm(new Set(names(1_000)))).toBe(true);
    await expect(namespaces.confirm(new Set(names(1_001)))).rejects.toMatchObject({
      code: 403,
      message: expect.stringContaining('more than 1000 namespaces (1001): request smaller pages') as unknown,
      details: { kind: 'pods' },
    });
  });
});

test('a caller without any visible namespace gets the 403 of the cluster-wide request', async () => {
  const refused = {
    code: 403,
    message: 'pods is forbidden: User "anna" cannot list resource "pods" in API group "" at the cluster scope',
  };
  await expect(of(bound(names(3)))).rejects.toMatchObject(refused);
  await expect(of(new Map())).rejects.toMatchObject(refused);
});

test('callers with other groups do not share decisions', async () => {
  allowed = new Set(['n0']);
  await of(bound(['n0']));
  user = { ...user, groups: ['other'] };
  await of(bound(['n0']));
  expect(reviewed).toEqual(['n0', 'n0']);
});

/** Returns the namespaces on a page that the server would send. */
async function shownOf(candidates: Granted, size: number): Promise<ReadonlySet<string>> {
  const none = new Set<string>();
  const namespaces = await of(candidates).catch(() => undefined);
  const shown = new Set([...(namespaces?.visible ?? none)].slice(0, size));
  const isConfirmed = await namespaces?.confirm(shown).catch(() => false);
  return isConfirmed === true ? shown : none;
}

/** A change, or a list with the first namespaces on its page. */
const step = fc.oneof(
  fc.record({ bind: fc.nat(9), version: fc.integer({ min: 0, max: 3 }) }),
  fc.record({ flip: fc.nat(9) }),
  fc.record({ pass: fc.integer({ min: 1, max: 12_000 }) }),
  fc.record({ show: fc.nat(4) }),
);

test('a shown namespace was allowed in the last 10 s, and has a role binding', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      user = { ...user, username: `${user.username}x` };
      allowed = new Set(names(400));
      let candidates = bound(names(400));
      /** Last time at which each namespace was allowed. */
      const last = new Map<string, number>();
      const wrong: string[] = [];
      for (const one of steps) {
        if ('bind' in one) {
          const next = new Map(candidates).set(`n${one.bind}`, { count: 1, lastChange: one.version });
          if (one.version === 0) next.delete(`n${one.bind}`);
          candidates = next;
        } else if ('flip' in one) {
          const name = `n${one.flip}`;
          if (!allowed.delete(name)) allowed.add(name);
        } else if ('pass' in one) await clock.advance(one.pass);
        else {
          for (const name of allowed) last.set(name, clock.monotonic());
          for (const name of await shownOf(candidates, one.show))
            if (!candidates.has(name) || clock.monotonic() - (last.get(name) ?? -Infinity) >= 10_000) wrong.push(name);
        }
        for (const name of allowed) last.set(name, clock.monotonic());
      }
      expect(wrong).toEqual([]);
    }),
    { numRuns: 60 },
  );
});

const set = (...members: string[]): Set<string> => new Set(members);

test('sets of visible namespaces are equal when they have the same members', () => {
  expect(sameNamespaces(undefined, undefined)).toBe(true);
  expect(sameNamespaces(undefined, set())).toBe(false);
  expect(sameNamespaces(set('a'), undefined)).toBe(false);
  expect(sameNamespaces(set('a', 'b'), set('b', 'a'))).toBe(true);
  expect(sameNamespaces(set('a', 'b'), set('a', 'c'))).toBe(false);
  expect(sameNamespaces(set('a'), set('a', 'b'))).toBe(false);
});
