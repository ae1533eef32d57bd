import { describe, expect, jest, test } from '@jest/globals';
import * as fc from 'fast-check';
import { randomBytes } from 'node:crypto';
import type { KubeObject } from '../../../../src/cluster/client/kube-object.ts';
import type { Change, Gap } from '../../../../src/cluster/cache/history.ts';
import type { OrderName } from '../../../../src/cluster/cache/order.ts';
import { MalformedResponseError } from '../../../../src/cluster/cache/json-scan.ts';
import { ManagedFields } from '../../../../src/cluster/cache/managed-fields.ts';
import { Store } from '../../../../src/cluster/cache/store.ts';
import { storeObject, StoredObject } from '../../../../src/cluster/cache/stored-object.ts';
import { changesAfter } from '../../../labs/cluster-fakes.ts';

type Stored = StoredObject<null>;

function stored(name: string, resourceVersion: number, second = 0, uid = `uid-${name}`, spec: object = {}): Stored {
  const object: KubeObject & { spec: object } = {
    kind: 'Node',
    apiVersion: 'v1',
    metadata: {
      name,
      uid,
      resourceVersion: String(resourceVersion),
      creationTimestamp: new Date(1_700_000_000_000 + second * 1000).toISOString(),
    },
    spec,
  };
  return storeObject(object, Buffer.from(JSON.stringify(object)), {
    selfLink: ({ metadata }) => `/api/v1/nodes/${metadata.name}`,
    fields: () => null,
    managedFields: new ManagedFields(),
  });
}

const short = ({ name, resourceVersion }: Stored): string => `${name}@${resourceVersion}`;
const changeText = ({ type, object, previous }: Change<null>): string =>
  `${type} ${short(object)}${previous === undefined ? '' : ` was ${short(previous)}`}`;

