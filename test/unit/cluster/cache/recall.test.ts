import { beforeEach, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { ManagedFields } from '../../../../src/cluster/cache/managed-fields.ts';
import { createRecall } from '../../../../src/cluster/cache/recall.ts';
import { Store } from '../../../../src/cluster/cache/store.ts';
import { storeObject, type StoredObject } from '../../../../src/cluster/cache/stored-object.ts';
import { createLogger } from '../../../../src/runtime/logger.ts';
import { MemoryCluster } from '../../../fakes/cluster.ts';
import {
  bookmark,
  changesAfter,
  configMap,
  FakeClock,
  FakeCluster,
  settle,
  status,
  type FakeRequest,
} from '../../../labs/cluster-fakes.ts';

const path = '/api/v1/namespaces/default/configmaps';
const since = 2417;
const never = new AbortController().signal;
const log = createLogger({ silent: true });

function stored(name: string, resourceVersion: number): StoredObject<null> {
  const object = configMap(name, String(resourceVersion));
  return storeObject(object, Buffer.from(JSON.stringify(object)), {
    selfLink: () => '',
    fields: () => null,
    managedFields: new ManagedFields(),
  });
}

const event = (type: string, version: number): unknown => ({ type, object: configMap('a', String(version)) });
const failed = (code: number, reason: string): unknown => ({ type: 'ERROR', object: status(code, reason) });

let clock: FakeClock;
let cluster: FakeCluster;
let store: Store<null>;
let latest: () => Promise<unknown>;
let recall: ReturnType<typeof createRecall>;

beforeEach(() => {
  clock = new FakeClock();
  cluster = new FakeCluster();
  store = new Store();
  store.replace([stored('a', 2000)], since);
  latest = async () => since;
  recall = createRecall({ client: cluster, path, history: store.history, latest: () => latest(), log, clock });
});

/** A call of `recall`. `isOver` is true once the call has returned. */
interface RecallCall {
  isOver: boolean;
}

async function startRecall(resourceVersion: number, signal = never): Promise<RecallCall> {
  const pending = { isOver: false };
  void recall(resourceVersion, signal).then(() => (pending.isOver = true));
  await settle();
  return pending;
}

/** Starts a search, opens its watch and sends these events. */
async function hear(resourceVersion: number, ...events: unknown[]): Promise<FakeRequest> {
  await startRecall(resourceVersion);
  const request = cluster.last;
  await request.open();
  await request.send(...events);
  return request;
}

describe('the search for changes before the start of a history', () => {
  test('the search for changes before the start of a history opens a short watch of metadata', async () => {
    await startRecall(2137);
    expect(cluster.requests).toHaveLength(1);
    expect(cluster.last.path).toBe(path);
    expect(cluster.last.query).toEqual({
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: 2137,
      timeoutSeconds: 3,
    });
  });

  test('the search for changes before the start of a history waits until kube-apiserver has reported the current version of the resource', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    latest = () => promise;
    await startRecall(2137);
    expect(cluster.requests).toHaveLength(0);
    resolve();
    await settle();
    expect(cluster.requests).toHaveLength(1);
  });

  test.each<readonly [string, readonly unknown[], number, number]>([
    // Columns: events after version 2137, start of the history afterwards, lowest version that is not requested again.
    ['no change up to the start of the history', [bookmark('2417')], 2137, 1],
    ['no change up to a newer version than the history', [bookmark('2500')], 2137, 1],
    ['no change if there is a later change', [event('MODIFIED', 2418)], 2137, 1],
    ['no change if there is a later deletion', [event('DELETED', 2418)], 2137, 1],
    ['no change if there are two bookmarks', [bookmark('2300'), bookmark('2450')], 2137, 1],
    ['a change', [event('MODIFIED', 2200), bookmark('2450')], 2200, 2200],
    ['a deletion', [event('DELETED', 2200), bookmark('2450')], 2200, 2200],
    ['an addition and a deletion', [event('ADDED', 2200), event('DELETED', 2300), event('ADDED', 2450)], 2300, 2300],
    ['a change at the start of the history', [event('MODIFIED', 2200), event('MODIFIED', 2417)], since, since],
  ])('the search for changes before the start of a history finds %s', async (_, events, begins, floor) => {
    const request = await hear(2137, ...events);
    expect(store.history.since).toBe(begins);
    expect(store.history.positionAfter(begins)).toBe(store.history.position);
    expect(store.at(begins)?.map(({ name }) => name)).toEqual(['a']);
    expect(store.history.positionAfter(begins - 1)).toBeUndefined();
    expect(store.at(begins - 1)).toBeUndefined();
    expect(request.body.destroyed).toBe(true);
    const before = cluster.requests.length;
    expect((await startRecall(floor - 1)).isOver).toBe(true);
    expect(cluster.requests).toHaveLength(before);
    expect((await startRecall(floor)).isOver).toBe(floor >= begins);
    expect(cluster.requests).toHaveLength(before + Number(floor < begins));
  });

  test.each<readonly [string, readonly unknown[], number]>([
    // The last column is the lowest version that is requested again.
    ['the watch ends without a bookmark', [], 1],
    ['the bookmark is older than the history', [bookmark('2416')], 1],
    ['kube-apiserver reports the version as expired', [failed(410, 'Expired')], 2138],
    ['kube-apiserver fails', [failed(500, 'InternalError')], 1],
    ['only some changes arrive', [event('MODIFIED', 2200), event('MODIFIED', 2300)], 2300],
    ['some changes arrive and the rest has expired', [event('MODIFIED', 2200), failed(410, 'Expired')], 2200],
    ['the watch sends existing objects instead of changes', [event('ADDED', 2000), bookmark('2450')], 1],
    ['an event has no version', [{ type: 'ADDED', object: { metadata: {} } }, bookmark('2450')], 1],
  ])('the search for earlier changes does not extend a history when %s', async (_, events, floor) => {
    const request = await hear(2137, ...events);
    await request.end();
    expect(store.history.since).toBe(since);
    expect(store.at(2137)).toBeUndefined();
    const before = cluster.requests.length;
    expect((await startRecall(floor - 1)).isOver).toBe(true);
    expect(cluster.requests).toHaveLength(before);
    await startRecall(floor);
    expect(cluster.requests).toHaveLength(before + 1);
  });

  test('the search for changes before the start of a history is not retried within the same call', async () => {
    const pending = await startRecall(2137);
    await cluster.last.respond(403, status(403, 'Forbidden'));
    expect(pending.isOver).toBe(true);
    expect(cluster.requests).toHaveLength(1);
    const again = await startRecall(2137);
    await cluster.last.respond(410, status(410, 'Gone'));
    expect(again.isOver).toBe(true);
    expect((await startRecall(2137)).isOver).toBe(true);
    expect(cluster.requests).toHaveLength(2);
    const unreachable = await startRecall(2138);
    await cluster.last.fail(new Error('ECONNREFUSED'));
    expect(unreachable.isOver).toBe(true);
    expect(clock.pending()).toEqual([]);
  });

  test.each([0, -1, since, since + 1])(
    'the search for changes before the start of a history sends no request for the version %i',
    async (resourceVersion) => {
      expect((await startRecall(resourceVersion)).isOver).toBe(true);
      expect(cluster.requests).toHaveLength(0);
    },
  );

  test('the search for changes before the start of a history sends no request after old changes were dropped from the history', async () => {
    for (let version = 2418; version < 12_419; version += 1) store.apply('MODIFIED', stored('a', version));
    expect(store.history.since).toBe(2418);
    expect((await startRecall(2417)).isOver).toBe(true);
    expect(cluster.requests).toHaveLength(0);
  });

  test('the search for changes before the start of a history has no effect if the history drops old changes in the meantime', async () => {
    const pending = await startRecall(2137);
    const request = cluster.last;
    await request.open();
    for (let version = 2418; version < 12_419; version += 1) store.apply('MODIFIED', stored('a', version));
    await request.send(bookmark('12500'));
    expect(pending.isOver).toBe(true);
    expect(store.history.since).toBe(2418);
  });

  test('the search for changes before the start of a history is repeated when the history is reset in the meantime', async () => {
    store.bookmark(2500);
    const pending = await startRecall(2137);
    const request = cluster.last;
    await request.open();
    store.replace([stored('b', 2300)], since);
    await request.send(bookmark('2500'));
    expect(pending.isOver).toBe(false);
    expect(store.history.since).toBe(since);
    expect(cluster.last).not.toBe(request);
    await cluster.last.open();
    await cluster.last.send(event('ADDED', 2300), bookmark('2500'));
    expect(pending.isOver).toBe(true);
    expect(store.history.since).toBe(2300);
    // An expired version can be requested again after a reset.
    store.replace([], 2200);
    expect((await startRecall(2137)).isOver).toBe(false);
  });

  test('the search for changes before the start of a history keeps the changes that arrived in the meantime', async () => {
    const request = await hear(2137);
    store.apply('MODIFIED', stored('a', 2420));
    store.apply('DELETED', stored('a', 2421));
    await request.send(event('MODIFIED', 2420));
    expect(changesAfter(store, 2137)?.map(({ resourceVersion }) => resourceVersion)).toEqual([2420, 2421]);
    expect(store.at(2137)?.map(({ name, resourceVersion }) => `${name}@${resourceVersion}`)).toEqual(['a@2000']);
  });
});

