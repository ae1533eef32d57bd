import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Catalogue, type CacheHandle } from '../../../../src/cluster/catalogue/catalogue.ts';
import { nodes } from '../../../../src/resources/kinds/nodes.ts';
import type { DiscoveredResource } from '../../../../src/cluster/discovery.ts';
import { KubeError } from '../../../../src/cluster/client/kube-error.ts';
import { Topic } from '../../../../src/runtime/lifecycle.ts';
import { createLogger } from '../../../../src/runtime/logger.ts';
import {
  configMap,
  FakeClock,
  FakeCluster,
  listOf,
  settle,
  status,
  type FakeRequest,
} from '../../../labs/cluster-fakes.ts';

const serves = (name: string, more: Partial<DiscoveredResource> = {}): DiscoveredResource => ({
  group: '',
  version: 'v1',
  resource: name,
  singular: name.slice(0, -1),
  shortNames: [],
  kind: name.slice(0, -1),
  namespaced: true,
  verbs: ['create', 'get', 'list', 'watch'],
  revision: '',
  ...more,
});

/** Resolves a name that several resources share to the first group and version. */
class FakeDiscovery {
  resources: readonly DiscoveredResource[] = [
    serves('configmaps'),
    serves('pods'),
    serves('secrets'),
    serves('events'),
    serves('events', { group: 'events.k8s.io' }),
    serves('nodes', { namespaced: false }),
    serves('componentstatuses', { verbs: ['get', 'list'] }),
    serves('tokenreviews', { verbs: ['create'] }),
    serves('deployments', { group: 'apps', shortNames: ['deploy'] }),
    serves('deployments', { group: 'apps', version: 'v1beta1' }),
    serves('sessions', { group: 'iam.platform.io' }),
    serves('gizmos', { group: 'x.example.com', revision: '1' }),
  ];
  synced = true;

  hasSynced = (): boolean => this.synced;
  waitForSync = (signal: AbortSignal): Promise<void> =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  readonly changed = new Topic();
  resolve = (name: string): DiscoveredResource | undefined =>
    this.resources.find((one) => one.resource === name) ??
    this.resources.find((one) => `${one.resource}.${one.group}` === name);
  find = (of: DiscoveredResource): DiscoveredResource | undefined =>
    this.resources.find((one) => one.resource === of.resource && one.group === of.group && one.version === of.version);
  become(name: string, change: Partial<DiscoveredResource> | undefined): void {
    this.resources = this.resources.flatMap((one) => {
      if (one.resource !== name) return [{ ...one }];
      return change === undefined ? [] : [{ ...one, ...change }];
    });
    this.changed.publish();
  }
}

const never = new AbortController().signal;
let cluster: FakeCluster;
let clock: FakeClock;
let discovery: FakeDiscovery;
let allowed: boolean | Error;
let reviews: number;
let limits: { maxBytes: number; idle: number };
let catalogue: Catalogue;
const known: string[] = [];
beforeEach(() => {
  cluster = new FakeCluster();
  clock = new FakeClock();
  discovery = new FakeDiscovery();
  allowed = true;
  reviews = 0;
  limits = { maxBytes: 1_000_000, idle: 600_000 };
  catalogue = new Catalogue({
    client: cluster,
    discovery,
    rights: {
      async mayListAndWatch() {
        reviews += 1;
        if (allowed instanceof Error) throw allowed;
        return allowed;
      },
      forget: () => undefined,
    },
    limits: () => limits,
    kinds: [],
    registerResource: (name) => known.push(name),
    log: createLogger({ silent: true }),
    clock,
  });
  catalogue.start();
});
afterEach(() => catalogue.stop());

const use = async (name: string): Promise<CacheHandle | undefined> =>
  catalogue.acquire(await catalogue.find(name, never));

async function started(name: string): Promise<{ use: CacheHandle; upstream: FakeRequest }> {
  const found = await use(name);
  if (found === undefined) throw new Error(`${name} is not copied`);
  await settle();
  return { use: found, upstream: cluster.last };
}

/** Waits for the first list and returns the error, if any. */
const refusal = async ({ resource: cached }: CacheHandle): Promise<unknown> => {
  try {
    return await cached.waitForSync(never);
  } catch (error) {
    return error;
  }
};

const ofSize = (name: string, size: number, version: number): object =>
  configMap(name, String(version), { filler: 'x'.repeat(size) });
const added = (...of: Parameters<typeof ofSize>): object => ({ type: 'ADDED', object: ofSize(...of) });

