import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { KubeRequest, KubeResponse } from '../../../src/cluster/client/client.ts';
import { Discovery } from '../../../src/cluster/discovery.ts';
import { unreachable } from '../../../src/cluster/client/kube-error.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { FakeClock, FakeRequest, listOf, settle } from '../../labs/cluster-fakes.ts';

interface Found {
  readonly resource: string;
  readonly kind?: string;
  readonly scope?: string;
}
interface Version {
  readonly version: string;
  readonly resources: readonly Found[];
  readonly freshness?: string;
}

const group = (name: string, ...versions: Version[]): object => ({
  metadata: { name },
  versions: versions.map(({ version, freshness = 'Current', resources }) => ({
    version,
    freshness,
    resources: resources.map(({ resource, kind = 'Thing', scope = 'Namespaced' }) => ({
      resource,
      responseKind: kind === '' ? undefined : { group: name, version, kind },
      scope,
      singularResource: '',
      shortNames: ['x'],
      verbs: ['get', 'list', 'watch'],
    })),
  })),
});
const aggregated = (...items: object[]): object => ({ kind: 'APIGroupDiscoveryList', items });

const core = group('', { version: 'v1', resources: [{ resource: 'pods', kind: 'Pod' }, { resource: 'events' }] });
const events = group('events.k8s.io', { version: 'v1', resources: [{ resource: 'events' }] });
const apps = group(
  'apps',
  { version: 'v1', resources: [{ resource: 'deployments', kind: 'Deployment' }] },
  { version: 'v1beta1', resources: [{ resource: 'deployments' }, { resource: 'scales' }] },
);

/** Responds with the discovery documents. The test controls the lists and watches of definitions and APIServices. */
class Cluster {
  documents: Record<string, object | undefined> = { '/api': aggregated(core), '/apis': aggregated(apps, events) };
  readonly requests: { path: string; headers: KubeRequest['headers']; status: number }[] = [];
  readonly #held: FakeRequest[] = [];

  async stream(path: string, options: KubeRequest = {}): Promise<KubeResponse> {
    if (options.query !== undefined)
      return await new Promise((resolve, reject) => {
        this.#held.push(new FakeRequest(path, options, resolve, reject));
      });
    const document = this.documents[path];
    if (document === undefined) throw unreachable(new Error('no response'));
    const body = JSON.stringify(document);
    const etag = `"${hash('sha256', body)}"`;
    const status = options.headers?.['if-none-match'] === etag ? 304 : 200;
    this.requests.push({ path, headers: options.headers, status });
    return { status, headers: { etag }, body: Readable.from(status === 304 ? [] : [Buffer.from(body)]) };
  }

  /** Responds to the list of a resource, and opens the watch that follows. Returns the request of the watch. */
  async list(resource: string, items: readonly object[]): Promise<FakeRequest> {
    await this.#last(resource).respond(200, listOf(items, { resourceVersion: '1' }));
    const watch = this.#last(resource);
    await watch.open();
    return watch;
  }

  #last(resource: string): FakeRequest {
    const found = this.#held.findLast((request) => request.path.endsWith(resource));
    if (found === undefined) throw new Error(`${resource} are not listed`);
    return found;
  }
}

let clock: FakeClock;
let cluster: Cluster;
let discovery: Discovery;
beforeEach(async () => {
  clock = new FakeClock();
  cluster = new Cluster();
  discovery = new Discovery({ client: cluster, log: createLogger({ silent: true }), clock });
});
afterEach(() => discovery.stop());

/** Waits for the first discovery request after a change, and for its two responses. */
async function soon(): Promise<void> {
  await clock.advance(50);
  await settle();
}

async function start(): Promise<void> {
  discovery.start();
  await clock.advance(0);
}

const gvr = (name: string): string | undefined => {
  const found = discovery.resolve(name);
  return found && `${found.group}/${found.version}/${found.resource}`;
};

describe('the resource name', () => {
  test.each([
    ['pods', '/v1/pods'],
    ['pods.v1.', '/v1/pods'],
    ['events', '/v1/events'],
    ['events.events.k8s.io', 'events.k8s.io/v1/events'],
    ['events.v1.events.k8s.io', 'events.k8s.io/v1/events'],
    ['deployments', 'apps/v1/deployments'],
    ['deployments.apps', 'apps/v1/deployments'],
    ['deployments.v1beta1.apps', 'apps/v1beta1/deployments'],
    ['scales.apps', 'apps/v1beta1/scales'],
    ['pod', undefined],
    ['Pods', undefined],
    ['deployments.batch', undefined],
    ['deployments.v2.apps', undefined],
    ['deployments.', undefined],
    ['.apps', undefined],
    ['__proto__', undefined],
  ])('the resource name %s resolves to %s', async (name, expected) => {
    await start();
    expect(gvr(name)).toBe(expected);
  });
});

test('a resource has the properties that discovery reports', async () => {
  await start();
  expect(discovery.resolve('pods')).toEqual({
    group: '',
    version: 'v1',
    resource: 'pods',
    singular: 'pod',
    shortNames: ['x'],
    kind: 'Pod',
    namespaced: true,
    verbs: ['get', 'list', 'watch'],
    revision: '',
  });
  expect(discovery.find({ group: 'apps', version: 'v1', resource: 'deployments' })?.kind).toBe('Deployment');
});

test('an entry of discovery that has only subresources is not a resource', async () => {
  cluster.documents['/apis'] = aggregated(group('x', { version: 'v1', resources: [{ resource: 'things', kind: '' }] }));
  await start();
  expect(discovery.resolve('things')).toBeUndefined();
});