describe('concurrent searches for earlier changes', () => {
  test('concurrent searches for earlier changes share one watch, and the next watch starts at the oldest version that the remaining searches requested', async () => {
    const pending = [
      await startRecall(2200),
      await startRecall(2300),
      await startRecall(2200),
      await startRecall(2100),
      await startRecall(2150),
    ];
    expect(cluster.requests).toHaveLength(1);
    await cluster.last.open();
    await cluster.last.send(bookmark('2417'));
    expect(pending.map(({ isOver }) => isOver)).toEqual([true, true, true, false, false]);
    expect(cluster.requests).toHaveLength(2);
    expect(cluster.last.query).toMatchObject({ resourceVersion: 2100 });
    await cluster.last.open();
    await cluster.last.send(event('MODIFIED', 2120), bookmark('2417'));
    expect(pending.every(({ isOver }) => isOver)).toBe(true);
    expect(store.history.since).toBe(2120);
    expect(cluster.requests).toHaveLength(2);
    expect(clock.pending()).toEqual([]);
  });

  test('concurrent searches for earlier changes do not all fail when one of them requests an expired version', async () => {
    await startRecall(2200);
    const pending = [await startRecall(2100), await startRecall(2150)];
    await cluster.last.open();
    await cluster.last.send(bookmark('2417'));
    await cluster.last.open();
    await cluster.last.send(failed(410, 'Expired'));
    expect(pending.map(({ isOver }) => isOver)).toEqual([true, false]);
    // The expired version does not affect what the first search has found.
    expect(store.history.since).toBe(2200);
    expect(cluster.last.query).toMatchObject({ resourceVersion: 2150 });
    await cluster.last.open();
    await cluster.last.send(bookmark('2417'));
    expect(pending.map(({ isOver }) => isOver)).toEqual([true, true]);
    expect(store.history.since).toBe(2150);
  });

  test('concurrent searches for earlier changes all end when kube-apiserver responds with 503', async () => {
    const pending = [await startRecall(2200), await startRecall(2100), await startRecall(2300)];
    await cluster.last.respond(503, status(503, 'ServiceUnavailable'));
    expect(pending.every(({ isOver }) => isOver)).toBe(true);
    expect(cluster.requests).toHaveLength(1);
  });

  test('concurrent searches for earlier changes wait at most four seconds, and end earlier when their signals are aborted', async () => {
    const controller = new AbortController();
    const first = await startRecall(2200, controller.signal);
    await cluster.last.open();
    await clock.advance(2000);
    const second = await startRecall(2100);
    controller.abort();
    await settle();
    expect([first, second]).toEqual([{ isOver: true }, { isOver: false }]);
    const request = cluster.last;
    expect(request.signal?.aborted).toBe(false);
    const third = await startRecall(2250);
    await clock.advance(1999);
    expect(third.isOver).toBe(false);
    await clock.advance(1);
    expect(request.signal?.aborted).toBe(true);
    expect([second, third]).toEqual([{ isOver: true }, { isOver: true }]);
    expect(cluster.requests).toHaveLength(1);
    expect(clock.pending()).toEqual([]);
    // The time limit also applies while the current version of the resource is unknown.
    latest = () => new Promise(() => undefined);
    const fourth = await startRecall(2100);
    await clock.advance(3999);
    expect(fourth.isOver).toBe(false);
    await clock.advance(1);
    expect(fourth.isOver).toBe(true);
  });
});

