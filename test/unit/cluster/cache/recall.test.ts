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

/** A question, and whether it has been answered. */
interface Asked {
  isOver: boolean;
}

async function ask(resourceVersion: number, signal = never): Promise<Asked> {
  const asked = { isOver: false };
  void recall(resourceVersion, signal).then(() => (asked.isOver = true));
  await settle();
  return asked;
}

/** Lets the cluster be asked, and answers with these events. */
async function hear(resourceVersion: number, ...events: unknown[]): Promise<FakeRequest> {
  await ask(resourceVersion);
  const question = cluster.last;
  await question.open();
  await question.send(...events);
  return question;
}

describe('what happened before a history began', () => {
  test('is asked by a short watch of metadata', async () => {
    await ask(2137);
    expect(cluster.requests).toHaveLength(1);
    expect(cluster.last.path).toBe(path);
    expect(cluster.last.query).toEqual({
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: 2137,
      timeoutSeconds: 3,
    });
  });

  test('is asked when kube-apiserver has found out how far the resource is', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    latest = () => promise;
    await ask(2137);
    expect(cluster.requests).toHaveLength(0);
    resolve();
    await settle();
    expect(cluster.requests).toHaveLength(1);
  });

  test.each<readonly [string, readonly unknown[], number, number]>([
    // What is told to one who asks from 2137, where the history begins then, and before what nothing is asked any more.
    ['nothing, up to where it begins', [bookmark('2417')], 2137, 1],
    ['nothing, and more than it knows', [bookmark('2500')], 2137, 1],
    ['nothing, as the next change came later', [event('MODIFIED', 2418)], 2137, 1],
    ['nothing, as the next deletion came later', [event('DELETED', 2418)], 2137, 1],
    ['nothing, in two bookmarks', [bookmark('2300'), bookmark('2450')], 2137, 1],
    ['a change', [event('MODIFIED', 2200), bookmark('2450')], 2200, 2200],
    ['a deletion', [event('DELETED', 2200), bookmark('2450')], 2200, 2200],
    ['an addition and a deletion', [event('ADDED', 2200), event('DELETED', 2300), event('ADDED', 2450)], 2300, 2300],
    ['a change where it begins', [event('MODIFIED', 2200), event('MODIFIED', 2417)], since, since],
  ])('was %s', async (_, events, begins, floor) => {
    const question = await hear(2137, ...events);
    expect(store.history.since).toBe(begins);
    expect(store.history.positionAfter(begins)).toBe(store.history.position);
    expect(store.at(begins)?.map(({ name }) => name)).toEqual(['a']);
    expect(store.history.positionAfter(begins - 1)).toBeUndefined();
    expect(store.at(begins - 1)).toBeUndefined();
    expect(question.body.destroyed).toBe(true);
    const before = cluster.requests.length;
    expect((await ask(floor - 1)).isOver).toBe(true);
    expect(cluster.requests).toHaveLength(before);
    expect((await ask(floor)).isOver).toBe(floor >= begins);
    expect(cluster.requests).toHaveLength(before + Number(floor < begins));
  });

  test.each<readonly [string, readonly unknown[], number]>([
    // And from where it may be asked again.
    ['the watch ends without a bookmark', [], 1],
    ['the bookmark lies before', [bookmark('2416')], 1],
    ['kube-apiserver has forgotten it', [failed(410, 'Expired')], 2138],
    ['kube-apiserver cannot watch', [failed(500, 'InternalError')], 1],
    ['only some is told', [event('MODIFIED', 2200), event('MODIFIED', 2300)], 2300],
    ['some is told and then forgotten', [event('MODIFIED', 2200), failed(410, 'Expired')], 2200],
    ['it is the state that is told, not what changed', [event('ADDED', 2000), bookmark('2450')], 1],
    ['something is told without a version', [{ type: 'ADDED', object: { metadata: {} } }, bookmark('2450')], 1],
  ])('is not known when %s', async (_, events, floor) => {
    const question = await hear(2137, ...events);
    await question.end();
    expect(store.history.since).toBe(since);
    expect(store.at(2137)).toBeUndefined();
    const before = cluster.requests.length;
    expect((await ask(floor - 1)).isOver).toBe(true);
    expect(cluster.requests).toHaveLength(before);
    await ask(floor);
    expect(cluster.requests).toHaveLength(before + 1);
  });

  test('is not asked again by who got no answer', async () => {
    const asked = await ask(2137);
    await cluster.last.answer(403, status(403, 'Forbidden'));
    expect(asked.isOver).toBe(true);
    expect(cluster.requests).toHaveLength(1);
    const again = await ask(2137);
    await cluster.last.answer(410, status(410, 'Gone'));
    expect(again.isOver).toBe(true);
    expect((await ask(2137)).isOver).toBe(true);
    expect(cluster.requests).toHaveLength(2);
    const unreachable = await ask(2138);
    await cluster.last.fail(new Error('ECONNREFUSED'));
    expect(unreachable.isOver).toBe(true);
    expect(clock.pending()).toEqual([]);
  });

  test.each([0, -1, since, since + 1])('is nothing to ask about from %i on', async (resourceVersion) => {
    expect((await ask(resourceVersion)).isOver).toBe(true);
    expect(cluster.requests).toHaveLength(0);
  });

  test('is nothing to ask about once changes are forgotten', async () => {
    for (let version = 2418; version < 12_419; version += 1) store.apply('MODIFIED', stored('a', version));
    expect(store.history.since).toBe(2418);
    expect((await ask(2417)).isOver).toBe(true);
    expect(cluster.requests).toHaveLength(0);
  });

  test('is void when changes are forgotten meanwhile', async () => {
    const asked = await ask(2137);
    const question = cluster.last;
    await question.open();
    for (let version = 2418; version < 12_419; version += 1) store.apply('MODIFIED', stored('a', version));
    await question.send(bookmark('12500'));
    expect(asked.isOver).toBe(true);
    expect(store.history.since).toBe(2418);
  });

  test('is void when the history begins anew meanwhile, even at the same version, and is asked again', async () => {
    store.bookmark(2500);
    const asked = await ask(2137);
    const question = cluster.last;
    await question.open();
    store.replace([stored('b', 2300)], since);
    await question.send(bookmark('2500'));
    expect(asked.isOver).toBe(false);
    expect(store.history.since).toBe(since);
    expect(cluster.last).not.toBe(question);
    await cluster.last.open();
    await cluster.last.send(event('ADDED', 2300), bookmark('2500'));
    expect(asked.isOver).toBe(true);
    expect(store.history.since).toBe(2300);
    // What was gone before may be asked for again.
    store.replace([], 2200);
    expect((await ask(2137)).isOver).toBe(false);
  });

  test('goes on with what came meanwhile', async () => {
    const question = await hear(2137);
    store.apply('MODIFIED', stored('a', 2420));
    store.apply('DELETED', stored('a', 2421));
    await question.send(event('MODIFIED', 2420));
    expect(changesAfter(store, 2137)?.map(({ resourceVersion }) => resourceVersion)).toEqual([2420, 2421]);
    expect(store.at(2137)?.map(({ name, resourceVersion }) => `${name}@${resourceVersion}`)).toEqual(['a@2000']);
  });
});