describe('a resource name', () => {
  test('a resource name resolves to the same group and version as in the cluster', async () => {
    const { definition } = await catalogue.find('deployments', never);
    expect(definition).toMatchObject({
      kind: 'deployment',
      namespaced: true,
      underlying: { group: 'apps', version: 'v1', resource: 'deployments' },
    });
    expect(await catalogue.find('deployments', never)).toBe(await catalogue.find('deployments', never));
  });

  test('an unknown resource name gets 404', async () => {
    await expect(catalogue.find('gadgets', never)).rejects.toMatchObject({ code: 404 });
  });

  test('a resource name cannot be resolved before discovery has succeeded', async () => {
    discovery.synced = false;
    const gone = new AbortController();
    const finding = catalogue.find('pods', gone.signal);
    gone.abort(new Error('gone'));
    await expect(finding).rejects.toThrow('gone');
  });
});

/** Returns a complete cache whose watch gets 403 from a restarted kube-apiserver that has not loaded RBAC yet. */
async function refusedAtStart(): Promise<CacheHandle> {
  const { use: used } = await started('pods');
  const upstream = await cluster.list([ofSize('a', 10, 5)], '7');
  await used.resource.waitForSync(never);
  await upstream.reset();
  await clock.advance(500);
  await cluster.last.respond(403, status(403, 'Forbidden'));
  return used;
}

