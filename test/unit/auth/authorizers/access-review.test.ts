import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import * as fc from 'fast-check';
import { LRUCache } from 'lru-cache';
import { accessReview } from '../../../../src/auth/authorizers/access-review.ts';
import {
  assertAllowed,
  rechecking,
  type AccessReviews,
  type Attributes,
} from '../../../../src/auth/authorizers/authorizer.ts';
import type { UserInfo } from '../../../../src/auth/user.ts';
import { KubeError, unreachable } from '../../../../src/cluster/client/kube-error.ts';
import { registry } from '../../../../src/runtime/metrics/registry.ts';
import { MemoryCluster, type MemoryClient } from '../../../fakes/cluster.ts';

const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
const alice: UserInfo = { username: 'alice', uid: '42', groups: ['a', 'b'], via: 'token' };
const listNodes = { verb: 'list', group: '', resource: 'nodes' };

interface Spec {
  readonly user: string;
  readonly resourceAttributes?: Readonly<Record<string, string>>;
}

interface Lab {
  /** Returns the last SubjectAccessReview. */
  readonly reviewed: () => { spec: object };
  readonly authorizer: AccessReviews;
  readonly client: MemoryClient;
  readonly reviews: () => number;
}

function lab(decide: (spec: Spec) => unknown = () => ({ allowed: true })): Lab {
  const cluster = new MemoryCluster();
  cluster.respond(path, ({ spec }) => ({ status: decide(spec as Spec) }));
  const client = cluster.client();
  return {
    authorizer: accessReview(client, () => Date.now()),
    client,
    reviews: () => client.requestsTo('POST', path).length,
    reviewed: () => client.requestsTo('POST', path).at(-1)?.body as { spec: object },
  };
}

test('an authorization decision is reused for 10 s, as measured by the monotonic clock', async () => {
  const clock = jest.spyOn(performance, 'now').mockReturnValue(1_000);
  try {
    const { client, reviews } = lab();
    const authorizer = accessReview(client);
    for (const [now, expected] of [
      [1_000, 1],
      [10_999, 1],
      [11_001, 2],
    ] as const) {
      clock.mockReturnValue(now);
      await authorizer.authorize(alice, listNodes);
      expect(reviews()).toBe(expected);
    }
  } finally {
    clock.mockRestore();
  }
});

test('a cached decision allows a request without a promise until the decision is 10 s old', async () => {
  jest.useFakeTimers({ now: 0 });
  try {
    const { authorizer, reviews } = lab();
    expect(authorizer.allowsFromCache?.(alice, listNodes)).toBe(false);
    await authorizer.authorize(alice, listNodes);
    expect(authorizer.allowsFromCache?.({ ...alice }, { ...listNodes })).toBe(true);
    jest.setSystemTime(9_999);
    expect(authorizer.allowsFromCache?.(alice, listNodes)).toBe(true);
    jest.setSystemTime(10_000);
    expect(authorizer.allowsFromCache?.(alice, listNodes)).toBe(false);
    expect(reviews()).toBe(1);
  } finally {
    jest.useRealTimers();
  }
});

/** Returns the number of decisions that were taken from the cache. */
const hits = async (): Promise<number> =>
  Number(
    /hits_total (\d+)/.exec(
      await registry.getSingleMetricAsString('platform_apiserver_access_review_cache_hits_total'),
    )?.[1],
  );

test.each([true, false])(
  'a decision that is taken from the cache is counted once, with allowed=%j',
  async (allowed) => {
    const { authorizer } = lab(() => ({ allowed }));
    const attempt = async (): Promise<void> => {
      await Promise.resolve(assertAllowed(authorizer, alice, listNodes)).catch(() => undefined);
    };
    await attempt();
    const before = await hits();
    await attempt();
    expect(await hits()).toBe(before + 1);
  },
);

