import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { CachedResource } from '../../../../src/cluster/catalogue/cached-resource.ts';
import { nodes as definition, type NodeFields } from '../../../../src/resources/kinds/nodes.ts';
import { createLogger } from '../../../../src/runtime/logger.ts';
import { bookmark, FakeClock, FakeCluster, settle, status, type FakeRequest } from '../../../labs/cluster-fakes.ts';
import { nodeObject } from '../../../labs/resources.ts';

let cluster: FakeCluster;
let clock: FakeClock;
let nodes: CachedResource<NodeFields>;
/** The open watch. */
let upstream: FakeRequest;
const never = new AbortController().signal;

beforeEach(async () => {
  cluster = new FakeCluster();
  clock = new FakeClock();
  nodes = new CachedResource(definition, { client: cluster, log: createLogger({ silent: true }), clock });
  nodes.start();
  await settle();
});
afterEach(() => nodes.stop(new Error('the test is over')));

const event = (type: string, name: string, resourceVersion: number): unknown => ({
  type,
  object: nodeObject(name, { resourceVersion }),
});

async function sync(): Promise<void> {
  upstream = await cluster.list(
    [nodeObject('a', { resourceVersion: 5 }), nodeObject('b', { resourceVersion: 6 })],
    '10',
  );
}

/** Reports whether a promise has been fulfilled by now. */
const isKept = (promise: Promise<unknown>): Promise<boolean> =>
  Promise.race([promise.then(() => true), settle().then(() => false)]);

/** Returns the rejection reason of a promise. */
const broken = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

const list = (resourceVersion: string): unknown => ({
  kind: 'PartialObjectMetadataList',
  metadata: { resourceVersion },
  items: [],
});

async function afterTurns(turns: number, run: () => Promise<void>): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await nextTurn();
  await run();
}