describe('those who ask at once', () => {
  test('share one question, and the next is for the oldest of them', async () => {
    const asked = [await ask(2200), await ask(2300), await ask(2200), await ask(2100), await ask(2150)];
    expect(cluster.requests).toHaveLength(1);
    await cluster.last.open();
    await cluster.last.send(bookmark('2417'));
    expect(asked.map(({ isOver }) => isOver)).toEqual([true, true, true, false, false]);
    expect(cluster.requests).toHaveLength(2);
    expect(cluster.last.query).toMatchObject({ resourceVersion: 2100 });
    await cluster.last.open();
    await cluster.last.send(event('MODIFIED', 2120), bookmark('2417'));
    expect(asked.every(({ isOver }) => isOver)).toBe(true);
    expect(store.history.since).toBe(2120);
    expect(cluster.requests).toHaveLength(2);
    expect(clock.pending()).toEqual([]);
  });

  test('do not spoil it for each other by asking for what is gone', async () => {
    await ask(2200);
    const asked = [await ask(2100), await ask(2150)];
    await cluster.last.open();
    await cluster.last.send(bookmark('2417'));
    await cluster.last.open();
    await cluster.last.send(failed(410, 'Expired'));
    expect(asked.map(({ isOver }) => isOver)).toEqual([true, false]);
    expect(cluster.last.query).toMatchObject({ resourceVersion: 2150 });
    await cluster.last.open();
    await cluster.last.send(bookmark('2417'));
    expect(asked.map(({ isOver }) => isOver)).toEqual([true, true]);
    expect(store.history.since).toBe(2150);
  });

  test('all give up where there is no answer', async () => {
    const asked = [await ask(2200), await ask(2100), await ask(2300)];
    await cluster.last.answer(503, status(503, 'ServiceUnavailable'));
    expect(asked.every(({ isOver }) => isOver)).toBe(true);
    expect(cluster.requests).toHaveLength(1);
  });

  test('wait no longer than they like, and four seconds at most', async () => {
    const controller = new AbortController();
    const first = await ask(2200, controller.signal);
    await cluster.last.open();
    await clock.advance(2000);
    const second = await ask(2100);
    controller.abort();
    await settle();
    expect([first, second]).toEqual([{ isOver: true }, { isOver: false }]);
    const question = cluster.last;
    expect(question.signal?.aborted).toBe(false);
    const third = await ask(2250);
    await clock.advance(1999);
    expect(third.isOver).toBe(false);
    await clock.advance(1);
    expect(question.signal?.aborted).toBe(true);
    expect([second, third]).toEqual([{ isOver: true }, { isOver: true }]);
    expect(cluster.requests).toHaveLength(1);
    expect(clock.pending()).toEqual([]);
    // A question that has to wait for another.
    latest = () => new Promise(() => undefined);
    const fourth = await ask(2100);
    await clock.advance(3999);
    expect(fourth.isOver).toBe(false);
    await clock.advance(1);
    expect(fourth.isOver).toBe(true);
  });
});

