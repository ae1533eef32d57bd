import { describe, expect, jest, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { KubeObject } from '../../../../src/cluster/client/kube-object.ts';
import { byName, type OrderName } from '../../../../src/cluster/cache/order.ts';
import { ManagedFields } from '../../../../src/cluster/cache/managed-fields.ts';
import { orderByValue, type ObjectFilter, type ObjectOrder } from '../../../../src/cluster/cache/selection.ts';
import { Store } from '../../../../src/cluster/cache/store.ts';
import { storeObject, type StoredObject } from '../../../../src/cluster/cache/stored-object.ts';

type Stored = StoredObject<null>;

const wanted = new AbortController();
const managedFields = new ManagedFields();

interface Made {
  readonly name: string;
  readonly namespace: string;
  readonly second: number;
  readonly rack: string;
}

function stored({ name, namespace, second, rack }: Made, resourceVersion: number): Stored {
  const object: KubeObject = {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: {
      name,
      namespace,
      uid: `${namespace}-${name}`,
      resourceVersion: String(resourceVersion),
      creationTimestamp: new Date(1_700_000_000_000 + second * 1000).toISOString(),
      labels: { rack },
    },
  };
  return storeObject(object, Buffer.from(JSON.stringify(object)), {
    selfLink: ({ metadata }) => `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`,
    fields: () => null,
    managedFields,
  });
}

const filter = (
  key: string,
  passes: (object: StoredObject<unknown>) => boolean,
  indexed?: ObjectFilter<unknown>['indexed'],
): ObjectFilter<unknown> => Object.assign(passes, { key, ...(indexed === undefined ? {} : { indexed }) });

const filters: readonly ObjectFilter<unknown>[] = [
  filter('in a', ({ namespace }) => namespace === 'a', { index: 'namespace', values: ['a'] }),
  filter('in a or b', ({ namespace }) => namespace !== 'c', { index: 'namespace', values: ['a', 'b', 'a'] }),
  filter('rack 1', ({ labels }) => labels['rack'] === '1', { index: 'label rack', values: ['1'] }),
  filter('not rack 1', ({ labels }) => labels['rack'] !== '1'),
  filter('of these names', ({ name }) => ['n1', 'n2'].includes(name), { index: 'name', values: ['n1', 'n2'] }),
  ({ name }) => name !== 'n3',
];

const byRack: ObjectOrder<unknown> = {
  key: 'rack',
  compare: (a, b) => Number(a.labels['rack']) - Number(b.labels['rack']) || byName(a, b),
};

const short = ({ namespace, name, resourceVersion }: StoredObject<unknown>): string =>
  `${namespace}/${name}@${resourceVersion}`;

const compares: Record<OrderName, (a: Stored, b: Stored) => number> = {
  name: () => 0,
  newest: (a, b) => b.createdAt - a.createdAt,
  oldest: (a, b) => a.createdAt - b.createdAt,
};

const numbered = (version: number): Stored[] =>
  Array.from({ length: 200 }, (_, index) =>
    stored({ name: `n${index}`, namespace: 'a', second: 0, rack: '1' }, version),
  );

const inRack = (index: number, rack: string, version: number): Stored =>
  stored({ name: `n${index}`, namespace: 'a', second: 0, rack }, version);

describe('a selection', () => {
  test('a selection equals the result of a simple model, whatever changes precede and follow the request', async () => {
    const made = fc.record({
      name: fc.constantFrom('n1', 'n2', 'n3', 'n4', 'n5', 'n6', 'n7'),
      namespace: fc.constantFrom('a', 'b', 'c'),
      second: fc.nat(3),
      rack: fc.constantFrom('1', '2', '10'),
    });
    const request = fc.record({
      kind: fc.constant('query' as const),
      filters: fc.subarray([...filters]),
      order: fc.constantFrom<OrderName | 'rack'>('name', 'newest', 'oldest', 'rack'),
    });
    const event = fc.oneof(
      fc.record({ kind: fc.constant('put' as const), made }),
      fc.record({ kind: fc.constant('delete' as const), made }),
      fc.record({ kind: fc.constant('list' as const), made }),
      request,
      request,
    );
    // Enough objects for selections to be cached.
    const many = Array.from({ length: 300 }, (_, index): Made => {
      const rack = String(index % 3);
      return { name: `m${index}`, namespace: index % 2 === 0 ? 'a' : 'b', second: index % 5, rack };
    });
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 10, maxLength: 40 }), async (events) => {
        const store = new Store<null>();
        let version = 1;
        const model = new Map(many.map((one) => [`${one.namespace}/${one.name}`, stored(one, version)]));
        store.replace([...model.values()], version);
        const results: Promise<readonly [string[], string[], number, number]>[] = [];
        for (const happened of events) {
          version += 1;
          if (happened.kind === 'query') {
            const { order: name, filters: predicates } = happened;
            const order = name === 'rack' ? byRack : name;
            results.push(
              store.select(predicates, order, wanted, (objects, resourceVersion) => {
                const compare = typeof order === 'string' ? compares[order] : order.compare;
                const expected = [...model.values()]
                  .filter((object) => predicates.every((one) => one(object)))
                  .toSorted((a, b) => compare(a, b) || byName(a, b));
                return [objects.map(short), expected.map(short), resourceVersion, store.resourceVersion] as const;
              }),
            );
            // The test waits for only some selections, so that other selections complete after the next change.
            if (version % 2 === 0) await results.at(-1);
            continue;
          }
          const { name, namespace } = happened.made;
          const key = `${namespace}/${name}`;
          const before = model.get(key);
          // An object keeps its creation time until the object is deleted.
          const second = before === undefined ? happened.made.second : (before.createdAt - 1_700_000_000_000) / 1000;
          const object = stored({ ...happened.made, second }, version);
          if (happened.kind === 'delete') {
            model.delete(key);
            store.apply('DELETED', object);
          } else {
            model.set(key, object);
            if (happened.kind === 'put') store.apply(before === undefined ? 'ADDED' : 'MODIFIED', object);
            else store.replace([...model.values()], version);
          }
        }
        for (const [objects, expected, resourceVersion, now] of await Promise.all(results)) {
          expect(objects).toEqual(expected);
          expect(resourceVersion).toBe(now);
        }
      }),
      { numRuns: 60 },
    );
  });

  test('a selection is sorted by values that are read once from each object', async () => {
    const store = new Store<null>();
    store.replace(numbered(1), 1);
    let looks = 0;
    const order = orderByValue(
      'number',
      ({ name }) => {
        looks += 1;
        return (Number(name.slice(1)) * 7) % 50;
      },
      (a, b) => b - a,
    );
    const sorted = await store.select([], order, wanted, (objects) => objects.slice());
    expect(looks).toBe(200);
    expect(sorted.map(short)).toEqual(numbered(1).toSorted(order.compare).map(short));
  });

  test('a selection in an order that is already cached is not sorted again', async () => {
    const store = new Store<null>();
    store.replace(numbered(1), 1);
    let looks = 0;
    const order = orderByValue(
      'number',
      ({ name }) => {
        looks += 1;
        return (Number(name.slice(1)) * 7) % 50;
      },
      (a, b) => b - a,
    );
    const without = async (digit: string): Promise<void> => {
      const passes = ({ name }: StoredObject<unknown>): boolean => !name.endsWith(digit);
      const expected = numbered(1).filter(passes).toSorted(order.compare);
      looks = 0;
      const selected = await store.select([filter(`not ${digit}`, passes)], order, wanted, (found) => found.slice());
      expect(selected.map(short)).toEqual(expected.map(short));
    };
    await without('1');
    expect(looks).toBe(200);
    await without('2');
    expect(looks).toBe(0);
    looks = 0;
    // If a filter selects few objects, the order reads only these objects.
    const few = filter('few', ({ name }) => name === 'n7' || name === 'n8');
    expect(await store.select([few], { ...order, key: 'other' }, wanted, (found) => found.map(short))).toHaveLength(2);
    expect(looks).toBe(2);
  });

  test.each([
    ['short', ''],
    ['long', 'x'.repeat(130)],
  ])(
    'a selection with a %s key that grows beyond the limit of a store evicts the oldest selections',
    async (_length, padding) => {
      const count = 1_000;
      const store = new Store<null>();
      store.replace(
        Array.from({ length: count }, (_, index) => inRack(index, 'none', 1)),
        count,
      );
      let looks = 0;
      const ofRack = (index: number): ObjectFilter<unknown> =>
        filter(`full ${index} ${padding}`, ({ labels }) => {
          looks += 1;
          return labels['rack'] === 'full';
        });
      const indexes = Array.from({ length: 20 }, (_, index) => index);
      const select = (index: number): Promise<number> =>
        store.select([ofRack(index)], byRack, wanted, (objects) => objects.length);
      for (const index of indexes) expect(await select(index)).toBe(0);
      for (let index = 0; index < count; index += 1) store.apply('MODIFIED', inRack(index, 'full', count + index + 1));
      looks = 0;
      // The references of five selections have 40,000 bytes, which is the limit.
      for (const index of indexes.slice(-5)) expect(await select(index)).toBe(count);
      expect(looks).toBe(0);
      for (const index of indexes.slice(0, 10)) {
        expect(await select(index)).toBe(count);
        expect(looks).toBeGreaterThan(0);
        looks = 0;
      }
    },
  );

  test('a selection is recomputed after a reset of the store', async () => {
    const store = new Store<null>();
    store.replace(numbered(10), 10);
    const count = (): Promise<number> =>
      store.select([filters[2] as ObjectFilter<null>], 'name', wanted, (objects) => objects.length);
    expect(await count()).toBe(200);
    expect(await count()).toBe(200);
    store.replace(numbered(5).slice(0, 150), 5);
    expect(await count()).toBe(150);
  });

  test('a selection is recomputed if the store was reset during the computation', async () => {
    const store = new Store<null>();
    store.replace(numbered(10), 10);
    const turns = jest.spyOn(performance, 'now').mockImplementation(() => (now += 10));
    let now = 0;
    const count = (): Promise<number> =>
      store.select([filters[3] as ObjectFilter<null>], byRack, wanted, (objects) => objects.length);
    const making = store.select([filters[2] as ObjectFilter<null>], 'name', wanted, (objects) => objects.length);
    store.replace(numbered(5).slice(0, 150), 5);
    expect(await making).toBe(150);
    expect(await count()).toBe(0);
    turns.mockRestore();
    expect(await store.select([filters[2] as ObjectFilter<null>], 'name', wanted, (objects) => objects.length)).toBe(
      150,
    );
  });

  test('the computation of a selection continues for one request when another request is aborted', async () => {
    const store = new Store<null>();
    store.replace([stored({ name: 'n', namespace: 'a', second: 0, rack: '1' }, 1)], 1);
    const reason = new Error('gone');
    const first = store.select([filters[3] as ObjectFilter<null>], 'name', wanted, (objects) => objects.length);
    const second = store.select(
      [filters[3] as ObjectFilter<null>],
      'name',
      { signal: AbortSignal.abort(reason) },
      () => 'told',
    );
    await expect(second).rejects.toBe(reason);
    expect(await first).toBe(0);
  });

  test('one request at a time computes a selection, even if the first request is aborted', async () => {
    const store = new Store<null>();
    store.replace(numbered(10), 10);
    let visits = 0;
    const counted = filter('counted', () => (visits += 1) > 0) as ObjectFilter<null>;
    const reason = new Error('gone');
    // Every look at the clock ends a slice.
    let now = 0;
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => (now += 10));
    try {
      const select = (signal: AbortSignal): Promise<number> =>
        store.select([counted], 'name', { signal }, (objects) => objects.length);
      const aborted = select(AbortSignal.abort(reason)).catch((error: unknown) => error);
      const others = [1, 2, 3].map(() => select(wanted.signal));
      expect(await aborted).toBe(reason);
      expect(new Set(await Promise.all(others))).toEqual(new Set([store.size]));
      expect(visits).toBeLessThan(2 * store.size);
    } finally {
      clock.mockRestore();
    }
  });

  test('changes search the bytes of an object for at most 64 filters of cached selections', async () => {
    const store = new Store<null>();
    store.replace(numbered(10), 10);
    let plain = 0;
    const cheap = filter('cheap', () => (plain += 1) > 0) as ObjectFilter<null>;
    await store.select([cheap], 'name', wanted, () => undefined);
    let visits = 0;
    const lookUp = (key: string): ObjectFilter<null> =>
      Object.assign(({ name }: Stored) => (visits += 1) > 0 && name.startsWith('new'), {
        key,
        isLookUp: true as const,
      });
    for (let selection = 0; selection < 20; selection += 1) {
      const many = Array.from({ length: 16 }, (_, index) => lookUp(`${selection} ${index}`));
      await store.select(many, 'name', wanted, () => undefined);
    }
    const change = (version: number): number => {
      visits = 0;
      store.apply('ADDED', stored({ name: `new-${version}`, namespace: 'a', second: 0, rack: '1' }, version));
      return visits;
    };
    // A selection without look-ups stays, although it is the least recently used one.
    expect(change(11)).toBe(64);
    expect(change(12)).toBe(64);
    expect(plain).toBe(store.size);
  });
});
