/** Tests that every endpoint creates an indented list at the pace of its reader. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { apisRoutes, kapisRoutes } from '../../../src/resources/routes.ts';
import type { Route } from '../../../src/http/route.ts';
import { call, type Call, emptyCluster, FakeAuthorizer, fakeResource, get, node } from '../../labs/resources.ts';

const count = 300;
const filling = 'x'.repeat(20_000);
const readers = 10;

let routes: Route[];
let calls: Call[];
beforeEach(() => {
  calls = [];
  const resource = fakeResource();
  const annotations = { filling };
  resource.store.replace(
    Array.from({ length: count }, (_, index) => node(`n${index}`, { resourceVersion: 5, annotations })),
    10,
  );
  const deps = { authorizer: new FakeAuthorizer(), resources: [resource], ...emptyCluster };
  routes = [...kapisRoutes(deps), ...apisRoutes(deps)];
});
afterEach(async () => {
  for (const { response, done } of calls) {
    response.destroy();
    await done;
  }
});

const paths = ['/kapis/resources.platform.io/v1alpha3/nodes', '/apis/resources.platform.io/v1alpha3/nodes'];

test.each(paths)(
  'only a part of the response for %s?pretty=true is created while the client does not read',
  async (path) => {
    const document = (await get(routes, `${path}?pretty=true`)).text;
    expect(document).toBe(`${JSON.stringify(JSON.parse(document), null, 2)}${path.startsWith('/apis') ? '\n' : ''}`);
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < readers; i += 1) {
      const started = call(routes, `${path}?pretty=true`);
      started.response.stalled = true;
      calls.push(started);
    }
    while (calls.some(({ response }) => response.chunks.length === 0))
      await new Promise((resolve) => setImmediate(resolve));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan((readers * document.length) / 4);
  },
);

test.each(paths)(
  'the headers of %s?pretty=true are the same for HEAD as for GET, whatever the size of the body',
  async (path) => {
    for (const query of ['pretty=true', 'pretty=true&limit=1', 'pretty=true&limit=0&labelSelector=none'])
      for (const coding of ['', 'gzip']) {
        const headers = { 'accept-encoding': coding };
        const body = await get(routes, `${path}?${query}`, { headers });
        const head = await get(routes, `${path}?${query}`, { headers, method: 'HEAD' });
        expect(head.headers).toEqual(body.headers);
        expect(head.chunks).toEqual([]);
      }
  },
);