test('a history reaches back exactly as far as nothing happened, whoever asks in which order', async () => {
  const change = fc.record({
    name: fc.constantFrom('a', 'b', 'c'),
    what: fc.constantFrom('put', 'put', 'delete', 'other', 'other', 'other'),
  });
  const scene = fc.record({
    before: fc.array(change, { maxLength: 12 }),
    after: fc.array(change, { maxLength: 4 }),
    questions: fc.array(fc.record({ back: fc.nat(16), apart: fc.boolean() }), { minLength: 1, maxLength: 6 }),
  });
  await fc.assert(
    fc.asyncProperty(scene, async ({ before, after, questions }) => {
      const time = new FakeClock();
      const real = new MemoryCluster(time);
      const copy = new Store<null>();
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
      const begun = Number(real.version);
      copy.replace(
        real.list(path).map(({ metadata: { name, resourceVersion } }) => stored(name, Number(resourceVersion))),
        begun,
      );
      const ended = real.watch(path, undefined, real.version, (type, { metadata: { name, resourceVersion } }) =>
        copy.apply(type, stored(name, Number(resourceVersion))),
      );
      const asking = createRecall({
        client: real.client(),
        path,
        history: copy.history,
        latest: async () => 0,
        log,
        clock: time,
      });
      const floor = Math.max(0, ...versions.filter((version) => version <= begun));
      for (const { back, apart } of questions) {
        const asked = asking(begun - back, never);
        if (!apart) continue;
        await settle();
        await Promise.all([asked, time.advance(4000)]);
      }
      after.forEach(play);
      await settle();
      await time.advance(4000);
      ended();
      copy.bookmark(Number(real.version));
      const oldest = Math.max(floor, Math.min(...questions.map(({ back }) => begun - back)));
      expect(copy.history.since).toBe(oldest);
      for (const [version, names] of states) {
        const seen = copy.at(version)?.map(({ name, resourceVersion }) => `${name}@${resourceVersion}`);
        expect(seen).toEqual(version < oldest ? undefined : names);
      }
    }),
  );
});
