import { afterEach, describe, expect, test } from '@jest/globals';
import { membersOfObject } from '../../../../src/cluster/cache/json-scan.ts';
import { Reflector } from '../../../../src/cluster/cache/reflector.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { bookmark, configMap, FakeClock, FakeCluster, listOf, settle, status } from '../../../labs/cluster-fakes.ts';

interface Lab {
  cluster: FakeCluster;
  clock: FakeClock;
  reflector: Reflector<string>;
  /** Calls that the reflector made to its callbacks, as text. */
  calls: string[];
  /** Log lines. */
  lines: () => string[];
}

const running: Reflector<string>[] = [];
afterEach(() => {
  for (const reflector of running.splice(0)) reflector.stop();
});

async function lab(options: { watchSeconds?: number; fieldSelector?: string } = {}): Promise<Lab> {
  const cluster = new FakeCluster();
  const clock = new FakeClock();
  const calls: string[] = [];
  const { log, lines } = logOfLines();
  const reflector = new Reflector<string>({
    client: cluster,
    path: '/api/v1/configmaps',
    log,
    clock,
    ...options,
    decode: (object, bytes, members) => {
      expect(object).toMatchObject(JSON.parse(bytes.toString()) as object);
      expect(members).toEqual(membersOfObject(bytes));
      return `${object.kind}/${object.metadata.name}@${object.metadata.resourceVersion}`;
    },
    replace: (items, version) => void calls.push(`replace ${items.join(',')} at ${version}`),
    apply: (type, item) => calls.push(`${type} ${item}`),
    bookmark: (version) => calls.push(`bookmark ${version}`),
  });
  running.push(reflector);
  reflector.start();
  await settle();
  return { cluster, clock, reflector, calls, lines };
}

const added = (name: string, version: string): unknown => ({ type: 'ADDED', object: configMap(name, version) });

const bare = (name: string, version: string): unknown => {
  const { metadata, data } = configMap(name, version, { text: 'a "quoted" {[\\' });
  return { metadata, data };
};

const sized = (name: string, kilobytes: number): unknown =>
  configMap(name, '6', { text: 'x'.repeat(kilobytes * 1024) });

/** A lab whose list is complete at resourceVersion 10, and whose watch is open. */
async function synced(options: { watchSeconds?: number } = {}): Promise<Lab> {
  const it = await lab(options);
  await it.cluster.list([bare('a', '5')], '10');
  it.calls.length = 0;
  // The watch is the first request that a test sees.
  it.cluster.requests.shift();
  return it;
}

