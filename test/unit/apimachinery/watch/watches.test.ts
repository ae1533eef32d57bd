import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { forbidden, serviceUnavailable } from '../../../../src/runtime/errors.ts';
import { apisRoutes, kapisRoutes } from '../../../../src/resources/routes.ts';
import type { Gap } from '../../../../src/cluster/cache/history.ts';
import type { Route } from '../../../../src/http/route.ts';
import {
  call,
  type Call,
  emptyCluster,
  FakeAuthorizer,
  fakeResource,
  type FakeResource,
  node,
  refused,
} from '../../../labs/resources.ts';

const path = '/apis/resources.platform.io/v1alpha3/nodes';
let resource: FakeResource;
let authorizer: FakeAuthorizer;
let routes: Route[];
let calls: Call[];
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
  calls = [];
  resource = fakeResource();
  authorizer = new FakeAuthorizer();
  routes = apisRoutes({ authorizer, resources: [resource] });
  resource.store.replace([node('a', { resourceVersion: 5 }), node('b', { resourceVersion: 6 })], 10);
});
afterEach(async () => {
  for (const { abort, done } of calls) {
    abort();
    await done;
  }
  jest.useRealTimers();
});

const settle = async (): Promise<void> => {
  for (let i = 0; i < 6; i += 1) await new Promise((resolve) => setImmediate(resolve));
};

async function until(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns += 1) {
    if (turns === 5_000) throw new Error('it does not come');
    await settle();
  }
}

async function watch(query: string, headers: Record<string, string> = {}, of = path): Promise<Call> {
  const started = call(routes, `${of}?watch=true&${query}`, { headers });
  calls.push(started);
  await settle();
  return started;
}

const eventsOf = ({ response }: Call): string[] =>
  response.events.map(({ type, object: { metadata } }) => `${type} ${metadata.name ?? ''}@${metadata.resourceVersion}`);

const large = (resourceVersion: number): ReturnType<typeof node> =>
  node('large', { resourceVersion, annotations: { data: 'x'.repeat(5 * 1024 * 1024) } });

const modify = (name: string, resourceVersion: number, labels: Record<string, string> = {}): void =>
  resource.store.apply('MODIFIED', node(name, { resourceVersion, labels }));

