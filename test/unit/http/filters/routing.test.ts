import { expect, test } from '@jest/globals';
import type { Response } from 'express';
import * as fc from 'fast-check';
import type { Exchange } from '../../../../src/http/exchange.ts';
import { routing } from '../../../../src/http/filters/routing.ts';
import { RequestURL } from '../../../../src/http/request-url.ts';
import { authenticated } from '../../../../src/http/access.ts';
import type { Gateway, Route } from '../../../../src/http/route.ts';

const route = (path: string, method: Route['method'] = 'get'): Route => ({
  method,
  path,
  summary: '',
  access: authenticated,
  handler: () => undefined,
});
const routes = [route('/kapis/g/v1/:resources'), route('/kapis/g/v1/:resources/:name'), route('/oauth/authorize')];
const gateway: Gateway = {
  prefixes: new Set(['api']),
  access: authenticated,
  handler: () => undefined,
  ownIdentity: () => Promise.reject(new Error('not needed')),
};
const newFilter = () => routing(routes, gateway);

/** Routes a request, and returns the result with the error, if any. */
function found(filter: ReturnType<typeof newFilter>, method: string, url: string): object {
  const req = { method, url, params: {}, headers: {}, rawHeaders: [] };
  const exchange = { req, res: {} as Response, url: new RequestURL(url) } as unknown as Exchange;
  try {
    void filter(exchange);
  } catch (error) {
    return { error };
  }
  const { url: shared, info, route: matched, isProxied } = exchange;
  return {
    shared,
    result: {
      info,
      route: matched === gateway ? 'gateway' : (matched.path ?? 'none'),
      isProxied,
      params: { ...req.params },
      query: [...shared.query],
    },
  };
}

const urls = fc
  .tuple(
    fc.constantFrom(
      '/kapis/g/v1/nodes',
      '/kapis/g/v1/nodes/n1',
      '/api/v1/pods',
      '/oauth/authorize',
      '/kapis/none',
      '/kapis//x',
    ),
    fc.constantFrom('', '?watch=true', '?watch=true;limit=1', '?limit=10&page=2', `?name=${'x'.repeat(600)}`),
  )
  .map(([path, query]) => `${path}${query}`);

test('a request is routed in the same way after any other requests as it is routed first', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom('GET', 'HEAD', 'POST', 'DELETE'), urls), { maxLength: 40 }),
      (all) => {
        const filter = newFilter();
        for (const [method, url] of all) {
          const { shared: _, ...own } = found(filter, method, url) as { shared?: unknown };
          const { shared: __, ...first } = found(newFilter(), method, url) as { shared?: unknown };
          expect(own).toEqual(first);
        }
      },
    ),
  );
});

const sharedAfter = (filter: ReturnType<typeof newFilter>, method: string, url: string): unknown =>
  (found(filter, method, url) as { shared: unknown }).shared;

test.each([
  ['a GET of a resource is kept from its second request on', 'GET', '/kapis/g/v1/nodes?limit=10', true],
  ['a request of another method is not kept', 'HEAD', '/kapis/g/v1/nodes?limit=10', false],
  [
    'a request outside the resources is not kept, because it may contain secrets',
    'GET',
    '/oauth/authorize?state=a',
    false,
  ],
  ['a long request is not kept', 'GET', `/kapis/g/v1/nodes?name=${'x'.repeat(600)}`, false],
])('the parsed URL of %s', (_, method, url, isShared) => {
  const filter = newFilter();
  const first = sharedAfter(filter, method, url);
  const second = sharedAfter(filter, method, url);
  expect(second).not.toBe(first);
  expect(sharedAfter(filter, method, url) === second).toBe(isShared);
});

test('the parsed URL of a request is dropped after 500 other repeated requests', () => {
  const filter = newFilter();
  const twice = (url: string): unknown => {
    sharedAfter(filter, 'GET', url);
    return sharedAfter(filter, 'GET', url);
  };
  const first = twice('/kapis/g/v1/nodes');
  for (let at = 0; at < 500; at += 1) twice(`/kapis/g/v1/nodes/n${at}`);
  expect(sharedAfter(filter, 'GET', '/kapis/g/v1/nodes')).not.toBe(first);
});