describe('a cached resource', () => {
  test('a cached resource is complete after the first list, and reports its contents', async () => {
    const waiting = nodes.waitForSync(never);
    expect(nodes.hasSynced()).toBe(false);
    expect(nodes.figures()).toEqual({ objects: 0, bytes: 0, lastSignOfLife: 0 });
    await expect(nodes.waitForSync(AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
    await sync();
    await waiting;
    expect(nodes.hasSynced()).toBe(true);
    expect(nodes.figures()).toMatchObject({ objects: 2, lastSignOfLife: clock.now() });
    expect(nodes.figures().bytes).toBeGreaterThan(300);
    expect(upstream.path).toBe('/api/v1/nodes');
  });

  test('a cached resource is confirmed as current at once when the cluster has no newer version', async () => {
    await sync();
    const confirming = nodes.confirm(never);
    expect(cluster.last.query).toEqual({ limit: 1 });
    await cluster.last.respond(200, list('10'));
    expect(await isKept(confirming)).toBe(true);
  });

  test('a cached resource waits exactly until it has received a change that the cluster already has', async () => {
    await sync();
    const confirming = nodes.confirm(never);
    await cluster.last.respond(200, list('11'));
    expect(await isKept(confirming)).toBe(false);
    await upstream.send(event('MODIFIED', 'a', 11));
    expect(await isKept(confirming)).toBe(true);
    expect(nodes.store.get('', 'a')?.resourceVersion).toBe(11);
  });

  test('a cached resource is confirmed as current after 50 ms without events on an open watch, even if the cluster has a newer version', async () => {
    await sync();
    const confirming = nodes.confirm(never);
    await cluster.last.respond(200, list('500'));
    await clock.advance(49);
    expect(await isKept(confirming)).toBe(false);
    await clock.advance(1);
    expect(await isKept(confirming)).toBe(true);
  });

  test.each([
    ['an event arrives', () => upstream.send(event('MODIFIED', 'a', 11))],
    [
      'the watch is opened again',
      async () => {
        await upstream.end();
        await cluster.last.open();
      },
    ],
  ])('a cached resource is not confirmed as current within 50 ms if %s in the meantime', async (_, happens) => {
    await sync();
    await clock.advance(1_000);
    const confirming = nodes.confirm(never);
    await cluster.last.respond(200, list('500'));
    await clock.advance(49);
    await happens();
    await clock.advance(1);
    expect(await isKept(confirming)).toBe(false);
    await clock.advance(50);
    expect(await isKept(confirming)).toBe(true);
  });

  test('a cached resource is not confirmed as current if an event arrives in the same turn as the end of the 50 ms', async () => {
    await sync();
    await clock.advance(1_000);
    clock.after(50, () => void afterTurns(3, () => upstream.send(event('MODIFIED', 'a', 11))));
    const confirming = nodes.confirm(never);
    await cluster.last.respond(200, list('500'));
    await clock.advance(50);
    expect(await isKept(confirming)).toBe(false);
    await clock.advance(50);
    expect(await isKept(confirming)).toBe(true);
  });

  test('a cached resource is not confirmed as current while its watch is interrupted', async () => {
    await sync();
    const confirming = nodes.confirm(never);
    const request = cluster.last;
    await upstream.reset();
    await request.respond(200, list('500'));
    await clock.advance(300);
    expect(await isKept(confirming)).toBe(false);
    await clock.advance(200);
    await cluster.last.open();
    await clock.advance(100);
    expect(await isKept(confirming)).toBe(true);
  });

  test('a cached resource returns an error to waiting callers when its watch stays interrupted', async () => {
    await sync();
    const refusal = broken(nodes.confirm(never));
    const request = cluster.last;
    await upstream.reset();
    await request.respond(200, list('500'));
    for (let i = 0; i < 220; i += 1) await clock.advance(50);
    expect(await refusal).toMatchObject({
      message: 'kube-apiserver cannot be reached: the watch of /api/v1/nodes was interrupted',
    });
  });

  test('a cached resource sends one request for all callers that arrive during the previous request', async () => {
    await sync();
    const before = cluster.requests.length;
    const first = nodes.confirm(never);
    const others = [nodes.confirm(never), nodes.confirm(never)];
    expect(cluster.requests).toHaveLength(before + 1);
    await cluster.last.respond(200, list('10'));
    expect(await isKept(first)).toBe(true);
    expect(cluster.requests).toHaveLength(before + 2);
    await cluster.last.respond(200, list('10'));
    await Promise.all(others);
    expect(cluster.requests).toHaveLength(before + 2);
  });

  test('a cached resource sends one request for all callers that wait for the same object', async () => {
    await sync();
    const before = cluster.requests.length;
    const first = nodes.confirmObject('', 'a', never);
    const others = [nodes.confirmObject('', 'a', never), nodes.confirmObject('', 'a', never)];
    const request = cluster.last;
    const another = broken(nodes.confirmObject('', 'b', never));
    expect(cluster.requests).toHaveLength(before + 2);
    await cluster.last.respond(500, status(500, 'InternalError'));
    expect(await another).toMatchObject({ code: 500 });
    await request.respond(200, one('5'));
    await first;
    expect(cluster.requests).toHaveLength(before + 3);
    await cluster.last.respond(200, one('5'));
    await Promise.all(others);
    expect(cluster.requests).toHaveLength(before + 3);
  });

  test('a cached resource reports a failed request to the cluster only to the callers that wait for it', async () => {
    await sync();
    const first = broken(nodes.confirm(never));
    const second = nodes.confirm(never);
    await cluster.last.respond(500, status(500, 'InternalError'));
    expect(await first).toMatchObject({ code: 500 });
    await cluster.last.respond(200, list('10'));
    await second;
  });

  test('a cached resource restarts the watch if the requested resourceVersion does not arrive over the open watch', async () => {
    await sync();
    const reaching = nodes.reach(500, never);
    await cluster.last.respond(200, list('501'));
    await clock.advance(50);
    expect(upstream.signal?.aborted).toBe(true);
    expect(cluster.last.query).toMatchObject({ watch: 'true', resourceVersion: '10', timeoutSeconds: 3 });
    expect(await isKept(reaching)).toBe(false);
    await cluster.last.open();
    await cluster.last.send(bookmark('501'));
    expect(await reaching).toBe(true);
  });

  test.each([
    ['is already cached', 10, '10'],
    ['is ahead of the cluster', 500, '499'],
    ['arrives over the open watch', 11, '11'],
  ])('a cached resource does not restart the watch when the version %s', async (_, version, latest) => {
    await sync();
    const limit = new AbortController();
    const reaching = nodes.reach(version, limit.signal);
    if (version > 10) await cluster.last.respond(200, list(latest));
    if (version === 11) await upstream.send(event('MODIFIED', 'a', 11));
    await clock.advance(100);
    limit.abort();
    expect(await reaching).toBe(version < 500);
    expect(upstream.signal?.aborted).toBe(false);
  });

  test('a cached resource extends its history back to a requested version if no change occurred since that version', async () => {
    await sync();
    const recalling = nodes.recall(8, never);
    expect(cluster.last.query).toEqual({ limit: 1 });
    await cluster.last.respond(200, list('12'));
    expect(cluster.last.query).toMatchObject({ watch: 'true', resourceVersion: 8 });
    await cluster.last.open();
    await cluster.last.send(bookmark('12'));
    await recalling;
    expect(nodes.store.history.since).toBe(8);
    expect(nodes.store.at(8)).toHaveLength(2);
  });

  test('a cached resource stops waiting for the cluster when the signal of the caller is aborted', async () => {
    await sync();
    const controller = new AbortController();
    const refusal = broken(nodes.confirm(controller.signal));
    controller.abort(new Error('gone'));
    expect(await refusal).toMatchObject({ message: 'gone' });
  });
});

const one = (resourceVersion: string): unknown => ({ kind: 'PartialObjectMetadata', metadata: { resourceVersion } });

describe('a single object in a cached resource', () => {
  test('a single object in a cached resource is confirmed as current by a request for its metadata only', async () => {
    await sync();
    const confirming = nodes.confirmObject('', 'a', never);
    expect(cluster.last.path).toBe('/api/v1/nodes/a');
    await cluster.last.respond(200, one('5'));
    expect(await isKept(confirming)).toBe(true);
  });

  test('a single object in a cached resource is awaited when the cluster has a newer version', async () => {
    await sync();
    const confirming = nodes.confirmObject('', 'a', never);
    await cluster.last.respond(200, one('12'));
    expect(await isKept(confirming)).toBe(false);
    await upstream.send(event('MODIFIED', 'a', 12));
    expect(await isKept(confirming)).toBe(true);
  });

  test('a single object in a cached resource is not awaited when neither the cluster nor the cache has the object', async () => {
    await sync();
    const confirming = nodes.confirmObject('', 'x', never);
    await cluster.last.respond(404, status(404, 'NotFound'));
    expect(await isKept(confirming)).toBe(true);
  });

  test('a single object in a cached resource is awaited until its deletion in the cluster arrives', async () => {
    await sync();
    const confirming = nodes.confirmObject('', 'a', never);
    await cluster.last.respond(404, status(404, 'NotFound'));
    await cluster.last.respond(200, list('12'));
    expect(await isKept(confirming)).toBe(false);
    await upstream.send(event('DELETED', 'a', 12));
    await clock.advance(50);
    expect(await isKept(confirming)).toBe(true);
    expect(nodes.store.get('', 'a')).toBeUndefined();
  });

  test('a single object in a cached resource is not returned when the cluster rejects the request', async () => {
    await sync();
    const refusal = broken(nodes.confirmObject('', 'a', never));
    await cluster.last.respond(403, status(403, 'Forbidden'));
    expect(await refusal).toMatchObject({ code: 403 });
  });
});