describe('the cache of a resource', () => {
  test('the cache of a resource is created once at the first use, and is complete after the list', async () => {
    const { use: first } = await started('configmaps');
    const second = await use('configmaps');
    expect(second?.resource).toBe(first.resource);
    expect(reviews).toBe(1);
    expect(known).toContain('configmaps');
    expect(cluster.requests.map(({ path }) => path)).toEqual(['/api/v1/configmaps']);
    await cluster.list([ofSize('a', 10, 5)], '7');
    await first.resource.waitForSync(never);
    expect(first.resource.store.get('default', 'a')?.name).toBe('a');
    expect(catalogue.figures().get('configmaps')).toMatchObject({ objects: 1 });
  });

  test.each(['secrets', 'componentstatuses', 'sessions'])(
    'the cache of a resource is not created for %s',
    async (name) => {
      expect(await use(name)).toBeUndefined();
      expect(reviews).toBe(0);
    },
  );

  test('the cache of a resource is not created if this server is not allowed to read the resource or cannot check its permission', async () => {
    allowed = false;
    expect(await use('pods')).toBeUndefined();
    allowed = new KubeError(0, {});
    await expect(use('pods')).rejects.toMatchObject({ code: 503 });
    expect(cluster.requests).toEqual([]);
  });

  test('the permanent cache of a resource is created at startup and never removed', async () => {
    const kept = catalogue.cachePermanently(nodes);
    kept.start();
    await settle();
    expect(cluster.last.path).toBe('/api/v1/nodes');
    expect((await use('nodes'))?.resource).toBe(kept);
    expect((await catalogue.find('nodes', never)).definition).toBe(nodes);
    await clock.advance(3_600_000);
    expect((await use('nodes'))?.resource).toBe(kept);
  });

  test('the cache of a resource is not removed while it is in use', async () => {
    const { use: first } = await started('configmaps');
    const second = await use('configmaps');
    first.release();
    first.release();
    await clock.advance(1_000_000);
    expect(second?.resource.ended?.aborted).toBe(false);
    second?.release();
    await clock.advance(1_000_000);
    expect(second?.resource.ended?.aborted).toBe(true);
  });

  test('the cache of a resource is removed after ten minutes without use, and created again at the next use', async () => {
    const { use: used } = await started('configmaps');
    used.release();
    await clock.advance(599_000);
    expect(used.resource.ended?.aborted).toBe(false);
    await clock.advance(31_000);
    expect(used.resource.ended?.aborted).toBe(true);
    const { use: next } = await started('configmaps');
    expect(next.resource).not.toBe(used.resource);
  });

  test('the cache of a resource is removed when the definition of the resource is deleted', async () => {
    const { use: used } = await started('gizmos');
    const waiting = refusal(used);
    discovery.become('gizmos', {});
    expect(used.resource.ended?.aborted).toBe(false);
    discovery.become('gizmos', { revision: '2' });
    expect(used.resource.ended?.aborted).toBe(true);
    expect(await waiting).toMatchObject({ code: 503 });
    const { use: next } = await started('gizmos');
    const missing = refusal(next);
    discovery.become('gizmos', undefined);
    expect(await missing).toMatchObject({ code: 404 });
    await expect(use('gizmos')).rejects.toMatchObject({ code: 404 });
  });

  test('the cache of a resource is not created if the definition of the resource changes in the meantime', async () => {
    const entry = await catalogue.find('gizmos', never);
    const using = catalogue.acquire(entry);
    discovery.become('gizmos', { revision: '2' });
    await expect(using).rejects.toMatchObject({ code: 503 });
    expect(await use('gizmos')).toBeDefined();
  });

  test.each([403, 404, 405])(
    'the cache of a resource is not available when kube-apiserver rejects the list with %i',
    async (code) => {
      const { use: used, upstream } = await started('pods');
      const waiting = refusal(used);
      await upstream.respond(code, status(code, 'Whatever'));
      expect(await waiting).toMatchObject({ code: 503 });
      expect(await use('pods')).toBeUndefined();
      await clock.advance(5_000);
      expect(await use('pods')).toBeDefined();
    },
  );

  test('the cache of a resource survives a 403 from a kube-apiserver that is starting', async () => {
    const used = await refusedAtStart();
    allowed = new KubeError(403, { reason: 'Forbidden' });
    await clock.advance(2_000);
    expect(reviews).toBe(2);
    allowed = true;
    await cluster.last.respond(403, status(403, 'Forbidden'));
    await clock.advance(2_000);
    expect(reviews).toBe(3);
    expect(used.resource.ended?.aborted).toBe(false);
    expect((await use('pods'))?.resource).toBe(used.resource);
    expect(used.resource.store.get('default', 'a')?.name).toBe('a');
  });

  test('the cache of a resource survives two starts of kube-apiserver within a minute', async () => {
    const used = await refusedAtStart();
    await clock.advance(2_000);
    const upstream = cluster.last;
    await upstream.open();
    await upstream.reset();
    await clock.advance(5_000);
    expect(cluster.last).not.toBe(upstream);
    await cluster.last.respond(403, status(403, 'Forbidden'));
    expect(used.resource.ended?.aborted).toBe(false);
    await clock.advance(2_000);
    expect(used.resource.ended?.aborted).toBe(false);
  });

  test('the cache of a resource survives when kube-apiserver accepts the watch during the access review and restarts within a minute', async () => {
    const used = await refusedAtStart();
    await clock.advance(1_000);
    const upstream = cluster.last;
    await upstream.open();
    await clock.advance(20_000);
    expect(reviews).toBe(2);
    await upstream.reset();
    await clock.advance(5_000);
    expect(cluster.last).not.toBe(upstream);
    await cluster.last.respond(403, status(403, 'Forbidden'));
    expect(used.resource.ended?.aborted).toBe(false);
  });

  test('the cache of a resource is removed when an access review after a 403 confirms that the permission was revoked', async () => {
    const used = await refusedAtStart();
    allowed = false;
    await clock.advance(1_999);
    expect(used.resource.ended?.aborted).toBe(false);
    await clock.advance(1);
    expect(used.resource.ended?.reason).toMatchObject({ code: 503 });
    expect(await use('pods')).toBeUndefined();
  });

  test('the cache of a resource is removed when the 403 persists after an access review that allowed the watch', async () => {
    const used = await refusedAtStart();
    await clock.advance(2_000);
    expect(used.resource.ended?.aborted).toBe(false);
    await cluster.last.respond(403, status(403, 'Forbidden'));
    expect(used.resource.ended?.reason).toMatchObject({ code: 503 });
    const { use: next, upstream } = await started('pods');
    expect(next.resource).not.toBe(used.resource);
    await upstream.respond(403, status(403, 'Forbidden'));
    expect(await use('pods')).toBeUndefined();
  });

  test('a request for the cache of a resource gets 503 while kube-apiserver rejects access reviews from this server', async () => {
    allowed = new KubeError(403, { reason: 'Forbidden' });
    await expect(use('pods')).rejects.toMatchObject({ code: 503, headers: { 'Retry-After': '1' } });
  });

  test('the cache of a resource is not available for objects without a resourceVersion', async () => {
    const { use: used, upstream } = await started('pods');
    const waiting = refusal(used);
    await upstream.respond(200, listOf([{ metadata: { name: 'a' } }], { resourceVersion: '7' }));
    expect(await waiting).toMatchObject({ code: 503 });
    expect(await use('pods')).toBeUndefined();
  });
});

