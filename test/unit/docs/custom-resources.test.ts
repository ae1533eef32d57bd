import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { customResourcesRoutes } from '../../../src/docs/custom-resources.ts';
import type { Route } from '../../../src/http/route.ts';
import type { DiscoveredResource } from '../../../src/cluster/discovery.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { get, refused } from '../../labs/resources.ts';

const path = '/swagger/custom-resources.v3.json';

let resources: DiscoveredResource[];
let sync: (signal: AbortSignal) => Promise<void>;
/** Plural names of the requested CustomResourceDefinitions; `broken` contains the names whose requests fail. */
let requested: string[];
let broken: Set<string>;
let schemas: Map<string, object>;
let routes: readonly Route[];

const resource = (plural: string, revision: string): DiscoveredResource => ({
  group: 'example.com',
  version: 'v1',
  resource: plural,
  singular: '',
  shortNames: [],
  kind: '',
  namespaced: true,
  verbs: [],
  revision,
});

beforeEach(() => {
  jest.useFakeTimers();
  resources = [resource('ants', 'a/1'), resource('bees', 'b/1'), { ...resource('pods', ''), group: '' }];
  sync = () => Promise.resolve();
  requested = [];
  broken = new Set();
  schemas = new Map();
  const json = async <T>(url: string): Promise<T> => {
    const [plural = ''] = url.split('/').at(-1)?.split('.') ?? [];
    requested.push(plural);
    if (broken.has(plural)) throw new Error('not now');
    const names = { kind: plural, plural };
    const versions = [{ name: 'v1', served: true, schema: { openAPIV3Schema: schemas.get(plural) } }];
    return { spec: { group: 'example.com', names, scope: 'Cluster', versions } } as T;
  };
  routes = customResourcesRoutes({
    client: { json },
    discovery: {
      waitForSync: (signal) => sync(signal),
      get resources() {
        return resources;
      },
    },
    log: createLogger({ silent: true }),
    version: '3.0.0',
    issuer: () => 'https://platform.example',
  });
});
afterEach(() => {
  jest.useRealTimers();
});

async function described(): Promise<string[]> {
  const { paths } = (await get(routes, path)).body as unknown as { paths: Record<string, object> };
  return Object.keys(paths)
    .filter((one) => !one.includes('{'))
    .map((one) => one.split('/').at(-1) ?? '');
}

test('each CustomResourceDefinition is read once, even for concurrent requests', async () => {
  expect(await Promise.all([described(), described()])).toEqual([
    ['ants', 'bees'],
    ['ants', 'bees'],
  ]);
  expect(await described()).toEqual(['ants', 'bees']);
  expect(requested).toEqual(['ants', 'bees']);
});

test('changed CustomResourceDefinitions are read again, new ones appear and deleted ones disappear', async () => {
  await described();
  resources = [resource('bees', 'b/2'), resource('cats', 'c/1')];
  expect(await described()).toEqual(['bees', 'cats']);
  expect(requested).toEqual(['ants', 'bees', 'bees', 'cats']);
});

test('an unreadable CustomResourceDefinition keeps its last description, if any, and is read again after a delay', async () => {
  broken.add('bees');
  expect(await described()).toEqual(['ants']);
  expect(await described()).toEqual(['ants']);
  expect(requested).toEqual(['ants', 'bees']);
  jest.advanceTimersByTime(1_000);
  broken.clear();
  expect(await described()).toEqual(['ants', 'bees']);
  resources = [resource('ants', 'a/1'), resource('bees', 'b/2')];
  broken.add('bees');
  expect(await described()).toEqual(['ants', 'bees']);
});

test('a request for the description stops reading CustomResourceDefinitions when all concurrent reads have failed', async () => {
  resources = Array.from({ length: 100 }, (_, at) => resource(`plural${at}`, '1'));
  broken = new Set(resources.map((one) => one.resource));
  expect(await described()).toEqual([]);
  expect(requested.length).toBeLessThan(20);
  broken.clear();
  jest.advanceTimersByTime(1_000);
  expect((await described()).length).toBe(100);
});

test('a CustomResourceDefinition whose schema is too deep is described without the schema', async () => {
  let deep: object = { type: 'string' };
  for (let depth = 0; depth < 20_000; depth += 1) deep = { type: 'array', items: deep };
  schemas.set('ants', { type: 'object', properties: { spec: { type: 'object', properties: { deep } } } });
  expect(await described()).toEqual(['ants', 'bees']);
  expect(await described()).toEqual(['ants', 'bees']);
  expect(requested).toEqual(['ants', 'bees']);
});

test('the description of custom resources returns 503 until discovery has succeeded', async () => {
  sync = () => Promise.reject(new Error('too late'));
  expect(await refused(routes, path)).toMatchObject({ code: 503 });
});
