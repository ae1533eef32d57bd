import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { kapisRoutes } from '../../../src/resources/routes.ts';
import type { Route } from '../../../src/http/route.ts';
import {
  call,
  emptyCluster,
  FakeAuthorizer,
  fakeResource,
  type FakeResource,
  get,
  node,
  refused,
} from '../../labs/resources.ts';

const path = '/kapis/resources.platform.io/v1alpha3/nodes';
let resource: FakeResource;
let authorizer: FakeAuthorizer;
let routes: Route[];
beforeEach(() => {
  resource = fakeResource();
  authorizer = new FakeAuthorizer();
  routes = kapisRoutes({ authorizer, resources: [resource], ...emptyCluster });
  resource.store.replace([node('a', { second: 1 }), node('b', { second: 2 })], 10);
});

/** Waits for 50 turns of the event loop. */
const settle = async (): Promise<void> => {
  for (let i = 0; i < 50; i += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** Returns the object that a request with `fields=.spec,metadata.uid` receives. */
const item = (name: string): object => ({
  kind: 'Node',
  apiVersion: 'v1',
  metadata: { name, uid: `uid-${name}` },
  spec: {},
});

describe('a list of cached objects', () => {
  test('a list of cached objects contains totalItems and the objects of the core API, with selfLink and without managedFields', async () => {
    const { body, headers, text } = await get(routes, `${path}?limit=1`);
    expect(body).toEqual({
      kind: 'NodeList',
      apiVersion: 'v1',
      metadata: { resourceVersion: '10' },
      items: [
        {
          kind: 'Node',
          apiVersion: 'v1',
          metadata: {
            selfLink: '/api/v1/nodes/b',
            name: 'b',
            uid: 'uid-b',
            resourceVersion: '1',
            creationTimestamp: '2023-11-14T22:13:22Z',
          },
          spec: {},
          status: {},
        },
      ],
      totalItems: 2,
    });
    expect(text.endsWith('"totalItems":2}')).toBe(true);
    expect(headers).toEqual({
      'content-type': 'application/json',
      'content-length': String(text.length),
    });
  });

  test('a list of cached objects waits for the resourceVersion of NotOlderThan, and unsupported combinations of version parameters are rejected', async () => {
    const ahead = call(routes, `${path}?resourceVersion=12&resourceVersionMatch=NotOlderThan`);
    await settle();
    expect(ahead.response.headersSent).toBe(false);
    resource.store.apply('MODIFIED', node('b', { resourceVersion: 12 }));
    await ahead.done;
    expect(ahead.response.body.metadata).toEqual({ resourceVersion: '12' });
    expect((await get(routes, `${path}?resourceVersion=0`)).body).toMatchObject({ totalItems: 2 });
    for (const [query, code] of [
      ['resourceVersion=x', 400],
      ['resourceVersion=12&resourceVersionMatch=Exact', 400],
      ['resourceVersionMatch=NotOlderThan', 422],
      ['resourceVersion=1&resourceVersionMatch=Bogus', 422],
      ['sendInitialEvents=true', 422],
    ] as const)
      expect(await refused(routes, `${path}?${query}`)).toMatchObject({ code });
  });

  test('a list of cached objects has no items if limit is 0 or no object matches', async () => {
    expect((await get(routes, `${path}?limit=0`)).body.items).toEqual([]);
    expect((await get(routes, `${path}?name=x&managedFields=true`)).body).toMatchObject({ items: [], totalItems: 0 });
  });

  test('a list of cached objects contains managedFields on request', async () => {
    const { items } = (await get(routes, `${path}?managedFields=true`)).body;
    expect(items.map(({ metadata }) => metadata)).toMatchObject([
      { name: 'b', managedFields: [{ manager: 'test', operation: 'Update' }] },
      { name: 'a', managedFields: [{ manager: 'test', operation: 'Update' }] },
    ]);
  });

  test('a list of cached objects contains the requested fields and the identifying fields of each object', async () => {
    const { body } = await get(routes, `${path}?fields=.spec,metadata.uid&sortBy=name&ascending=true`);
    expect(body).toEqual({
      kind: 'NodeList',
      apiVersion: 'v1',
      metadata: { resourceVersion: '10' },
      items: [item('a'), item('b')],
      totalItems: 2,
    });
    expect((await get(routes, `${path}?fields=spec&name=x`)).body).toMatchObject({ items: [], totalItems: 0 });
    expect((await get(routes, `${path}?fields=metadata.managedFields&managedFields=true&limit=1`)).body.items).toEqual([
      { kind: 'Node', apiVersion: 'v1', metadata: { name: 'b', managedFields: expect.any(Array) as unknown } },
    ]);
    expect((await get(routes, `${path}/a?fields=spec`)).body).toEqual({ ...item('a'), metadata: { name: 'a' } });
  });

  test('a list of cached objects is indented on request', async () => {
    const { text, body } = await get(routes, `${path}?pretty=true`);
    expect(text).toBe(JSON.stringify(body, null, 2));
  });

  test('a list of cached objects is not indented for curl', async () => {
    expect((await get(routes, path, { headers: { 'user-agent': 'curl/8' } })).text).not.toContain('\n');
  });

  test('a list of cached objects has no body in a response to HEAD', async () => {
    const { headers, text } = await get(routes, path, { method: 'HEAD' });
    expect(Number(headers['content-length'])).toBeGreaterThan(100);
    expect(text).toBe('');
  });

  test('a list of cached objects gets 406 for a client that does not accept JSON', async () => {
    expect(await refused(routes, path, { headers: { accept: 'text/html' } })).toMatchObject({ code: 406 });
  });

  test('a list of cached objects without the right to the underlying resource gets 403, even if the parameters are invalid', async () => {
    authorizer.allowed = false;
    const error = await refused(routes, `${path}?nonsense=1`);
    expect(error.toStatus()).toMatchObject({
      code: 403,
      reason: 'Forbidden',
      message: 'nodes is forbidden: User "alice" cannot list resource "nodes" in API group "" at the cluster scope',
    });
    expect(authorizer.reviews).toEqual([{ verb: 'list', group: '', resource: 'nodes', namespace: '', name: '' }]);
  });
});

describe('a single cached object', () => {
  test('a single cached object is found by its name', async () => {
    expect((await get(routes, `${path}/a`)).body).toMatchObject({ kind: 'Node', metadata: { name: 'a' } });
    expect(authorizer.reviews).toEqual([{ verb: 'get', group: '', resource: 'nodes', namespace: '', name: 'a' }]);
    const full = (await get(routes, `${path}/a?managedFields=true`)).body;
    expect(full.metadata).toHaveProperty('managedFields');
  });

  test('a single cached object that does not exist gets 404', async () => {
    expect((await refused(routes, `${path}/x`)).toStatus()).toMatchObject({
      code: 404,
      message: 'nodes "x" not found',
      details: { name: 'x', kind: 'nodes' },
    });
  });

  test('a request for a single cached object with a list parameter gets 400', async () => {
    expect(await refused(routes, `${path}/a?limit=1`)).toMatchObject({ code: 400 });
  });
});

/** Returns the server-sent event of this type for a node whose metadata contains only the name b. */
const data = (type: string): string =>
  `data: {"type":"${type}","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"b"}}}\n\n`;

describe('a watch of cached objects', () => {
  test('a watch of cached objects starts with the existing objects, in the format of the core API', async () => {
    const { response, abort, done } = call(routes, `${path}?watch=true&name=a`);
    await settle();
    expect(response.events).toMatchObject([
      { type: 'ADDED', object: { apiVersion: 'v1', metadata: { name: 'a', selfLink: '/api/v1/nodes/a' } } },
    ]);
    expect(authorizer.reviews).toMatchObject([{ verb: 'watch', resource: 'nodes' }]);
    abort();
    await done;
  });

  test('a watch of cached objects starts at the requested version or a later one', async () => {
    const { response, abort, done } = call(
      routes,
      `${path}?watch=true&name=a&fields=spec&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=11&allowWatchBookmarks=true`,
    );
    await settle();
    expect(response.headersSent).toBe(false);
    resource.store.apply('MODIFIED', node('a', { resourceVersion: 11, unschedulable: true }));
    await settle();
    expect(response.events).toMatchObject([
      { type: 'ADDED', object: { spec: { unschedulable: true } } },
      { type: 'BOOKMARK', object: { metadata: { resourceVersion: '11' } } },
    ]);
    abort();
    await done;
  });

  test('a watch of one cached object sends only changes of that object', async () => {
    const { response, abort, done } = call(routes, `${path}/b?watch=true&resourceVersion=10`);
    resource.store.apply('MODIFIED', node('a', { resourceVersion: 11 }));
    resource.store.apply('MODIFIED', node('b', { resourceVersion: 12 }));
    await settle();
    expect(response.events).toMatchObject([{ type: 'MODIFIED', object: { metadata: { name: 'b' } } }]);
    abort();
    await done;
  });

  test('concurrent watches of cached objects contain the fields that each caller requested', async () => {
    const all = ['', '&fields=metadata.uid', '&fields=spec'].map((fields) =>
      call(routes, `${path}?watch=true&resourceVersion=10${fields}`),
    );
    await settle();
    resource.store.apply('MODIFIED', node('a', { resourceVersion: 11 }));
    await settle();
    const named = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' } };
    expect(all.map(({ response }) => response.events[0])).toEqual([
      { type: 'MODIFIED', object: expect.objectContaining({ spec: {}, status: {} }) as unknown },
      { type: 'MODIFIED', object: { ...named, metadata: { name: 'a', uid: 'uid-a' } } },
      { type: 'MODIFIED', object: { ...named, spec: {} } },
    ]);
    for (const { abort, done } of all) {
      abort();
      await done;
    }
  });

  test('server-sent events of a watch of cached objects have an ID, and Last-Event-ID takes precedence over the URL', async () => {
    const accept = 'text/event-stream';
    const url = `${path}?watch=true&fields=metadata.name&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&name=b`;
    const first = call(routes, url, { headers: { accept } });
    await settle();
    resource.store.apply('MODIFIED', node('b', { resourceVersion: 11 }));
    await settle();
    resource.store.apply('MODIFIED', node('b', { resourceVersion: 12 }));
    const again = call(routes, url, { headers: { accept, 'last-event-id': '11' } });
    await settle();
    const events = first.response.text.split(/(?<=\n\n)/);
    expect(events[0]).toBe(data('ADDED'));
    expect(events[1]).toMatch(/^id: 10\ndata: \{"type":"BOOKMARK".*"k8s.io\/initial-events-end":"true"/);
    expect(events.slice(2)).toEqual([`id: 11\n${data('MODIFIED')}`, `id: 12\n${data('MODIFIED')}`]);
    expect(again.response.text).toBe(`id: 12\n${data('MODIFIED')}`);
    expect(again.response.headers).toMatchObject({ 'content-type': accept });
    for (const { abort, done } of [first, again]) {
      abort();
      await done;
    }
    expect(await refused(routes, url, { headers: { accept, 'last-event-id': 'x' } })).toMatchObject({ code: 400 });
    expect(await refused(routes, path, { headers: { accept } })).toMatchObject({
      code: 406,
      message:
        'only the following media types are accepted: application/json, application/yaml, with watch=true also text/event-stream',
    });
  });

  test('a watch of cached objects with limit gets 400', async () => {
    expect(await refused(routes, `${path}?watch=true&limit=1`)).toMatchObject({ code: 400 });
  });
});

describe('an incomplete cache', () => {
  beforeEach(() => {
    jest.useFakeTimers();
    resource.synced = false;
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test('a request waits for an incomplete cache for a limited time, and then gets 503 with Retry-After', async () => {
    const refusal = refused(routes, path);
    await jest.advanceTimersByTimeAsync(10_000);
    expect(await refusal).toMatchObject({ code: 503, reason: 'ServiceUnavailable', headers: { 'Retry-After': '1' } });
  });

  test('a request stops waiting for an incomplete cache when its caller disconnects', async () => {
    const { abort, done } = call(routes, path);
    await jest.advanceTimersByTimeAsync(10);
    abort();
    await expect(done).rejects.toThrow('aborted');
  });
});