describe('cache memory', () => {
  test('cache memory is counted while the first list arrives', async () => {
    const { use: used, upstream } = await started('configmaps');
    const waiting = refusal(used);
    const page = listOf([ofSize('a', 600_000, 1), ofSize('b', 600_000, 2)], { resourceVersion: '2', continue: 'next' });
    await upstream.respond(200, page);
    expect(await waiting).toMatchObject({
      code: 503,
      message: expect.stringMatching(/^configmaps does not fit .*cache\.maxBytes/) as unknown,
    });
    expect(cluster.last.signal?.aborted).toBe(true);
    // The rejection is cached for further callers.
    await expect(use('configmaps')).rejects.toMatchObject({ code: 503, headers: { 'Retry-After': '30' } });
    expect(cluster.requests).toHaveLength(2);
    expect(catalogue.warning()).toMatch(/^configmaps does not fit .*cache\.maxBytes/);
    limits = { ...limits, maxBytes: 2_000_000 };
    expect(catalogue.warning()).toBe('');
    expect(await use('configmaps')).toBeDefined();
  });

  test('cache memory that was exceeded by a resource is reported for ten minutes', async () => {
    const { use: used, upstream } = await started('configmaps');
    const waiting = refusal(used);
    await upstream.respond(200, listOf([ofSize('a', 2_000_000, 1)], { resourceVersion: '1' }));
    await waiting;
    await clock.advance(9 * 60_000);
    expect(catalogue.warning()).toMatch(/^configmaps does not fit/);
    await clock.advance(2 * 60_000);
    expect(catalogue.warning()).toBe('');
  });

  test('cache memory counts only the last attempt to list a resource', async () => {
    const { upstream } = await started('configmaps');
    const items = [ofSize('a', 600_000, 1)];
    await upstream.respond(200, listOf(items, { resourceVersion: '3', continue: 'next' }));
    await cluster.last.fail(new Error('read ECONNRESET'));
    await clock.advance(1_000);
    await cluster.last.respond(200, listOf(items, { resourceVersion: '3' }));
    expect(catalogue.figures().get('configmaps')).toMatchObject({ objects: 1 });
    // The memory of the first attempt is available again.
    const { use: other, upstream: more } = await started('events');
    await more.respond(200, listOf([ofSize('a', 300_000, 1)], { resourceVersion: '1' }));
    expect(other.resource.ended?.aborted).toBe(false);
  });

  test('cache memory is released from the least recently used cache, and never from a cache in use', async () => {
    const sizes = async (name: string): Promise<CacheHandle> => {
      const { use: used } = await started(name);
      await cluster.list([ofSize('a', 400_000, 1)], '2');
      return used;
    };
    const first = await sizes('configmaps');
    const second = await sizes('events');
    first.release();
    await clock.advance(1_000);
    second.release();
    const third = await sizes('pods');
    expect([first, second].map((one) => one.resource.ended?.aborted)).toEqual([true, false]);
    const held = await use('events');
    const { use: last, upstream } = await started('gizmos');
    await upstream.respond(200, listOf([ofSize('a', 400_000, 1)], { resourceVersion: '1' }));
    expect(last.resource.ended?.aborted).toBe(true);
    expect(held?.resource.ended?.aborted).toBe(false);
    expect(third.resource.ended?.aborted).toBe(false);
  });

  test('cache memory is counted as a cache grows', async () => {
    const { use: used } = await started('configmaps');
    const upstream = await cluster.list([ofSize('a', 600_000, 1)], '2');
    await upstream.send({ type: 'DELETED', object: configMap('a', '3') });
    await upstream.send(added('b', 600_000, 4));
    expect(used.resource.ended?.aborted).toBe(false);
    await upstream.send(added('c', 600_000, 5));
    expect(used.resource.ended?.aborted).toBe(true);
  });
});

test('discovery lists each readable resource once, under a name that resolves to the resource', () => {
  const names = catalogue.apiResources.map(({ name }) => name);
  expect(names).toEqual([
    'configmaps',
    'pods',
    'secrets',
    'events',
    'events.events.k8s.io',
    'nodes',
    'componentstatuses',
    'deployments',
    'sessions',
    'gizmos',
  ]);
  expect(catalogue.apiResources).toBe(catalogue.apiResources);
  expect(catalogue.apiResources.find(({ name }) => name === 'deployments')).toEqual({
    name: 'deployments',
    singularName: 'deployment',
    namespaced: true,
    kind: 'deployment',
    verbs: ['get', 'list', 'watch'],
    shortNames: ['deploy'],
  });
});