describe('a watch', () => {
  test('a watch sends its response head at once, before the first event', async () => {
    const { response } = await watch('resourceVersion=10');
    expect(response.headersSent).toBe(true);
    expect(response.headers).toEqual({ 'content-type': 'application/json' });
    expect(response.text).toBe('');
  });

  test('a watch yields to other requests while it scans existing objects, even if few of them match', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `n${index + 10}`);
    resource.store.replace(
      names.map((name) => node(name, { resourceVersion: 5 })),
      20,
    );
    let now = 0;
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => (now += 1));
    const started = await watch('labelSelector=!a');
    expect(eventsOf(started).length).toBeLessThan(20);
    await until(() => eventsOf(started).length === 20);
    clock.mockRestore();
  });

  test.each(['', 'resourceVersion=0'])('a watch with the query %j starts with the existing objects', async (query) => {
    const started = await watch(query);
    expect(eventsOf(started)).toEqual(['ADDED a@5', 'ADDED b@6']);
    modify('a', 11);
    await settle();
    expect(eventsOf(started).slice(2)).toEqual(['MODIFIED a@11']);
    expect(started.response.events[0]?.object).toMatchObject({
      kind: 'Node',
      apiVersion: 'resources.platform.io/v1alpha3',
    });
  });

  test('a watch from a past resourceVersion starts with the changes after that resourceVersion', async () => {
    modify('a', 11);
    resource.store.apply('DELETED', node('b', { resourceVersion: 12 }));
    resource.store.apply('ADDED', node('c', { resourceVersion: 13 }));
    const started = await watch('resourceVersion=11');
    modify('c', 14);
    await settle();
    expect(eventsOf(started)).toEqual(['DELETED b@12', 'ADDED c@13', 'MODIFIED c@14']);
  });

  test('a watch from a future resourceVersion sends only the changes after that resourceVersion', async () => {
    const started = await watch('resourceVersion=12');
    modify('a', 11);
    modify('a', 12);
    modify('a', 13);
    await settle();
    expect(eventsOf(started)).toEqual(['MODIFIED a@13']);
  });

  test('a watch ends with an ERROR if the cache skips the resourceVersion from which the watch continues', async () => {
    const ahead = await watch('resourceVersion=12');
    const present = await watch('resourceVersion=10');
    const last = await watch('resourceVersion=20');
    resource.store.replace([node('a', { resourceVersion: 15 })], 20);
    await ahead.done;
    expect(ahead.response.events).toMatchObject([
      { type: 'ERROR', object: { code: 410, message: 'too old resource version: 12 (20)' } },
    ]);
    await settle();
    expect(eventsOf(present)).toEqual(['DELETED b@11', 'MODIFIED a@15']);
    expect([present.response.writableEnded, last.response.writableEnded]).toEqual([false, false]);
  });

  test('a watch sends ADDED and DELETED when objects start and stop matching its selector', async () => {
    const started = await watch('resourceVersion=10&labelSelector=env');
    modify('a', 11, { env: 'prod' });
    modify('a', 12, { env: 'dev' });
    modify('b', 13);
    modify('a', 14);
    modify('a', 15, { env: 'prod' });
    resource.store.apply('DELETED', node('a', { resourceVersion: 16, labels: { env: 'prod' } }));
    resource.store.apply('DELETED', node('b', { resourceVersion: 17 }));
    await settle();
    expect(eventsOf(started)).toEqual(['ADDED a@11', 'MODIFIED a@12', 'DELETED a@14', 'ADDED a@15', 'DELETED a@16']);
    // DELETED shows the object as the client last saw it.
    expect(started.response.events[2]?.object.metadata.labels).toEqual({ env: 'dev' });
  });

  test('a watch of one object, by its name or at the deprecated path, sends no other object', async () => {
    const oldPath = path.replace('/nodes', '/watch/nodes/a');
    const byName = await watch('resourceVersion=10&fieldSelector=metadata.name%3Da');
    const old = await watch('resourceVersion=10', {}, oldPath);
    modify('b', 11);
    modify('a', 12);
    await settle();
    expect(eventsOf(byName)).toEqual(['MODIFIED a@12']);
    expect(eventsOf(old)).toEqual(['MODIFIED a@12']);
    const error = await refused(routes, `${oldPath}?watch=true&fieldSelector=metadata.name%3Db`);
    expect(error).toMatchObject({ code: 400, message: "fieldSelector metadata.name doesn't match requested name" });
  });

  test('a watch that is a streaming list marks the end of the initial objects', async () => {
    const started = await watch('sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true');
    expect(eventsOf(started)).toEqual(['ADDED a@5', 'ADDED b@6', 'BOOKMARK @10']);
    expect(started.response.events[2]?.object).toEqual({
      kind: 'Node',
      apiVersion: 'resources.platform.io/v1alpha3',
      metadata: {
        resourceVersion: '10',
        creationTimestamp: null,
        annotations: { 'k8s.io/initial-events-end': 'true' },
      },
    });
    expect(resource.confirmations).toEqual(['list']);
  });

  test('a watch without initial events starts with the next change', async () => {
    const started = await watch('sendInitialEvents=false&resourceVersionMatch=NotOlderThan');
    modify('a', 11);
    await settle();
    expect(eventsOf(started)).toEqual(['MODIFIED a@11']);
  });

  test.each(['', 'resourceVersion=0'])(
    'a watch with the query %j and bookmarks marks the end of the initial objects',
    async (query) => {
      const started = await watch(`${query}&allowWatchBookmarks=true`);
      expect(eventsOf(started)).toEqual(['ADDED a@5', 'ADDED b@6', 'BOOKMARK @10']);
      expect(started.response.events[2]?.object).toMatchObject({
        metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } },
      });
    },
  );

  test('a watch sends no bookmark if its timeout is only two seconds', async () => {
    const started = await watch('resourceVersion=10&allowWatchBookmarks=true&timeoutSeconds=2');
    await jest.advanceTimersByTimeAsync(2000);
    await settle();
    expect(eventsOf(started)).toEqual([]);
    expect(started.response.writableEnded).toBe(true);
  });

  test('a watch sends no bookmark right after its start, at any second of the minute', async () => {
    const started: Call[] = [];
    for (let second = 0; second < 60; second += 1) {
      started.push(await watch('resourceVersion=10&allowWatchBookmarks=true&timeoutSeconds=2'));
      await jest.advanceTimersByTimeAsync(1_000);
    }
    await jest.advanceTimersByTimeAsync(2_000);
    await settle();
    expect(started.map(eventsOf)).toEqual(started.map(() => []));
  });

  test('a watch from a resourceVersion ahead of the cache sends no bookmark with an earlier resourceVersion', async () => {
    const started = await watch('resourceVersion=20&allowWatchBookmarks=true&timeoutSeconds=200');
    for (const version of [10, 19, 20]) {
      resource.store.bookmark(version);
      await jest.advanceTimersByTimeAsync(60_000);
      await settle();
    }
    expect(eventsOf(started)).toEqual(['BOOKMARK @20']);
  });

  test('a watch with allowWatchBookmarks sends bookmarks every minute and shortly before the watch ends', async () => {
    const started = await watch('resourceVersion=10&allowWatchBookmarks=true&timeoutSeconds=200');
    const plain = await watch('resourceVersion=10&timeoutSeconds=200');
    for (const version of [20, 30, 40]) {
      resource.store.bookmark(version);
      await jest.advanceTimersByTimeAsync(60_000);
      await settle();
    }
    expect(eventsOf(started)).toEqual(['BOOKMARK @20', 'BOOKMARK @30', 'BOOKMARK @40']);
    await jest.advanceTimersByTimeAsync(17_900);
    await settle();
    const minutes = eventsOf(started).length;
    resource.store.bookmark(50);
    await jest.advanceTimersByTimeAsync(300);
    await settle();
    expect(eventsOf(started).slice(minutes)).toEqual(['BOOKMARK @50']);
    expect(started.response.writableEnded).toBe(false);
    await jest.advanceTimersByTimeAsync(2000);
    await settle();
    expect(started.response.writableEnded).toBe(true);
    expect(plain.response.writableEnded).toBe(true);
    expect(eventsOf(plain)).toEqual([]);
  });

  test('a watch ends by itself after 30 to 60 minutes', async () => {
    const started = await watch('resourceVersion=10');
    await jest.advanceTimersByTimeAsync(1_799_000);
    expect(started.response.writableEnded).toBe(false);
    await jest.advanceTimersByTimeAsync(1_801_000);
    await settle();
    expect(started.response.writableEnded).toBe(true);
  });

  test('a watch from an expired resourceVersion sends one ERROR and ends', async () => {
    const started = await watch('resourceVersion=9');
    await started.done;
    expect(started.response.statusCode).toBe(200);
    expect(started.response.events).toMatchObject([
      {
        type: 'ERROR',
        object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version: 9 (10)' },
      },
    ]);
    expect(started.response.writableEnded).toBe(true);
  });

  test.each([
    ['resourceVersion=7', {}, path],
    ['resourceVersion=7', {}, '/kapis/resources.platform.io/v1alpha3/nodes'],
    ['resourceVersion=7', { accept: 'text/event-stream' }, '/kapis/resources.platform.io/v1alpha3/nodes'],
    [
      'resourceVersion=2',
      { accept: 'text/event-stream', 'last-event-id': '7' },
      '/kapis/resources.platform.io/v1alpha3/nodes',
    ],
  ])(
    'a watch with ?%s and the headers %o at %s can start before the cached history if no object has changed',
    async (query, headers, of) => {
      routes = [...routes, ...kapisRoutes({ authorizer, resources: [resource], ...emptyCluster })];
      const { promise, resolve } = Promise.withResolvers<void>();
      resource.onRecall = (resourceVersion) => {
        expect(resourceVersion).toBe(7);
        return promise;
      };
      const started = await watch(query, headers, of);
      expect(started.response.headersSent).toBe(false);
      modify('a', 11);
      resource.store.history.recall(resource.store.history.gapAt(7) as Gap, { floor: 0, since: 7 });
      modify('a', 12);
      resolve();
      await settle();
      const versions = started.response.text.matchAll(/"type":"(\w+)".*?"resourceVersion":"(\d+)"/g);
      expect([...versions].map(([, type, version]) => `${type} ${version}`)).toEqual(['MODIFIED 11', 'MODIFIED 12']);
      // The cached history now starts at this version.
      resource.onRecall = () => Promise.reject(new Error('it is requested again'));
      expect((await watch('resourceVersion=8')).response.events).toHaveLength(2);
    },
  );

  test('a watch that is a streaming list sends one ERROR if the cache does not reach the requested version in time', async () => {
    const started = await watch('sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99');
    await jest.advanceTimersByTimeAsync(3000);
    await started.done;
    expect(started.response.events).toMatchObject([{ type: 'ERROR', object: { code: 504, reason: 'Timeout' } }]);
  });

  test('a watch ends with an ERROR when the cluster was restored from a backup', async () => {
    const started = await watch('resourceVersion=10');
    resource.store.replace([], 3);
    await started.done;
    expect(started.response.events).toMatchObject([{ type: 'ERROR', object: { code: 410 } }]);
  });

  test('a watch ends when its user loses permission to watch, but continues while kube-apiserver cannot check the permission', async () => {
    const started = await watch('resourceVersion=10');
    authorizer.authorize = () => Promise.reject(serviceUnavailable('kube-apiserver cannot be reached'));
    await started.recheck();
    expect(started.response.writableEnded).toBe(false);
    authorizer.authorize = () => Promise.reject(forbidden({ group: '', resource: 'nodes' }, '', 'no more'));
    await started.recheck();
    await started.done;
    expect(started.response.events).toMatchObject([{ type: 'ERROR', object: { code: 403, reason: 'Forbidden' } }]);
  });

  test('a watch ends when the server drains', async () => {
    const started = await watch('resourceVersion=10');
    started.abort();
    await started.done;
    expect(started.response.writableEnded).toBe(true);
  });

  test('a watch waits for a slow client, and ends when the next change for the client is no longer in the history', async () => {
    const started = await watch('resourceVersion=10');
    started.response.stalled = true;
    for (let version = 11; version < 20; version += 1) modify('a', version);
    await settle();
    started.response.read();
    await until(() => eventsOf(started).length === 9);
    started.response.stalled = true;
    for (let version = 20; version < 100; version += 1) modify('a', version);
    await settle();
    // The history holds this many changes. The next change drops a change that the client has not received.
    for (let version = 100; version < 10_100; version += 1) modify('a', version);
    await settle();
    expect(started.response.destroyed).toBe(false);
    modify('a', 10_100);
    await until(() => started.response.destroyed);
    expect(eventsOf(started).at(-1)).toBe('MODIFIED a@99');
  });

  test('a watch ends if its client reads the initial objects so slowly that later changes are no longer in the history', async () => {
    for (let index = 0; index < 500; index += 1)
      resource.store.apply('ADDED', node(`n${index}`, { resourceVersion: 11 + index }));
    const started = call(routes, `${path}?watch=true`);
    const { response } = started;
    response.stalled = true;
    calls.push(started);
    await settle();
    const reader = await watch('resourceVersion=510');
    for (let version = 1000; version < 11_000; version += 1) modify('a', version);
    await until(() => eventsOf(reader).length === 10_000);
    expect(response.destroyed).toBe(false);
    modify('a', 11_000);
    await until(() => response.destroyed);
  });

  test('a watch sends all changes when many arrive at once', async () => {
    const started = await watch('resourceVersion=10');
    for (let version = 11; version <= 20_010; version += 1) modify('a', version);
    await until(() => eventsOf(started).length >= 20_000);
    expect(eventsOf(started).at(-1)).toBe('MODIFIED a@20010');
    expect(eventsOf(started)).toHaveLength(20_000);
  });

  test('a watch sends an object of 5 MB that is replaced and deleted', async () => {
    const all = await watch('resourceVersion=10');
    resource.store.apply('ADDED', large(11));
    resource.store.apply('MODIFIED', node('large', { resourceVersion: 12 }));
    resource.store.apply('MODIFIED', large(13));
    resource.store.apply('DELETED', large(14));
    await until(() => all.response.text.includes('"DELETED"'));
    expect(eventsOf(all)).toEqual(['ADDED large@11', 'MODIFIED large@12', 'MODIFIED large@13', 'DELETED large@14']);
  });

  test('a watch of tables sends the column definitions only once', async () => {
    const started = await watch('', { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' });
    modify('a', 11);
    await settle();
    const tables = started.response.events.map(({ type, object }) => ({
      type,
      columns: (object['columnDefinitions'] as unknown[] | null)?.length,
      cell: (object['rows'] as { cells: string[] }[])[0]?.cells[0],
    }));
    expect(tables).toEqual([
      { type: 'ADDED', columns: 10, cell: 'a' },
      { type: 'ADDED', columns: undefined, cell: 'b' },
      { type: 'MODIFIED', columns: undefined, cell: 'a' },
    ]);
  });

  test('a watch of metadata sends nothing but metadata', async () => {
    const started = await watch('', { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' });
    expect(started.response.events.map(({ object }) => Object.keys(object))).toEqual([
      ['kind', 'apiVersion', 'metadata'],
      ['kind', 'apiVersion', 'metadata'],
    ]);
  });

  test('a watch of selected fields shares its events only with watches of the same fields', async () => {
    routes = kapisRoutes({ authorizer, resources: [resource], ...emptyCluster });
    const of = '/kapis/resources.platform.io/v1alpha3/nodes';
    const queries = ['metadata.uid,spec', 'spec,metadata.uid', 'status', 'spec', 'spec&managedFields=true'];
    const started: Call[] = [];
    for (const fields of queries) started.push(await watch(`resourceVersion=10&fields=${fields}`, {}, of));
    modify('a', 11);
    await settle();
    const shown = started.map(({ response }) =>
      response.events.map(({ object }) =>
        [...Object.keys(object), ...Object.keys(object.metadata)].toSorted().join(' '),
      ),
    );
    const always = ['apiVersion kind metadata', 'name'];
    expect(shown).toEqual([
      ['apiVersion kind metadata name spec uid'],
      ['apiVersion kind metadata name spec uid'],
      [`${always.join(' ')} status`],
      [`${always.join(' ')} spec`],
      [`${always.join(' ')} spec`],
    ]);
  });

  describe('a watch of server-sent events', () => {
    const accept = 'text/event-stream';
    const follow = (query: string, headers: Record<string, string> = {}): Promise<Call> => {
      routes = kapisRoutes({ authorizer, resources: [resource], ...emptyCluster });
      return watch(query, { accept, ...headers }, '/kapis/resources.platform.io/v1alpha3/nodes');
    };

    test('a watch of server-sent events sends an event ID after the initial objects, even if there are no objects', async () => {
      const all = await follow('fields=metadata.name');
      expect(all.response.text).toMatch(/^data: .*"a".*\n\ndata: .*"b".*\n\nid: 10\n\n$/);
      expect((await follow('name=zzz')).response.text).toBe('id: 10\n\n');
      expect((await follow('resourceVersion=10')).response.text).toBe('');
      expect((await follow('', { 'last-event-id': '10' })).response.text).toBe('');
    });

    test.each(['name=a', 'fieldSelector=metadata.uid%3Duid-a'])(
      'a watch of server-sent events with %s sends a keep-alive after 15 seconds without an event',
      async (filter) => {
        const started = await follow(`resourceVersion=10&${filter}`);
        await jest.advanceTimersByTimeAsync(10_000);
        modify('a', 11);
        await settle();
        const { text } = started.response;
        await jest.advanceTimersByTimeAsync(10_000);
        expect(started.response.text.slice(text.length)).toBe('');
        modify('b', 12);
        await jest.advanceTimersByTimeAsync(6_000);
        await settle();
        expect(started.response.text.slice(text.length)).toBe(': keep-alive\nid: 12\n\n');
        await jest.advanceTimersByTimeAsync(16_000);
        expect(started.response.text.slice(text.length)).toBe(': keep-alive\nid: 12\n\n'.repeat(2));
        const lines = await watch('resourceVersion=12', {}, '/kapis/resources.platform.io/v1alpha3/nodes');
        await jest.advanceTimersByTimeAsync(40_000);
        expect(lines.response.text).toBe('');
      },
    );

    test('a watch of server-sent events sends no keep-alive to a client that does not read', async () => {
      const started = await follow('resourceVersion=10');
      started.response.stalled = true;
      resource.store.apply('MODIFIED', node('a', { resourceVersion: 11, annotations: { x: 'x'.repeat(20_000) } }));
      await settle();
      await jest.advanceTimersByTimeAsync(40_000);
      started.response.read();
      await settle();
      expect(started.response.text).not.toContain('keep-alive');
    });

    test('a watch of server-sent events stops a client from repeatedly requesting an expired version', async () => {
      routes = kapisRoutes({ authorizer, resources: [resource], ...emptyCluster });
      const of = '/kapis/resources.platform.io/v1alpha3/nodes';
      const error = await refused(routes, `${of}?watch=true&resourceVersion=1`, { headers: { accept } });
      expect(error).toMatchObject({ code: 410, reason: 'Expired' });
      const resumed = await follow('', { 'last-event-id': '1' });
      expect(resumed.response.text).toMatch(/^id:\ndata: \{"type":"ERROR","object":\{.*"code":410.*\n\n$/);
      expect(resumed.response.writableEnded).toBe(true);
    });
  });

  test.each([
    ['sendInitialEvents=true', 422],
    ['resourceVersionMatch=NotOlderThan', 422],
    ['sendInitialEvents=true&resourceVersionMatch=Exact', 422],
    ['resourceVersion=x', 400],
    ['timeoutSeconds=x', 400],
    ['fieldSelector=spec.x%3Dy', 400],
  ])('a watch with ?%s is rejected with %i', async (query, code) => {
    expect(await refused(routes, `${path}?watch=true&${query}`)).toMatchObject({ code });
  });

  test('a watch with a selector reports every random change of matching objects in the store', async () => {
    const started = await watch('resourceVersion=10&labelSelector=odd');
    const seen = new Map<string, number>();
    let version = 10;
    for (let i = 0; i < 500; i += 1) {
      version += 1;
      const name = `n${(i * 7) % 13}`;
      if (i % 5 === 4) resource.store.apply('DELETED', node(name, { resourceVersion: version }));
      else modify(name, version, i % 3 === 0 ? { odd: '' } : {});
      if (i % 50 === 0) await settle();
    }
    await settle();
    for (const { type, object } of started.response.events) {
      const { name, resourceVersion } = object.metadata;
      expect(seen.has(name)).toBe(type !== 'ADDED');
      if (type === 'DELETED') seen.delete(name);
      else seen.set(name, Number(resourceVersion));
    }
    const expected = resource.store.order('name').filter(({ labels }) => 'odd' in labels);
    expect(seen).toEqual(new Map(expected.map((object) => [object.name, object.resourceVersion])));
  });
});
