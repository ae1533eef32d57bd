import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { customResourcesRoutes } from '../../../src/docs/custom-resources.ts';
import type { Route } from '../../../src/http/route.ts';
import type { DiscoveredResource } from '../../../src/cluster/discovery.ts';
import { createLogger } from '../../../src/runtime/logger.ts';
import { get, refused } from '../../labs/resources.ts';

const path = '/swagger/custom-resources.v3.json';

let resources: DiscoveredResource[];
let sync: (signal: AbortSignal) => Promise<void>;
/** What was asked for, and what cannot be had. */
let asked: string[];
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
  asked = [];
  broken = new Set();
  schemas = new Map();
  const json = async <T>(url: string): Promise<T> => {
    const [plural = ''] = url.split('/').at(-1)?.split('.') ?? [];
    asked.push(plural);
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

test('each definition is read once, also by many who ask at once', async () => {
  expect(await Promise.all([described(), described()])).toEqual([
    ['ants', 'bees'],
    ['ants', 'bees'],
  ]);
  expect(await described()).toEqual(['ants', 'bees']);
  expect(asked).toEqual(['ants', 'bees']);
});

test('what changed is read again, what came is there and what went is not', async () => {
  await described();
  resources = [resource('bees', 'b/2'), resource('cats', 'c/1')];
  expect(await described()).toEqual(['bees', 'cats']);
  expect(asked).toEqual(['ants', 'bees', 'bees', 'cats']);
});

test('what cannot be read is left out, or as it was, until it can be; nobody asks all the time', async () => {
  broken.add('bees');
  expect(await described()).toEqual(['ants']);
  expect(await described()).toEqual(['ants']);
  expect(asked).toEqual(['ants', 'bees']);
  jest.advanceTimersByTime(1_000);
  broken.clear();
  expect(await described()).toEqual(['ants', 'bees']);
  resources = [resource('ants', 'a/1'), resource('bees', 'b/2')];
  broken.add('bees');
  expect(await described()).toEqual(['ants', 'bees']);
});

test('where nothing can be read, nobody waits until all has been asked for', async () => {
  resources = Array.from({ length: 100 }, (_, at) => resource(`plural${at}`, '1'));
  broken = new Set(resources.map((one) => one.resource));
  expect(await described()).toEqual([]);
  expect(asked.length).toBeLessThan(20);
  broken.clear();
  jest.advanceTimersByTime(1_000);
  expect((await described()).length).toBe(100);
});

test('of a schema that is too deep to be written nothing is said, and all else is', async () => {
  let deep: object = { type: 'string' };
  for (let depth = 0; depth < 20_000; depth += 1) deep = { type: 'array', items: deep };
  schemas.set('ants', { type: 'object', properties: { spec: { type: 'object', properties: { deep } } } });
  expect(await described()).toEqual(['ants', 'bees']);
  expect(await described()).toEqual(['ants', 'bees']);
  expect(asked).toEqual(['ants', 'bees']);
});

test('it is 503 while nobody knows what the cluster serves', async () => {
  sync = () => Promise.reject(new Error('too late'));
  expect(await refused(routes, path)).toMatchObject({ code: 503 });
});