describe('the first list of a reflector', () => {
  test('the first list of a reflector is read in pages, and a watch follows', async () => {
    const { cluster, reflector, calls } = await lab({ fieldSelector: 'metadata.name=a' });
    expect(cluster.last.path).toBe('/api/v1/configmaps');
    const fieldSelector = 'metadata.name=a';
    expect(cluster.last.query).toEqual({ fieldSelector, limit: 500 });
    await cluster.last.respond(200, listOf([bare('a', '5')], { resourceVersion: '10', continue: 'next' }));
    expect(cluster.last.query).toEqual({ fieldSelector, limit: 2000, continue: 'next' });
    expect(reflector.hasSynced()).toBe(false);
    await cluster.last.respond(200, listOf([configMap('b', '6')], { resourceVersion: '10' }));
    expect(calls).toEqual(['replace ConfigMap/a@5,ConfigMap/b@6 at 10']);
    expect(reflector.hasSynced()).toBe(true);
    const watch = { watch: 'true', allowWatchBookmarks: 'true', resourceVersion: '10', timeoutSeconds: 450 };
    expect(cluster.last.query).toEqual({ fieldSelector, ...watch });
    expect(reflector.isWatching()).toBe(false);
    await cluster.last.open();
    expect(reflector.isWatching()).toBe(true);
  });

  test('the first list of a reflector requests the next page before it decodes a page, and abandons it on an error', async () => {
    const { cluster, clock } = await lab();
    const malformed = { metadata: null };
    await cluster.last.respond(200, listOf([malformed], { resourceVersion: '10', continue: 'next' }));
    expect(cluster.last.query).toEqual({ limit: 2000, continue: 'next' });
    expect(cluster.last.signal?.aborted).toBe(true);
    await clock.advance(500);
    expect(cluster.last.query).toEqual({ limit: 500 });
  });

  test('the first list of a reflector requests pages of about 2 MB, and fewer objects when a page is larger than 8 MB', async () => {
    const { cluster, calls } = await lab();
    const page = { resourceVersion: '10', continue: 'next' };
    await cluster.last.respond(200, listOf([sized('a', 10)], page));
    for (const limit of [200, 50, 13, 4]) {
      expect(cluster.last.query).toEqual({ limit, continue: 'next' });
      await cluster.last.respond(200, listOf([sized('b', 17 * 1024)], page));
    }
    expect(cluster.last.query).toEqual({ limit: 1, continue: 'next' });
    await cluster.last.respond(200, listOf([sized('b', 17 * 1024)], page));
    expect(cluster.last.query).toEqual({ limit: 1, continue: 'next' });
    await cluster.last.respond(200, listOf([sized('c', 1)], page));
    expect(cluster.last.query).toEqual({ limit: 4, continue: 'next' });
    await cluster.last.respond(200, listOf([], page));
    expect(cluster.last.query).toEqual({ limit: 16, continue: 'next' });
    await cluster.last.respond(200, listOf([], { resourceVersion: '10' }));
    expect(calls).toEqual(['replace ConfigMap/a@6,ConfigMap/b@6,ConfigMap/c@6 at 10']);
  });

  test('the first list of a reflector is complete even without objects', async () => {
    const { cluster, calls } = await lab();
    await cluster.last.respond(200, { ...listOf([], { resourceVersion: '3' }), items: null });
    expect(calls).toEqual(['replace  at 3']);
  });

  test('the first list of a reflector starts again when its continue token expires between two pages', async () => {
    const { cluster, clock, calls } = await lab();
    await cluster.last.respond(200, listOf([bare('a', '5')], { resourceVersion: '10', continue: 'next' }));
    await cluster.last.respond(410, status(410, 'Expired'));
    await clock.advance(0);
    expect(cluster.last.query).toEqual({ limit: 500 });
    await cluster.last.respond(200, listOf([bare('b', '6')], { resourceVersion: '12' }));
    expect(calls).toEqual(['replace ConfigMap/b@6 at 12']);
  });

  test('the first list of a reflector is requested again after rejections, invalid data and refused connections', async () => {
    const { cluster, clock, reflector } = await lab();
    await cluster.last.respond(403, status(403, 'Forbidden'));
    await clock.advance(60_000);
    await cluster.last.respond(500, 'garbage');
    await clock.advance(60_000);
    await cluster.last.respond(200, { kind: 'Surprise' });
    await clock.advance(60_000);
    await cluster.last.fail(new Error('connect ECONNREFUSED'));
    await clock.advance(60_000);
    expect(cluster.requests).toHaveLength(5);
    expect(cluster.last.query).toEqual({ limit: 500 });
    expect(reflector.hasSynced()).toBe(false);
  });
});