describe('the object cache of a resource', () => {
  test('the object cache of a resource has the same order of objects, history and snapshots as a simple model', () => {
    const event = fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
      second: fc.nat(3),
      step: fc.integer({ min: 1, max: 3 }),
      what: fc.constantFrom('put', 'put', 'delete', 'bookmark', 'list'),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), (events) => {
        const store = new Store<null>();
        store.replace([], 1);
        let version = 1;
        let created = 0;
        let model = new Map<string, Stored>();
        const snapshots = new Map([[1, model]]);
        const gaps: (readonly [from: number, to: number])[] = [];
        const followed = new Map<string, Stored>();
        store.subscribe({
          change: ({ type, object, previous }) => {
            expect(followed.get(object.name)).toBe(previous);
            if (type === 'DELETED') followed.delete(object.name);
            else followed.set(object.name, object);
          },
          reset: () => {
            throw new Error('the history broke');
          },
        });
        for (const { name, second, step, what } of events) {
          // An object that is recreated between two lists takes two versions: deletion and addition.
          version += what === 'list' ? step + 1 : step;
          const before = model.get(name);
          if (what === 'bookmark') store.bookmark(version);
          else if (what === 'delete') {
            if (before === undefined) continue;
            model = new Map(model);
            model.delete(name);
            store.apply('DELETED', stored(name, version, 0, before.uid));
          } else {
            // A list shows several changes at once, including a recreated object.
            const uid = what === 'list' || before === undefined ? `uid-${(created += 1)}` : before.uid;
            const object = stored(name, version, second, uid);
            model = new Map(model).set(name, object);
            if (what === 'put') store.apply(before === undefined ? 'ADDED' : 'MODIFIED', object);
            else {
              gaps.push([store.resourceVersion, version + 1]);
              const [gone] = model.keys();
              if (gone !== undefined && gone !== name) model.delete(gone);
              store.replace([...model.values()], (version += 1));
            }
          }
          snapshots.set(version, model);
          expect(store.resourceVersion).toBe(version);
        }
        const sorted = (compare: (a: Stored, b: Stored) => number): string[] =>
          [...model.values()].toSorted((a, b) => compare(a, b) || (a.name < b.name ? -1 : 1)).map(short);
        const compares: Record<OrderName, (a: Stored, b: Stored) => number> = {
          name: () => 0,
          newest: (a, b) => b.createdAt - a.createdAt,
          oldest: (a, b) => a.createdAt - b.createdAt,
        };
        for (const [name, compare] of Object.entries(compares))
          expect(store.order(name as OrderName).map(short)).toEqual(sorted(compare));
        expect(store.size).toBe(model.size);
        expect(followed).toEqual(model);
        for (const [at, snapshot] of snapshots) {
          const isKnown = !gaps.some(([from, to]) => from < at && at < to);
          const present = isKnown ? [...snapshot.values()].map(short).toSorted() : undefined;
          expect(store.at(at)?.map(short)).toEqual(present);
          expect(changesAfter(store, at) !== undefined).toBe(isKnown);
          if (!isKnown) continue;
          const names = new Set(snapshot.keys());
          for (const { type, object } of changesAfter(store, at) ?? []) {
            expect(names.has(object.name)).toBe(type !== 'ADDED');
            if (type === 'DELETED') names.delete(object.name);
            else names.add(object.name);
          }
          expect([...names].toSorted()).toEqual([...model.keys()].toSorted());
        }
        const bytes = [...model.values()].reduce((sum, object) => sum + object.bytes.length, 0);
        expect(store.bytes).toBeGreaterThanOrEqual(bytes);
      }),
    );
  });

  test('the object cache of a resource reports the changes of a second list, and deletions at the lowest unused versions', () => {
    const store = new Store<null>();
    store.replace([stored('same', 1), stored('changed', 2), stored('gone', 3), stored('again', 4)], 10);
    const changes: string[] = [];
    store.subscribe({ change: (change) => changes.push(changeText(change)), reset: () => changes.push('reset') });
    store.replace([stored('same', 1), stored('changed', 12), stored('again', 14, 0, 'another'), stored('new', 15)], 20);
    expect(changes).toEqual([
      'DELETED again@11 was again@4',
      'MODIFIED changed@12 was changed@2',
      'DELETED gone@13 was gone@3',
      'ADDED again@14',
      'ADDED new@15',
    ]);
  });

  test('a reader of a version between two lists is refused, because an object may have existed only between them', () => {
    const store = new Store<null>();
    store.replace([stored('a', 1), stored('gone', 2), stored('too', 3)], 10);
    store.apply('ADDED', stored('b', 11));
    store.replace([stored('a', 1), stored('b', 15)], 20);
    const differences = ['DELETED gone@12 was gone@2', 'DELETED too@13 was too@3', 'MODIFIED b@15 was b@11'];
    expect(changesAfter(store, 10)?.map(changeText)).toEqual(['ADDED b@11', ...differences]);
    expect(changesAfter(store, 11)?.map(changeText)).toEqual(differences);
    expect(store.at(11)?.map(short)).toEqual(['a@1', 'b@11', 'gone@2', 'too@3']);
    for (const version of [12, 13, 15, 19]) {
      expect(changesAfter(store, version)).toBeUndefined();
      expect(store.history.positionAfter(version)).toBeUndefined();
      expect(store.at(version)).toBeUndefined();
    }
    expect(changesAfter(store, 20)).toEqual([]);
  });

  test('a reader of a version between two lists continues if kube-apiserver confirms that nothing changed after it', () => {
    const store = new Store<null>();
    store.replace([stored('a', 1), stored('gone', 2)], 10);
    store.replace([stored('a', 15)], 20);
    store.apply('MODIFIED', stored('a', 21));
    // A client that has received only some of the differences has received none of the last version.
    const doubtful = [10, 11, 14, 15, 19, 20].filter((version) => store.history.isInDoubt(version));
    expect(doubtful).toEqual([15, 19]);
    const before = store.history.gapAt(16) as Gap;
    store.history.recall(before, { floor: 0, since: 16 });
    expect(changesAfter(store, 16)?.map(changeText)).toEqual(['MODIFIED a@21 was a@15']);
    expect(store.at(16)?.map(short)).toEqual(['a@15']);
    expect(changesAfter(store, 15)).toBeUndefined();
    // This information is about a gap that has changed since.
    store.history.recall(before, { floor: 0, since: 11 });
    expect(changesAfter(store, 15)).toBeUndefined();
  });

  test('a history with many lists refuses versions before the last hundred of them', () => {
    const store = new Store<null>();
    for (let version = 10; version <= 2_010; version += 10) store.replace([stored('a', version)], version);
    expect(store.history.since).toBe(1_020);
    expect(changesAfter(store, 1_010)).toBeUndefined();
    expect(changesAfter(store, 1_015)).toBeUndefined();
    expect(changesAfter(store, 1_020)).toHaveLength(99);
    expect(changesAfter(store, 1_025)).toBeUndefined();
  });

  test('a history that is too short for a gap refuses all versions up to its first change', () => {
    const store = new Store<null>();
    store.replace([], 10);
    store.replace([stored('a', 15)], 20);
    for (let version = 21; version <= 10_021; version += 1) store.apply('MODIFIED', stored('a', version));
    for (const version of [9, 10, 15, 20]) expect(changesAfter(store, version)).toBeUndefined();
    expect(changesAfter(store, 21)).toHaveLength(10_000);
    expect(store.history.gapAt(10)).toMatchObject({ to: 21 });
  });

  test('the object cache of a resource assigns each deletion found by a list its own revision', () => {
    const store = new Store<null>();
    store.replace(
      ['a', 'b', 'c', 'd', 'again'].map((name, index) => stored(name, index + 1)),
      10,
    );
    const { position } = store.history;
    store.replace([stored('d', 20), stored('again', 18, 0, 'another'), stored('e', 17), stored('f', 14)], 20);
    expect(store.history.from(position)?.map(changeText)).toEqual([
      'DELETED again@11 was again@5',
      'DELETED a@12 was a@1',
      'DELETED b@13 was b@2',
      'ADDED f@14',
      'DELETED c@15 was c@3',
      'ADDED e@17',
      'ADDED again@18',
      'MODIFIED d@20 was d@4',
    ]);
  });

  test('the object cache of a resource applies a list that differs from the previous list in many objects', async () => {
    const store = new Store<null>();
    const count = 400;
    const name = (index: number): string => `n${(index * 619) % count}`;
    const first = Array.from({ length: count }, (_, index) => stored(name(index), index + 1, index % 7));
    store.replace(first, 1_000);
    const second = first
      .flatMap((object, index) => {
        if (index % 4 === 0) return [];
        if (index % 4 === 1) return [stored(object.name, 2_000 + index * 2, index % 7)];
        if (index % 4 === 2) return [stored(object.name, 2_000 + index * 2, (index + 1) % 7, `again-${index}`)];
        return [object];
      })
      .concat(Array.from({ length: 100 }, (_, index) => stored(`new-${index}`, 3_000 + index, index % 5)));
    const odd = Object.assign(({ resourceVersion }: StoredObject<unknown>) => resourceVersion % 2 === 1, {
      key: 'odd',
    });
    const oddNames = (): Promise<string[]> =>
      store.select([odd], 'name', new AbortController(), (objects) => objects.map(short));
    await oddNames();
    const followed = new Map(first.map((object) => [object.name, object]));
    let last = 1_000;
    store.subscribe({
      change: ({ type, object, previous, resourceVersion }) => {
        expect(followed.get(object.name)).toBe(previous);
        expect(resourceVersion).toBeGreaterThan(last);
        last = resourceVersion;
        if (type === 'DELETED') followed.delete(object.name);
        else followed.set(object.name, object);
      },
      reset: () => {
        throw new Error('the history broke');
      },
    });
    store.replace(second, 5_000);
    expect(new Set(followed.values())).toEqual(new Set(second));
    const sorted = (objects: readonly Stored[], compare: (a: Stored, b: Stored) => number): string[] =>
      objects.toSorted((a, b) => compare(a, b) || (a.name < b.name ? -1 : 1)).map(short);
    expect(store.order('name').map(short)).toEqual(sorted(second, () => 0));
    expect(store.order('newest').map(short)).toEqual(sorted(second, (a, b) => b.createdAt - a.createdAt));
    expect(store.order('oldest').map(short)).toEqual(sorted(second, (a, b) => a.createdAt - b.createdAt));
    expect(await oddNames()).toEqual(sorted(second.filter(odd), () => 0));
  });

  test('the object cache of a resource counts the memory of a list that is still arriving', () => {
    const store = new Store<null>();
    for (let index = 0; index < 1_000; index += 1) store.hold(stored(`n${index}`, index + 1));
    const { bytes } = store;
    expect(bytes).toBeGreaterThan(1_000 * 1_024);
    store.release();
    expect(store.bytes).toBeLessThan(200_000);
  });

  test('the object cache of a resource has one snapshot for all readers until the next change', () => {
    const store = new Store<null>();
    store.replace([stored('b', 2), stored('a', 1)], 10);
    const first = store.snapshot();
    store.bookmark(11);
    expect(store.snapshot()).toBe(first);
    store.apply('ADDED', stored('c', 12));
    expect(store.snapshot().map(short)).toEqual(['a@1', 'b@2', 'c@12']);
    store.replace([stored('a', 1)], 20);
    expect(store.snapshot().map(short)).toEqual(['a@1']);
    store.replace([], 5);
    expect(store.snapshot()).toEqual([]);
    expect(first.map(short)).toEqual(['a@1', 'b@2']);
  });

  test('the object cache of a resource is reset when a list has more changes than the history can hold', () => {
    const store = new Store<null>();
    store.replace([stored('a', 1)], 10);
    const calls: string[] = [];
    store.subscribe({ change: () => calls.push('change'), reset: () => calls.push('reset') });
    store.replace(
      Array.from({ length: 10_001 }, (_, index) => stored(`n${index}`, 11 + index)),
      20_000,
    );
    expect(calls).toEqual(['reset']);
    expect(store.size).toBe(10_001);
    expect(store.history.since).toBe(20_000);
  });

  test('no deletion is created when a list removes more objects than the history can hold', () => {
    const store = new Store<null>();
    store.replace(
      Array.from({ length: 10_001 }, (_, index) => stored(`n${index}`, 1 + index)),
      20_000,
    );
    const calls: string[] = [];
    store.subscribe({ change: () => calls.push('change'), reset: () => calls.push('reset') });
    const copy = jest.spyOn(StoredObject.prototype, 'withResourceVersion');
    store.replace([], 30_000);
    const copies = copy.mock.calls.length;
    copy.mockRestore();
    expect(copies).toBe(0);
    expect(calls).toEqual(['reset']);
    expect(store.size).toBe(0);
  });

  test('the object cache of a resource is reset when the cluster was restored from a backup', () => {
    const store = new Store<null>();
    store.replace([stored('a', 5)], 10);
    let resets = 0;
    store.subscribe({ change: () => undefined, reset: () => (resets += 1) });
    store.replace([stored('b', 3)], 7);
    expect(resets).toBe(1);
    expect(store.resourceVersion).toBe(7);
    expect(store.get('', 'a')).toBeUndefined();
    expect(changesAfter(store, 6)).toBeUndefined();
    expect(store.at(10)).toBeUndefined();
  });

  test('the object cache of a resource drops the oldest changes when its history is full', () => {
    const store = new Store<null>();
    store.replace([], 1);
    for (let version = 2; version < 12_500; version += 1) store.apply('MODIFIED', stored('a', version));
    expect(store.history.since).toBe(2499);
    expect(changesAfter(store, 2498)).toBeUndefined();
    expect(changesAfter(store, 2499)).toHaveLength(10_000);
    expect(store.at(2499)?.map(short)).toEqual(['a@2499']);
    expect(store.at(20_000)).toBeUndefined();
    expect(store.history.position).toBe(12_499);
    expect(store.history.oldestPosition).toBe(2499);
    expect(store.history.positionAfter(2498)).toBeUndefined();
    expect(store.history.positionAfter(2499)).toBe(2499);
    expect(store.history.at(2498)).toBeUndefined();
    expect(store.history.at(2499)?.resourceVersion).toBe(2500);
    expect(store.history.at(12_499)).toBeUndefined();
    // A reader that continues from a version in the history notices a reset.
    store.replace([], 3);
    expect(store.history.position).toBe(12_500);
    expect(store.history.oldestPosition).toBe(12_500);
    expect(store.history.at(12_498)).toBeUndefined();
  });

  test('the object cache of a resource ignores changes that it already contains', () => {
    const store = new Store<null>();
    store.replace([stored('a', 5)], 10);
    const { bytes } = store;
    const large = { data: 'x'.repeat(100_000) };
    for (const [type, object] of [
      ['MODIFIED', stored('a', 5, 0, 'uid', large)],
      ['DELETED', stored('b', 11, 0, 'uid', large)],
    ] as const) {
      store.hold(object);
      store.apply(type, object);
    }
    expect(changesAfter(store, 10)).toEqual([]);
    expect(store.resourceVersion).toBe(11);
    expect(store.bytes).toBe(bytes);
  });

  test('the object cache of a resource reports when it has reached a resourceVersion', async () => {
    const store = new Store<null>();
    store.replace([], 10);
    expect(await store.waitFor(10, AbortSignal.abort())).toBe(true);
    expect(await store.waitFor(11, AbortSignal.abort())).toBe(false);
    const later = store.waitFor(12, new AbortController().signal);
    store.bookmark(11);
    store.apply('ADDED', stored('a', 12));
    expect(await later).toBe(true);
    const controller = new AbortController();
    const never = store.waitFor(13, controller.signal);
    controller.abort();
    expect(await never).toBe(false);
  });
});

