import { describe, expect, test } from '@jest/globals';
import type { Attributes, ResourceAttributes } from '../../../../src/auth/authorizers/authorizer.ts';
import { StatusError } from '../../../../src/runtime/errors.ts';
import {
  assertSameVisible,
  assertStillVisible,
  visibleLogs,
  type LogAccess,
  type VisibleLogs,
} from '../../../../src/logs/query/visible.ts';
import { fakeResource, node } from '../../../labs/resources.ts';

const user = { username: 'bob', groups: [], uid: '', extra: {}, via: 'token' } as const;
const context = { user, signal: new AbortController().signal };
const everything = { namespaces: [], namespace_query: [] };
const never = (): never => {
  throw new Error('namespaces must not be read here');
};

/** The visibility of a caller who is allowed to see everything or nothing. */
const access = (allowed: boolean): LogAccess => ({
  authorizer: { authorize: async () => ({ allowed, reason: '' }) },
  granted: { of: () => new Map(), hasSynced: () => true },
  catalogue: { find: never, acquire: never },
});

async function codeOf(allowed: boolean, before: VisibleLogs): Promise<number> {
  const error: unknown = await assertSameVisible(access(allowed), context, everything, before).catch(
    (problem: unknown) => problem,
  );
  if (error !== undefined && !(error instanceof StatusError)) throw error;
  return error === undefined ? 200 : error.code;
}

test.each<[number, string, VisibleLogs, boolean]>([
  [200, 'all namespaces stay visible', undefined, true],
  [200, 'no namespace was or is visible', new Map(), false],
  [403, 'all namespaces were visible and none is any more', undefined, false],
  [403, 'one namespace was visible and none is any more', new Map([['shop', 5]]), false],
  [410, 'no namespace was visible and all are now', new Map(), true],
  [410, 'one namespace was visible and all are now', new Map([['shop', 5]]), true],
])('assertSameVisible() results in the status %d if %s', async (code, _what, before, allowed) => {
  expect(await codeOf(allowed, before)).toBe(code);
});

const createdAt = 1_700_000_000;

interface Case {
  /** Namespaces in which a RoleBinding names the caller. */
  readonly bound?: readonly string[];
  readonly hasSynced?: boolean;
  /** Namespaces in which the caller is allowed to get pods/log; '' means all. */
  readonly allowed?: readonly string[];
  /** Existing namespaces, each with the second of its creation after `createdAt`. */
  readonly present?: Readonly<Record<string, number>>;
  readonly namespaces?: readonly string[];
  readonly words?: readonly string[];
}

interface Seen {
  readonly visible: VisibleLogs;
  readonly reviews: readonly ResourceAttributes[];
  readonly released: number;
}

/** Returns the logs that are visible to a caller, and the access reviews that determined these logs. */
async function see({ bound = [], hasSynced = true, allowed = [], present = {}, ...wanted }: Case): Promise<Seen> {
  const reviews: ResourceAttributes[] = [];
  let released = 0;
  const resource = fakeResource();
  resource.store.replace(
    Object.entries(present).map(([name, second]) => node(name, { second, resourceVersion: 1 })),
    1,
  );
  const entry = { definition: { underlying: { resource: 'namespaces' } } };
  const all = {
    authorizer: {
      authorize: async (_user: unknown, attributes: Attributes) => {
        reviews.push(attributes as ResourceAttributes);
        return { allowed: allowed.includes((attributes as ResourceAttributes).namespace ?? 'none'), reason: '' };
      },
    },
    granted: {
      of: () => new Map(bound.map((name) => [name, { count: 1, lastChange: 1, changedAt: 0 }])),
      hasSynced: () => hasSynced,
    },
    catalogue: { find: async () => entry, acquire: async () => ({ resource, release: () => (released += 1) }) },
  } as unknown as LogAccess;
  const { namespaces = [], words = [] } = wanted;
  const visible = await visibleLogs(all, context, {
    namespaces: [...namespaces],
    namespace_query: [...words],
  });
  return { visible, reviews, released };
}

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `n${index}`);