test('searches in any order extend a history back to the last change before its start, and no further', async () => {
  const change = fc.record({
    name: fc.constantFrom('a', 'b', 'c'),
    what: fc.constantFrom('put', 'put', 'delete', 'other', 'other', 'other'),
  });
  const scene = fc.record({
    before: fc.array(change, { maxLength: 12 }),
    after: fc.array(change, { maxLength: 4 }),
    recalls: fc.array(fc.record({ back: fc.nat(16), apart: fc.boolean() }), { minLength: 1, maxLength: 6 }),
  });
  await fc.assert(
    fc.asyncProperty(scene, async ({ before, after, recalls }) => {
      const time = new FakeClock();
      const real = new MemoryCluster(time);
      const cache = new Store<null>();
      const states = new Map<number, string[]>();
      const versions: number[] = [];
      const play = ({ name, what }: { name: string; what: string }): void => {
        const was = real.version;
        const { metadata } = configMap(name, '');
        if (what === 'other') real.put('/api/v1/namespaces/default/secrets', { metadata });
        else if (what === 'put') real.put(path, { metadata });
        else real.delete(path, name);
        states.set(Number(real.version), state());
        if (what !== 'other' && real.version !== was) versions.push(Number(real.version));
      };
      const state = (): string[] =>
        real
          .list(path)
          .map(({ metadata: { name, resourceVersion } }) => `${name}@${resourceVersion}`)
          .toSorted();
      states.set(Number(real.version), state());
      before.forEach(play);
      const started = Number(real.version);
      cache.replace(
        real.list(path).map(({ metadata: { name, resourceVersion } }) => stored(name, Number(resourceVersion))),
        started,
      );
      const ended = real.watch(path, undefined, real.version, (type, { metadata: { name, resourceVersion } }) =>
        cache.apply(type, stored(name, Number(resourceVersion))),
      );
      const recallChanges = createRecall({
        client: real.client(),
        path,
        history: cache.history,
        latest: async () => 0,
        log,
        clock: time,
      });
      const floor = Math.max(0, ...versions.filter((version) => version <= started));
      for (const { back, apart } of recalls) {
        const pending = recallChanges(started - back, never);
        if (!apart) continue;
        await settle();
        await Promise.all([pending, time.advance(4000)]);
      }
      after.forEach(play);
      await settle();
      await time.advance(4000);
      ended();
      cache.bookmark(Number(real.version));
      const oldest = Math.max(floor, Math.min(...recalls.map(({ back }) => started - back)));
      expect(cache.history.since).toBe(oldest);
      for (const [version, names] of states) {
        const seen = cache.at(version)?.map(({ name, resourceVersion }) => `${name}@${resourceVersion}`);
        expect(seen).toEqual(version < oldest ? undefined : names);
      }
    }),
  );
});