test.each(['MODIFIED', 'DELETED'] as const)(
  'an object of more than 4 MiB keeps its bytes in the history after the event %s',
  (type) => {
    const store = new Store<null>();
    store.replace([stored('small', 1)], 1);
    const large = (resourceVersion: number): Stored =>
      stored('large', resourceVersion, 0, 'uid', { data: 'x'.repeat(5 * 1024 * 1024) });
    store.apply('ADDED', large(2));
    store.apply(type, large(3));
    const [added, change] = changesAfter(store, 1) ?? [];
    for (const object of [added?.object, change?.object, change?.previous])
      expect(JSON.parse(object?.bytes.toString('utf8', 0, object.length - 1) ?? '')).toMatchObject({
        metadata: { name: 'large' },
      });
  },
);

test('the history counts the managedFields of its objects, and keeps at most 64 MiB', () => {
  const store = new Store<null>();
  const managedFields = new ManagedFields();
  store.replace([], 1);
  for (let version = 2; version <= 200; version += 1) {
    const metadata = {
      name: 'a',
      resourceVersion: String(version),
      managedFields: [randomBytes(500_000).toString('hex')],
    };
    const object = { kind: 'Node', apiVersion: 'v1', metadata } as unknown as KubeObject;
    const source = Buffer.from(JSON.stringify(object));
    store.apply('MODIFIED', storeObject(object, source, { selfLink: () => '/x', fields: () => null, managedFields }));
  }
  const changes = store.history.from(store.history.oldestPosition) ?? [];
  const sizes = changes.map(({ object }) => object.length + object.managedFieldsSize);
  expect(sizes.length).toBeGreaterThan(50);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(64 * 1024 * 1024);
});