describe('the logs that a caller sees', () => {
  test('a caller with the right to pods/log in all namespaces sees logs of all namespaces after one review', async () => {
    const { visible, reviews } = await see({ allowed: [''], hasSynced: false, bound: ['a'] });
    expect(visible).toBeUndefined();
    expect(reviews).toEqual([
      { verb: 'get', group: '', resource: 'pods', subresource: 'log', name: '', namespace: '' },
    ]);
  });

  test('a caller with the right to pods/log in all namespaces sees all logs of the namespaces in the query', async () => {
    const { visible } = await see({ allowed: [''], namespaces: ['gone', 'shop'], present: { shop: 5 } });
    expect(visible).toEqual(
      new Map([
        ['gone', 0],
        ['shop', 0],
      ]),
    );
  });

  test('a caller with a role binding in a namespace sees its logs from the creation of the namespace on, if an access review allows the caller', async () => {
    const { visible, reviews, released } = await see({
      bound: ['blog', 'gone', 'shop'],
      allowed: ['gone', 'shop', 'other'],
      present: { blog: 3, shop: 5, other: 7 },
    });
    expect(visible).toEqual(new Map([['shop', createdAt + 5]]));
    expect(reviews.slice(1)).toEqual(
      ['blog', 'gone', 'shop'].map((namespace) => ({
        verb: 'get',
        group: '',
        resource: 'pods',
        subresource: 'log',
        name: '',
        namespace,
      })),
    );
    expect(released).toBe(1);
  });

  test('a caller without a role binding sees the logs of a namespace in the query, even before the role bindings are read', async () => {
    const { visible } = await see({
      hasSynced: false,
      bound: ['blog'],
      allowed: ['blog', 'shop'],
      present: { blog: 3, shop: 5 },
      namespaces: ['shop'],
    });
    expect(visible).toEqual(new Map([['shop', createdAt + 5]]));
  });

  test.each<[readonly string[], readonly string[]]>([
    [['SHOP'], ['shop', 'shop-test']],
    [
      ['test', 'log'],
      ['blog', 'shop-test'],
    ],
    [['nothing'], []],
  ])('a caller sees logs of namespaces whose name contains one of %j', async (words, expected) => {
    const all = ['blog', 'shop', 'shop-test'];
    const { visible, reviews } = await see({
      bound: all,
      allowed: all,
      present: { blog: 1, shop: 2, 'shop-test': 3 },
      words,
    });
    expect([...(visible?.keys() ?? ['everything'])]).toEqual(expected);
    expect(reviews.slice(1).map(({ namespace }) => namespace)).toEqual(expected);
  });

  test('a caller without any right sees logs of no namespace, and no namespace is read', async () => {
    expect(await see({ bound: ['shop'], present: { shop: 5 } })).toMatchObject({ visible: new Map(), released: 0 });
  });

  test('a query without a namespace gets 503 before the role bindings are read', async () => {
    await expect(see({ hasSynced: false })).rejects.toMatchObject({ code: 503 });
  });

  test('a caller with role bindings in more than 10,000 namespaces gets 403', async () => {
    expect((await see({ bound: names(10_000) })).visible).toEqual(new Map());
    await expect(see({ bound: names(10_001) })).rejects.toMatchObject({
      code: 403,
      message: expect.stringContaining('User "bob" has role bindings in 10001 namespaces') as unknown,
      details: { kind: 'pods' },
    });
  });

  test('a query for more than 200 namespaces in which the caller has no role binding gets 400', async () => {
    const bound = names(50);
    expect((await see({ bound, namespaces: names(250) })).reviews).toHaveLength(251);
    await expect(see({ bound, namespaces: names(251) })).rejects.toMatchObject({ code: 400 });
    // Before the role bindings are read, all namespaces count as namespaces without one.
    await expect(see({ bound, hasSynced: false, namespaces: names(201) })).rejects.toMatchObject({ code: 400 });
  });
});

const since = (...all: readonly (readonly [string, number])[]): VisibleLogs => new Map(all);

/** Rechecks a stream that started with `before`. The caller now sees only `shop`, created 5 s after `createdAt`. */
const recheck = (
  before: VisibleLogs,
  still: typeof assertStillVisible | typeof assertSameVisible = assertStillVisible,
): Promise<unknown> => {
  const resource = fakeResource();
  resource.store.replace([node('shop', { second: 5 })], 1);
  const entry = { definition: { underlying: { resource: 'namespaces' } } };
  const now = {
    authorizer: {
      authorize: async (_user: unknown, { namespace }: ResourceAttributes) => ({
        allowed: namespace === 'shop',
        reason: 'no role',
      }),
    },
    granted: { of: () => new Map([['shop', { count: 1, lastChange: 1, changedAt: 0 }]]), hasSynced: () => true },
    catalogue: { find: async () => entry, acquire: async () => ({ resource, release: () => undefined }) },
  } as unknown as LogAccess;
  return still(now, context, everything, before);
};

describe('a log stream', () => {
  test.each<[string, VisibleLogs]>([
    ['the same namespace', since(['shop', createdAt + 5])],
    ['no namespace', since()],
    ['the same namespace from a later second on', since(['shop', createdAt + 6])],
  ])(
    'a log stream of a caller who now sees one namespace continues if the caller previously saw %s',
    async (_what, before) => {
      expect(await recheck(before)).toEqual(new Map([['shop', createdAt + 5]]));
    },
  );

  test.each<[string, VisibleLogs]>([
    ['only a different namespace', since(['blog', createdAt + 5])],
    ['an additional namespace', since(['shop', createdAt + 5], ['blog', createdAt + 5])],
    // The namespace was deleted and recreated under the same name.
    ['the namespace from an earlier second on', since(['shop', createdAt + 4])],
  ])(
    'a log stream of a caller who now sees one namespace ends with 403 if the caller previously saw %s',
    async (_what, before) => {
      await expect(recheck(before)).rejects.toMatchObject({
        code: 403,
        message: expect.stringContaining('the namespaces whose logs you are allowed to see have changed') as unknown,
        details: { kind: 'pods' },
      });
    },
  );

  test('a log stream ends with the message of kube-apiserver if the caller previously saw all namespaces and now sees one', async () => {
    await expect(recheck(undefined)).rejects.toMatchObject({
      code: 403,
      message: expect.stringContaining(
        'cannot get resource "pods/log" in API group "" at the cluster scope: no role',
      ) as unknown,
    });
  });

  test('a log stream of all visible logs ends with 410 when more logs become visible', async () => {
    await expect(recheck(since(), assertSameVisible)).rejects.toMatchObject({ code: 410 });
    await expect(recheck(since(['shop', createdAt + 6]), assertSameVisible)).rejects.toMatchObject({ code: 410 });
    expect(await recheck(since(['shop', createdAt + 5]), assertSameVisible)).toBeUndefined();
  });
});