test('a discovery document in another format is not treated as an empty document', async () => {
  await start();
  cluster.documents['/apis'] = { kind: 'APIGroupList', groups: [] };
  await clock.advance(80_000);
  expect(gvr('deployments')).toBe('apps/v1/deployments');
});

const gizmos = (freshness: string, resources: readonly Found[]): object =>
  group('x.example.com', { version: 'v1', freshness, resources });

const definition = (generation: number): object => ({
  metadata: { name: 'gizmos.x.example.com', uid: 'u', generation, resourceVersion: String(generation) },
});

/** Starts with revision 1 of a custom resource. Returns the watch of definitions. */
async function startWithDefinition(): Promise<FakeRequest> {
  cluster.documents['/apis'] = aggregated(apps, gizmos('Current', [{ resource: 'gizmos' }]));
  await start();
  const watch = await cluster.list('customresourcedefinitions', [definition(1)]);
  await soon();
  expect(discovery.resolve('gizmos')?.revision).toBe('u/1');
  return watch;
}

describe('a changed resource', () => {
  test('a changed resource is discovered within a minute, and unchanged documents are not transferred again', async () => {
    await start();
    let notifications = 0;
    discovery.changed.subscribe(() => (notifications += 1));
    await clock.advance(20_000);
    expect(notifications).toBe(0);
    expect(cluster.requests.filter(({ status }) => status === 200)).toHaveLength(2);
    cluster.documents['/apis'] = aggregated(apps, events, gizmos('Current', [{ resource: 'gizmos' }]));
    await clock.advance(60_000);
    expect(gvr('gizmos')).toBe('x.example.com/v1/gizmos');
    expect(notifications).toBe(1);
    cluster.documents['/apis'] = aggregated(apps, events);
    await clock.advance(60_000);
    expect(gvr('gizmos')).toBeUndefined();
    expect(notifications).toBe(2);
  });

  test('a changed resource is kept while its API group is reported as stale', async () => {
    cluster.documents['/apis'] = aggregated(apps, gizmos('Current', [{ resource: 'gizmos' }]));
    await start();
    cluster.documents['/apis'] = aggregated(apps, gizmos('Stale', []));
    await clock.advance(80_000);
    expect(gvr('gizmos')).toBe('x.example.com/v1/gizmos');
    cluster.documents['/apis'] = undefined;
    await clock.advance(60_000);
    expect(gvr('gizmos')).toBe('x.example.com/v1/gizmos');
  });

  test('a changed resource is discovered soon after a change of a CustomResourceDefinition or an APIService', async () => {
    await start();
    await clock.advance(20_000);
    const definitions = await cluster.list('customresourcedefinitions', [definition(1)]);
    const apiServices = await cluster.list('apiservices', []);
    await clock.advance(20_000);
    cluster.documents['/apis'] = aggregated(apps, gizmos('Current', [{ resource: 'gizmos' }]));
    await apiServices.send({ type: 'ADDED', object: { metadata: { name: 'a', resourceVersion: '2' } } });
    await soon();
    expect(gvr('gizmos')).toBe('x.example.com/v1/gizmos');
    cluster.documents['/apis'] = aggregated(apps);
    await definitions.send({ type: 'DELETED', object: definition(1) });
    await soon();
    expect(gvr('gizmos')).toBeUndefined();
  });

  test('a changed resource is reported a second after a change of its definition', async () => {
    const watch = await startWithDefinition();
    let notifications = 0;
    discovery.changed.subscribe(() => (notifications += 1));
    await watch.send({ type: 'MODIFIED', object: definition(1) });
    await clock.advance(10_000);
    expect(notifications).toBe(0);
    await watch.send({ type: 'MODIFIED', object: definition(2) });
    await clock.advance(999);
    expect(notifications).toBe(0);
    await clock.advance(1);
    expect(notifications).toBe(1);
    expect(discovery.resolve('gizmos')?.revision).toBe('u/2');
  });

  test('a changed resource has no revision if a new list of definitions does not contain its definition', async () => {
    const watch = await startWithDefinition();
    await watch.send({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } });
    await clock.advance(0);
    await cluster.list('customresourcedefinitions', []);
    await soon();
    expect(discovery.resolve('gizmos')?.revision).toBe('');
  });
});

describe('before the first discovery response', () => {
  test('waitForSync() returns with the first response of discovery', async () => {
    const { documents } = cluster;
    cluster.documents = {};
    await start();
    expect(discovery.hasSynced()).toBe(false);
    const waited = discovery.waitForSync(new AbortController().signal);
    cluster.documents = documents;
    await clock.advance(1_000);
    await waited;
    expect(discovery.hasSynced()).toBe(true);
    await discovery.waitForSync(new AbortController().signal);
  });

  test('a changed definition does not mark discovery as synced before the first discovery response', async () => {
    const { documents } = cluster;
    cluster.documents = {};
    await start();
    const watch = await cluster.list('customresourcedefinitions', [definition(1)]);
    await watch.send({ type: 'MODIFIED', object: definition(2) });
    await clock.advance(2_000);
    expect(discovery.hasSynced()).toBe(false);
    cluster.documents = documents;
    await clock.advance(7_000);
    expect(discovery.hasSynced()).toBe(true);
  });

  test('waitForSync() ends when its signal is aborted', async () => {
    const limit = new AbortController();
    const waited = discovery.waitForSync(limit.signal);
    limit.abort(new Error('enough'));
    await expect(waited).rejects.toThrow('enough');
    await expect(discovery.waitForSync(limit.signal)).rejects.toThrow('enough');
    await settle();
  });
});