test('a change is published and stored even if the filter of a cached selection throws', async () => {
  const store = new Store<null>();
  store.replace(
    Array.from({ length: 200 }, (_, index) => stored(`n${index}`, index + 1)),
    200,
  );
  const published: string[] = [];
  store.subscribe({ change: (change) => published.push(changeText(change)), reset: () => published.push('reset') });
  const failing = Object.assign(
    ({ resourceVersion }: StoredObject<unknown>) => {
      if (resourceVersion === 201) throw new Error('the filter failed');
      return resourceVersion % 2 === 1;
    },
    { key: 'failing' },
  );
  const select = (): Promise<number> =>
    store.select([failing], 'name', new AbortController(), (objects) => objects.length);
  expect(await select()).toBe(100);
  store.apply('MODIFIED', stored('n0', 201));
  store.apply('MODIFIED', stored('n0', 203));
  expect(published).toEqual(['MODIFIED n0@201 was n0@1', 'MODIFIED n0@203 was n0@201']);
  expect(changesAfter(store, 200)?.map(changeText)).toEqual(published);
  expect(store.resourceVersion).toBe(203);
  expect(await select()).toBe(100);
});

describe('a stored object', () => {
  const options = {
    selfLink: ({ metadata }: KubeObject) => `/api/v1/nodes/${metadata.name}`,
    fields: () => null,
    managedFields: new ManagedFields(),
  };

  test('a stored object has kind, apiVersion and metadata first, and loses only managedFields', () => {
    const extra = fc.dictionary(
      fc.string().filter((key) => !['kind', 'apiVersion', 'metadata', '__proto__'].includes(key)),
      fc.jsonValue(),
    );
    const meta = fc.dictionary(
      fc.string().filter((key) => !['selfLink', 'managedFields', 'resourceVersion', 'name', '__proto__'].includes(key)),
      fc.string(),
    );
    fc.assert(
      fc.property(extra, meta, extra, fc.option(fc.array(fc.jsonValue())), (before, more, after, managedFields) => {
        const object = {
          ...before,
          apiVersion: 'x.io/v1',
          kind: 'Thing',
          metadata: {
            ...(managedFields === null ? {} : { managedFields }),
            ...more,
            name: 'n',
            resourceVersion: '12',
            selfLink: '/old',
          },
          ...after,
        };
        const source = Buffer.from(JSON.stringify(object));
        const it = storeObject(object, source, options);
        const text = it.bytes.toString();
        const { managedFields: _, ...metadata } = object.metadata as Record<string, unknown>;
        const expected = JSON.parse(
          JSON.stringify({ ...object, metadata: { ...metadata, selfLink: '/api/v1/nodes/n' } }),
        ) as object;
        expect(text.endsWith('},')).toBe(true);
        expect(
          text.startsWith('{"kind":"Thing","apiVersion":"x.io/v1","metadata":{"selfLink":"/api/v1/nodes/n",'),
        ).toBe(true);
        expect(JSON.parse(text.slice(0, -1))).toEqual(expected);
        const full = Buffer.concat([
          it.bytes.subarray(0, it.metadataEnd),
          it.managedFields ?? Buffer.alloc(0),
          it.bytes.subarray(it.metadataEnd, -1),
        ]);
        expect(JSON.parse(full.toString())).toEqual(
          JSON.parse(JSON.stringify({ ...object, metadata: { ...object.metadata, selfLink: '/api/v1/nodes/n' } })),
        );
        expect(text.slice(it.versionStart, it.versionEnd)).toBe('12');
        expect(JSON.parse(it.bytes.toString('utf8', it.metadata, it.metadataEnd + 1))).toMatchObject({ name: 'n' });
        const later = it.withResourceVersion(12_345);
        expect(JSON.parse(later.bytes.toString().slice(0, -1))).toMatchObject({
          metadata: { resourceVersion: '12345' },
        });
        expect(later.bytes.toString('utf8', later.metadataEnd, later.metadataEnd + 1)).toBe('}');
      }),
    );
  });

  test.each([
    ['no metadata', '{"kind":"A"}'],
    ['no resourceVersion', '{"kind":"A","metadata":{"name":"n"}}'],
    ['an invalid resourceVersion', '{"kind":"A","metadata":{"name":"n","resourceVersion":"x"}}'],
  ])('an object with %s is rejected by the object cache', (_, source) => {
    const object = { metadata: { name: 'n' }, ...(JSON.parse(source) as object) } as KubeObject;
    expect(() => storeObject(object, Buffer.from(source), options)).toThrow(MalformedResponseError);
  });
});