describe('the watch of a reflector', () => {
  test('the watch of a reflector reports every change in order, however its lines are split', async () => {
    const { cluster, calls } = await synced();
    const text = Buffer.from(
      [
        added('ö', '11'),
        { type: 'MODIFIED', object: configMap('ö', '12', { text: '\n"}{' }) },
        { type: 'DELETED', object: configMap('ö', '13') },
        bookmark('20'),
      ]
        .map((event) => `${JSON.stringify(event)}\n`)
        .join(''),
    );
    for (let at = 0; at < text.length; at += 7) await cluster.last.sendBytes(text.subarray(at, at + 7));
    expect(calls).toEqual(['ADDED ConfigMap/ö@11', 'MODIFIED ConfigMap/ö@12', 'DELETED ConfigMap/ö@13', 'bookmark 20']);
  });

  test('the watch of a reflector continues immediately from the last resourceVersion when it ends', async () => {
    const { cluster, clock } = await synced();
    await cluster.last.send(added('b', '11'), bookmark('15'));
    await clock.advance(30_000);
    await cluster.last.end();
    expect(cluster.requests).toHaveLength(2);
    expect(cluster.last.query['resourceVersion']).toBe('15');
  });

  test('the watch of a reflector is delayed when the previous watch ended at once without events', async () => {
    const { cluster, clock } = await synced();
    await cluster.last.end();
    expect(cluster.requests).toHaveLength(1);
    await clock.advance(1000);
    expect(cluster.requests).toHaveLength(2);
  });

  test('the watch of a reflector continues from the last resourceVersion after its connection is reset', async () => {
    const { cluster, clock, reflector } = await synced();
    await cluster.last.send(added('b', '11'));
    await cluster.last.reset();
    expect(reflector.isWatching()).toBe(false);
    expect(cluster.requests).toHaveLength(1);
    await clock.advance(500);
    expect(cluster.last.query['resourceVersion']).toBe('11');
  });

  test.each([
    ['as an HTTP status', (it: Lab) => it.cluster.last.respond(410, status(410, 'Expired'))],
    [
      'as an event in the stream',
      async (it: Lab) => {
        await it.cluster.last.open();
        await it.cluster.last.send({ type: 'ERROR', object: status(410, 'Expired') });
      },
    ],
  ])(
    'the watch of a reflector starts with a new list when its resourceVersion has expired: 410 %s',
    async (_, expire) => {
      const it = await synced();
      await it.clock.advance(30_000);
      await it.cluster.last.end();
      await expire(it);
      await it.clock.advance(0);
      expect(it.cluster.last.query).toEqual({ limit: 500 });
      await it.cluster.last.respond(200, listOf([bare('c', '40')], { resourceVersion: '41' }));
      expect(it.calls).toEqual(['replace ConfigMap/c@40 at 41']);
      expect(it.reflector.hasSynced()).toBe(true);
    },
  );

  test('the watch of a reflector starts with a new list at once when its resourceVersion has expired during an outage', async () => {
    const { cluster, clock, calls } = await synced();
    await cluster.last.reset();
    for (let i = 0; i < 6; i += 1) {
      await clock.advance(30_000);
      await cluster.last.fail(new Error('connect ECONNREFUSED'));
    }
    await clock.advance(30_000);
    await cluster.last.respond(410, status(410, 'Expired'));
    await clock.advance(0);
    expect(cluster.last.query).toEqual({ limit: 500 });
    await cluster.last.respond(200, listOf([bare('b', '25')], { resourceVersion: '30' }));
    expect(calls).toEqual(['replace ConfigMap/b@25 at 30']);
  });

  test('the watch of a reflector that expires again directly after a list is followed by a list after a delay', async () => {
    const { cluster, clock } = await synced({ watchSeconds: 5 });
    await cluster.last.send({ type: 'ERROR', object: status(410, 'Expired') });
    await clock.advance(0);
    await cluster.last.respond(200, listOf([], { resourceVersion: '20' }));
    await cluster.last.respond(410, status(410, 'Expired'));
    await clock.advance(0);
    expect(cluster.last.query['resourceVersion']).toBe('20');
    await clock.advance(500);
    expect(cluster.last.query).toEqual({ limit: 500 });
  });

  test('the watch of a reflector is resumed at once when no bookmark arrives in time', async () => {
    const { cluster, clock } = await synced();
    await clock.advance(70_000);
    await cluster.last.send(bookmark('11'));
    await clock.advance(74_000);
    expect(cluster.last.signal?.aborted).toBe(false);
    await clock.advance(1000);
    expect(cluster.requests[0]?.signal?.aborted).toBe(true);
    await clock.advance(0);
    expect(cluster.last.query['resourceVersion']).toBe('11');
  });

  test('the watch of a reflector has the configured timeout, and is aborted after twice that time without events', async () => {
    const { cluster, clock, reflector } = await synced({ watchSeconds: 5 });
    expect(cluster.last.query['timeoutSeconds']).toBe(5);
    await clock.advance(5000);
    await cluster.last.end();
    await cluster.last.open();
    expect(reflector.lastSignOfLife()).toBe(clock.now());
    const { signal } = cluster.last;
    await clock.advance(10_000);
    expect(signal?.aborted).toBe(true);
  });

  test('the watch of a reflector is restarted once by requestBookmark(), with a short timeout so that a bookmark arrives soon', async () => {
    const { cluster, reflector, calls } = await synced();
    await cluster.last.send(added('b', '11'));
    reflector.requestBookmark();
    await settle();
    expect(cluster.requests[0]?.signal?.aborted).toBe(true);
    expect(cluster.last.query).toMatchObject({ resourceVersion: '11', timeoutSeconds: 3, allowWatchBookmarks: 'true' });
    await cluster.last.open();
    reflector.requestBookmark();
    await settle();
    await cluster.last.send(bookmark('20'));
    expect(calls.at(-1)).toBe('bookmark 20');
    expect(cluster.requests).toHaveLength(2);
    await cluster.last.end();
    expect(cluster.last.query['resourceVersion']).toBe('20');
    expect(cluster.last.query['timeoutSeconds']).toBeGreaterThanOrEqual(300);
  });

  test('the watch of a reflector is not restarted by requestBookmark() while the watch is interrupted', async () => {
    const { cluster, reflector } = await synced();
    await cluster.last.reset();
    reflector.requestBookmark();
    await settle();
    expect(cluster.requests).toHaveLength(1);
  });

  test('the watch of a reflector starts with a new list after a callback fails', async () => {
    const { cluster, clock } = await synced();
    await cluster.last.sendBytes(Buffer.from('{"type":"ADDED","object":{}}\n'));
    await clock.advance(1000);
    expect(cluster.requests).toHaveLength(2);
    expect(cluster.last.query).toEqual({ limit: 500 });
  });
});

