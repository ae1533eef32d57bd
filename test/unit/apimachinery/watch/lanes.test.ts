/** Watches with expensive filters delay only watches of the same user. In these tests each look-up takes 1 ms. */
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { Route } from '../../../../src/http/route.ts';
import { kapisRoutes } from '../../../../src/resources/routes.ts';
import { StoredObject } from '../../../../src/cluster/cache/stored-object.ts';
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

const path = '/kapis/resources.platform.io/v1alpha3/nodes?watch=true&resourceVersion=10';

let now: number;
let lookUps: number;
let resource: FakeResource;
let routes: Route[];
let calls: Call[];
beforeEach(() => {
  now = 0;
  lookUps = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  const remembered = Reflect.get(StoredObject.prototype, 'memoize') as (...args: unknown[]) => unknown;
  jest.spyOn(StoredObject.prototype, 'memoize').mockImplementation(function lookUp(this: unknown, ...args) {
    now += 1;
    lookUps += 1;
    return Reflect.apply(remembered, this, args);
  });
  resource = fakeResource();
  resource.store.replace([node('a', { resourceVersion: 5 })], 10);
  routes = kapisRoutes({ authorizer: new FakeAuthorizer(), resources: [resource], ...emptyCluster });
  calls = [];
});
afterEach(async () => {
  for (const { abort, done, response } of calls) {
    abort();
    response.destroy();
    await done;
  }
  jest.restoreAllMocks();
});

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function watch(username: string, query = ''): Promise<Call> {
  const started = call(routes, `${path}${query}`, { username });
  calls.push(started);
  while (!started.response.headersSent) await turn();
  return started;
}

/** A selector that matches every object and has many paths that no other watch uses. */
const costly = (terms: number, watchNumber: number): string =>
  `&fieldSelector=${Array.from({ length: terms }, (_, i) => `status.w${watchNumber}x${i}!%3D1`).join(',')}`;

const annotations = (watchNumber: number): string =>
  `&annotation=${Array.from({ length: 64 }, (_, i) => `!q${watchNumber}x${i}`).join(',')}`;

const modify = (resourceVersion: number): void => resource.store.apply('MODIFIED', node('a', { resourceVersion }));

/** Returns the number of event loop turns until the watch has received this many events. */
async function turnsUntil({ response }: Call, events: number): Promise<number> {
  let turns = 0;
  for (; response.events.length < events; turns += 1) {
    if (turns === 20_000) throw new Error(`${response.events.length} of ${events} events`);
    await turn();
  }
  return turns;
}

test.each([
  ['a plain watch', '', 5],
  ['a filtered watch', costly(1, -1), 15],
])('%s of another user receives each of 100 events while 150 expensive watches are open', async (_, query, max) => {
  const hostile: Call[] = [];
  for (let i = 0; i < 150; i += 1) hostile.push(await watch('bob', costly(6, i)));
  const own = await watch('alice', query);
  for (let version = 11; version <= 110; version += 1) {
    const before = lookUps;
    modify(version);
    expect(await turnsUntil(own, version - 10)).toBeLessThanOrEqual(max);
    expect(lookUps - before).toBeLessThan(100);
  }
  const [first] = hostile as [Call];
  const last = hostile.at(-1) as Call;
  await turnsUntil(last, 1);
  expect(Math.abs(first.response.events.length - last.response.events.length)).toBeLessThanOrEqual(1);
});

test('a watch is rejected with 429 when the filters of all watches of its user would search more than 1,000 values', async () => {
  for (let i = 0; i < 10; i += 1) await watch('bob', `${costly(32, i)}${annotations(i)}`);
  const eleventh = `${costly(32, 10)}${annotations(10)}`;
  expect(await refused(routes, `${path}${eleventh}`, { username: 'bob' })).toMatchObject({
    code: 429,
    message: 'filter terms of open watches that search objects: your share of 1000 is in use; please try again later',
  });
  await watch('bob');
  await watch('alice', eleventh);
  calls[0]?.response.destroy();
  await turn();
  await watch('bob', eleventh);
});