describe('the user in a SubjectAccessReview', () => {
  test.each<[string, UserInfo, object]>([
    ['a user', alice, { user: 'alice', uid: '42', groups: ['a', 'b'] }],
    ['a user without uid and groups', { ...alice, uid: undefined as never, groups: [] }, { user: 'alice', groups: [] }],
    [
      'a user with extra values',
      { ...alice, extra: { scopes: ['x', 'y'] } },
      { user: 'alice', uid: '42', groups: ['a', 'b'], extra: { scopes: ['x', 'y'] } },
    ],
  ])('a SubjectAccessReview contains the fields of %s', async (_, user, expected) => {
    const { authorizer, reviewed } = lab();
    await authorizer.authorize(user, listNodes);
    const { spec, ...rest } = reviewed();
    expect(rest).toEqual({ apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview' });
    expect(spec).toEqual({ ...expected, resourceAttributes: { ...listNodes, version: '*' } });
  });
});

describe('the request in a SubjectAccessReview', () => {
  test.each<[Attributes, object]>([
    [
      { verb: 'watch', group: 'apps', resource: 'deployments' },
      { group: 'apps', resource: 'deployments' },
    ],
    [
      { verb: 'get', group: '', resource: 'pods', subresource: 'log', namespace: 'ns', name: 'p' },
      { subresource: 'log', namespace: 'ns', name: 'p' },
    ],
  ])('a SubjectAccessReview contains the request attributes %j', async (attributes, expected) => {
    const { authorizer, reviewed } = lab();
    await authorizer.authorize(alice, attributes);
    expect(reviewed()).toMatchObject({
      spec: { resourceAttributes: { ...expected, verb: attributes.verb, version: '*' } },
    });
  });

  test('a SubjectAccessReview contains the path of a non-resource request', async () => {
    const { authorizer, reviewed } = lab();
    await authorizer.authorize(alice, { verb: 'get', path: '/metrics' });
    const { spec } = reviewed();
    expect(spec).toMatchObject({ nonResourceAttributes: { verb: 'get', path: '/metrics' } });
    expect(spec).not.toHaveProperty('resourceAttributes');
  });
});

test.each([
  ['that allows the request', { allowed: true, reason: 'a role' }, { allowed: true, reason: 'a role' }],
  ['that does not allow the request', { allowed: false, reason: '' }, { allowed: false }],
  [
    'that both allows and denies the request',
    { allowed: false, reason: 'no' },
    { allowed: true, denied: true, reason: 'no' },
  ],
  ['that cannot be evaluated', { allowed: false, reason: '' }, { allowed: false, evaluationError: 'oops' }],
  ['whose `allowed` is not a boolean', { allowed: false, reason: '' }, { allowed: 'true' }],
  ['that has no status', { allowed: false, reason: '' }, undefined],
])('an access review %s results in the decision %j', async (_, decision, status) => {
  const { authorizer } = lab(() => status);
  expect(await authorizer.authorize(alice, listNodes)).toEqual(decision);
});

test.each([
  ['cannot be reached', unreachable(new Error('reset'))],
  ...[400, 401, 403, 404, 409, 422, 429, 500, 503].map((code): [string, KubeError] => [
    `responds ${code}`,
    new KubeError(code, { message: 'no' }),
  ]),
])('a request fails without a decision when kube-apiserver %s, and nothing is cached', async (_, failure) => {
  const { authorizer, client } = lab();
  client.before = () => {
    throw failure;
  };
  await expect(authorizer.authorize(alice, listNodes)).rejects.toMatchObject({ code: 503, cause: failure });
  client.before = () => undefined;
  await expect(authorizer.authorize(alice, listNodes)).resolves.toMatchObject({ allowed: true });
});

test('the group system:masters is allowed everything without an access review', async () => {
  const { authorizer, reviews } = lab(() => ({ allowed: false }));
  const root = { ...alice, groups: ['system:masters'] };
  expect(await authorizer.authorize(root, listNodes)).toMatchObject({ allowed: true });
  expect(reviews()).toBe(0);
});

describe('an authorization decision', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test.each([[true], [false]])(
    'an authorization decision is cached for ten seconds, with allowed=%j',
    async (allowed) => {
      const { authorizer, reviews } = lab(() => ({ allowed }));
      await authorizer.authorize(alice, listNodes);
      jest.advanceTimersByTime(9_900);
      // A user object with equal fields has the same cache key.
      expect(await authorizer.authorize({ ...alice }, { ...listNodes })).toMatchObject({ allowed });
      expect(reviews()).toBe(1);
      jest.advanceTimersByTime(200);
      await authorizer.authorize(alice, listNodes);
      expect(reviews()).toBe(2);
    },
  );

  test('an authorization decision for a recheck is at most a second old, and is also cached for requests', async () => {
    const { authorizer, reviews } = lab();
    const recheck = rechecking(authorizer);
    await authorizer.authorize(alice, listNodes);
    jest.advanceTimersByTime(900);
    await assertAllowed(recheck, alice, listNodes);
    expect(reviews()).toBe(1);
    jest.advanceTimersByTime(200);
    await assertAllowed(recheck, alice, listNodes);
    expect(reviews()).toBe(2);
    await Promise.all(Array.from({ length: 30 }, () => recheck.authorize({ ...alice }, listNodes)));
    expect(reviews()).toBe(2);
    jest.advanceTimersByTime(9_800);
    await authorizer.authorize(alice, listNodes);
    expect(reviews()).toBe(2);
  });

  test('an authorization decision that has reached the maximum age for a recheck is reviewed again', async () => {
    const { authorizer, reviews } = lab();
    await authorizer.authorize(alice, listNodes);
    jest.advanceTimersByTime(1_000);
    await rechecking(authorizer).authorize(alice, listNodes);
    expect(reviews()).toBe(2);
  });

  test('the age of an authorization decision is measured from the start of its review, since a Role can change before the response', async () => {
    const { authorizer, client, reviews } = lab();
    client.before = () => new Promise((resolve) => setTimeout(resolve, 3_000));
    const first = authorizer.authorize(alice, listNodes);
    await jest.advanceTimersByTimeAsync(3_000);
    await first;
    client.before = () => undefined;
    await jest.advanceTimersByTimeAsync(7_100);
    await authorizer.authorize(alice, listNodes);
    expect(reviews()).toBe(2);
  });

  test("an authorization decision for a recheck does not wait for the pending reviews of the user's requests", async () => {
    const { authorizer, client } = lab();
    const first = Promise.withResolvers<void>();
    client.before = () => first.promise;
    const ofRequests = Array.from({ length: 100 }, (_, n) =>
      authorizer.authorize(alice, { ...listNodes, namespace: `n${n}` }),
    );
    client.before = () => undefined;
    // The last of the pending requests has the same attributes.
    await expect(rechecking(authorizer).authorize(alice, { ...listNodes, namespace: 'n99' })).resolves.toMatchObject({
      allowed: true,
    });
    first.resolve();
    await Promise.all(ofRequests);
  });

  test('an authorization decision is requested once for concurrent requests, which all fail if the review fails', async () => {
    const { authorizer, client, reviews } = lab();
    const authorizeAll = (): Promise<unknown>[] =>
      Array.from({ length: 30 }, () => authorizer.authorize(alice, listNodes));
    client.before = () => {
      throw unreachable(new Error('reset'));
    };
    const failed = await Promise.allSettled(authorizeAll());
    expect(failed.map(({ status }) => status)).toEqual(failed.map(() => 'rejected'));
    client.before = () => undefined;
    await Promise.all(authorizeAll());
    expect(reviews()).toBe(2);
  });
});

describe('reviews of many namespaces', () => {
  test('a review never uses or fills the cache, and equal reviews in flight are merged', async () => {
    const { authorizer, reviews } = lab();
    await authorizer.authorize(alice, listNodes);
    const both = await Promise.all([authorizer.review(alice, listNodes), authorizer.review(alice, listNodes)]);
    expect(both[0]).toEqual({ decision: { allowed: true, reason: '' }, at: expect.any(Number) as unknown });
    expect(reviews()).toBe(2);
    await authorizer.review(alice, { ...listNodes, namespace: 'a' });
    await authorizer.authorize(alice, { ...listNodes, namespace: 'a' });
    expect(reviews()).toBe(4);
  });

  test('a request of the same user does not wait for pending reviews of namespaces', async () => {
    const { authorizer, client } = lab();
    const first = Promise.withResolvers<void>();
    client.before = () => first.promise;
    const pending = Array.from({ length: 100 }, (_, n) =>
      authorizer.review(alice, { ...listNodes, namespace: `n${n}` }),
    );
    expect(client.requestsTo('POST', path).length).toBeLessThanOrEqual(16);
    client.before = () => undefined;
    await expect(authorizer.authorize(alice, listNodes)).resolves.toMatchObject({ allowed: true });
    first.resolve();
    await Promise.all(pending);
  });
});

test('an authorization decision takes the same cache space, however long the request attributes are', async () => {
  const { authorizer } = lab();
  const kept = jest.spyOn(LRUCache.prototype, 'set');
  const attributeSets: Attributes[] = [listNodes, { verb: 'get', path: `/${'x'.repeat(8_000)}` }];
  for (const one of attributeSets) await authorizer.authorize(alice, one);
  await authorizer.authorize({ ...alice, groups: Array.from({ length: 1_000 }, String) }, listNodes);
  expect(kept.mock.calls).toHaveLength(3);
  for (const [key] of kept.mock.calls) expect(String(key).length).toBeLessThanOrEqual(128);
  kept.mockRestore();
});

const pod = { verb: 'get', group: '', resource: 'pods', subresource: 'log', namespace: 'a', name: 'p' };
test.each<[string, Partial<UserInfo>, Attributes]>([
  ['username', { username: 'bob' }, pod],
  ['uid', { uid: '43' }, pod],
  ['list of groups', { groups: ['a'] }, pod],
  ['extra value', { extra: { scopes: ['x'] } }, pod],
  ['verb', {}, { ...pod, verb: 'list' }],
  ['group', {}, { ...pod, group: 'apps' }],
  ['resource', {}, { ...pod, resource: 'secrets' }],
  ['subresource', {}, { ...pod, subresource: 'exec' }],
  ['namespace', {}, { ...pod, namespace: 'b' }],
  ['name', {}, { ...pod, name: 'q' }],
  ['subresource (none instead of log)', {}, { verb: 'get', group: '', resource: 'pods', namespace: 'a', name: 'p' }],
  ['path', {}, { verb: 'get', path: '/metrics' }],
])('an authorization decision is not reused for a request with a different %s', async (_, person, attributes) => {
  const { authorizer, reviews } = lab();
  await authorizer.authorize(alice, pod);
  expect(authorizer.allowsFromCache?.({ ...alice, ...person }, attributes)).toBe(false);
  await authorizer.authorize({ ...alice, ...person }, attributes);
  expect(reviews()).toBe(2);
});

test('an internal error during authorization is not reported as an error of kube-apiserver', async () => {
  const { authorizer, client } = lab();
  const fault = new TypeError('a bug');
  client.before = () => {
    throw fault;
  };
  await expect(authorizer.authorize(alice, listNodes)).rejects.toBe(fault);
});

test('an authorization decision is never reused for another user or other request attributes', async () => {
  const word = fc.constantFrom('', 'a', 'b', 'a,b', '"', '\\', '[');
  const user = fc.record({
    username: word,
    groups: fc.array(word, { maxLength: 2 }),
    extra: fc.option(fc.dictionary(word, fc.array(word, { maxLength: 1 }), { maxKeys: 1 }), { nil: undefined }),
  });
  const attributes = fc.oneof(
    fc.record({ verb: word, path: word }),
    fc.record({ verb: word, group: word, resource: word, subresource: word, namespace: word, name: word }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(user, attributes), { maxLength: 20 }), async (requests) => {
      const { authorizer, client } = lab();
      for (const [{ extra, ...person }, what] of requests)
        await authorizer.authorize({ ...person, ...(extra === undefined ? {} : { extra }), via: 'token' }, what);
      const reviews = client.requestsTo('POST', path).map(({ body }) => JSON.stringify(body));
      // Each distinct request was reviewed exactly once.
      expect(new Set(reviews).size).toBe(reviews.length);
      expect(reviews).toHaveLength(new Set(requests.map((one) => JSON.stringify(one))).size);
    }),
  );
});