/** Returns the delays after this many consecutive failures. */
async function delaysOf({ cluster, clock }: Lab, failures: number): Promise<number[]> {
  await cluster.last.reset();
  const delays: number[] = [];
  for (let i = 0; i < failures; i += 1) {
    const [wait = 0] = clock.pending();
    delays.push(wait);
    await clock.advance(wait);
    await cluster.last.fail(new Error('connect ECONNREFUSED'));
  }
  return delays;
}

test('the delay of a reflector doubles with consecutive failures up to 30 s, and resets after a success', async () => {
  const it = await synced();
  expect(await delaysOf(it, 9)).toEqual([375, 750, 1500, 3000, 6000, 12_000, 22_500, 22_500, 22_500]);
  await it.clock.advance(22_500);
  await it.cluster.last.open();
  await it.cluster.last.send(bookmark('12'));
  expect(await delaysOf(it, 1)).toEqual([375]);
});

test('the delay of a reflector after consecutive failures is at most the configured length of a watch', async () => {
  expect(await delaysOf(await synced({ watchSeconds: 5 }), 6)).toEqual([375, 750, 1500, 3000, 3750, 3750]);
});

test.each([
  [429, 'TooManyRequests', 'info'],
  [500, 'InternalError', 'warn'],
])('the response %i to a reflector is logged, and the request is repeated', async (code, reason, level) => {
  const { cluster, clock, lines } = await lab();
  await cluster.last.respond(code, status(code, reason));
  expect(JSON.parse(lines().at(-1) ?? '')).toMatchObject({ level, path: '/api/v1/configmaps' });
  await clock.advance(500);
  expect(cluster.requests).toHaveLength(2);
});

test('stopping a reflector during a list aborts the request for the next page, and leaves no timer', async () => {
  const { cluster, clock, reflector, calls } = await lab();
  await cluster.last.respond(200, listOf([bare('a', '5')], { resourceVersion: '10', continue: 'next' }));
  expect(cluster.last.signal?.aborted).toBe(false);
  reflector.stop();
  await settle();
  expect(cluster.last.signal?.aborted).toBe(true);
  expect(clock.pending()).toEqual([]);
  expect(cluster.requests).toHaveLength(2);
  expect(calls).toEqual([]);
});

test('a reflector lists again when kube-apiserver sends no further data of a page for 75 s', async () => {
  const { cluster, clock, calls } = await lab();
  await cluster.last.respond(200, listOf([bare('a', '5')], { resourceVersion: '10', continue: 'next' }));
  await cluster.last.open();
  await clock.advance(75_000);
  expect(cluster.last.signal?.aborted).toBe(true);
  await clock.advance(1000);
  expect(cluster.last.query).toEqual({ limit: 500 });
  await cluster.last.respond(200, listOf([bare('b', '6')], { resourceVersion: '12' }));
  expect(calls).toEqual(['replace ConfigMap/b@6 at 12']);
});

test('stopping a reflector aborts its watch, and leaves no timer and no further request', async () => {
  const { cluster, clock, reflector } = await synced();
  reflector.stop();
  await settle();
  await clock.advance(600_000);
  expect(cluster.requests).toHaveLength(1);
  expect(cluster.last.signal?.aborted).toBe(true);
  expect(clock.pending()).toEqual([]);
});

test('a reflector records the time of the last data from the cluster, even if the data is only a response head', async () => {
  const { cluster, clock, reflector } = await lab();
  expect(reflector.lastSignOfLife()).toBe(0);
  await cluster.last.respond(200, listOf([], { resourceVersion: '4' }));
  await cluster.last.open();
  expect(reflector.lastSignOfLife()).toBe(clock.now());
  const started = clock.now();
  await clock.advance(10_000);
  expect(reflector.lastSignOfLife()).toBe(started);
  await cluster.last.send(added('a', '5'));
  expect(reflector.lastSignOfLife()).toBe(clock.now());
});
