import { expect, test } from '@jest/globals';
import type { Response } from 'express';
import * as fc from 'fast-check';
import type { IncomingMessage } from 'node:http';
import type { Exchange } from '../../../../src/http/exchange.ts';
import { routing } from '../../../../src/http/filters/routing.ts';
import { RequestTarget } from '../../../../src/http/request-target.ts';
import { authenticated } from '../../../../src/http/access.ts';
import { normalized } from '../../../../src/http/listeners/http-handler.ts';
import type { Gateway } from '../../../../src/http/route.ts';
import { heapUsed } from '../../../fakes/heap.ts';
import { doing } from '../../../labs/http.ts';

const paths = ['/kapis/g/v1/:resources', '/kapis/g/v1/:resources/:name', '/oauth/authorize'];
const routes = paths.map((path) => doing(() => undefined, path));
const gateway: Gateway = {
  prefixes: new Set(['api']),
  access: authenticated,
  handler: () => undefined,
  ownIdentity: () => Promise.reject(new Error('not needed')),
};
const newFilter = () => routing(routes, gateway);

interface Routed {
  /** The parsed target, which requests may share. */
  readonly target: RequestTarget;
  /** Everything that the filter sets, or the error. */
  readonly result: object;
}

function routed(filter: ReturnType<typeof newFilter>, method: string, url: string): Routed {
  const req = { method, url, params: {}, headers: {}, rawHeaders: [] };
  const exchange = { req, res: {} as Response, target: new RequestTarget(url) } as unknown as Exchange;
  try {
    void filter(exchange);
  } catch (error) {
    return { target: exchange.target, result: { error } };
  }
  const { target, info, route: found, isProxied } = exchange;
  const path = found === gateway ? 'the gateway' : (found.path ?? 'none');
  return { target, result: { info, path, isProxied, params: { ...req.params }, query: [...target.query] } };
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
  const method = fc.constantFrom('GET', 'HEAD', 'POST', 'DELETE');
  fc.assert(
    fc.property(fc.array(fc.tuple(method, urls), { maxLength: 40 }), (all) => {
      const filter = newFilter();
      for (const request of all)
        expect(routed(filter, ...request).result).toEqual(routed(newFilter(), ...request).result);
    }),
  );
});

test.each([
  ['a GET of a resource is cached from its second request on', 'GET', '/kapis/g/v1/nodes?limit=10', true],
  ['a request of another method is not cached', 'HEAD', '/kapis/g/v1/nodes?limit=10', false],
  ['a request outside the resources is not cached', 'GET', '/oauth/authorize?state=a', false],
  ['a request with a secret parameter is not cached', 'GET', '/kapis/g/v1/nodes?access_token=a', false],
  ['a request with a token is not cached', 'GET', '/kapis/g/v1/nodes?name=bearer+abc', false],
  ['a request for a subresource is not cached', 'GET', '/api/v1/namespaces/a/pods/b/proxy/path?key=a', false],
  ['a long request is not cached', 'GET', `/kapis/g/v1/nodes?name=${'x'.repeat(600)}`, false],
])('the parsed target of %s', (_, method, url, isCached) => {
  const filter = newFilter();
  const first = routed(filter, method, url).target;
  const second = routed(filter, method, url).target;
  expect(second).not.toBe(first);
  expect(routed(filter, method, url).target === second).toBe(isCached);
});

const collection = '/kapis/g/v1/nodes';

test('the parsed target of a request is dropped after 500 other repeated requests', () => {
  const filter = newFilter();
  const twice = (url: string): RequestTarget => {
    routed(filter, 'GET', url);
    return routed(filter, 'GET', url).target;
  };
  const first = twice(collection);
  for (let at = 0; at < 500; at += 1) twice(`${collection}/n${at}`);
  expect(routed(filter, 'GET', collection).target).not.toBe(first);
});

test('the parsed target of a request is not cached if 500 other requests precede its repetition', () => {
  const filter = newFilter();
  routed(filter, 'GET', collection);
  for (let at = 0; at < 500; at += 1) routed(filter, 'GET', `${collection}/n${at}`);
  const repeated = routed(filter, 'GET', collection).target;
  expect(routed(filter, 'GET', collection).target).not.toBe(repeated);
});

test('cached results do not keep the host of an absolute URL in memory', () => {
  const filter = newFilter();
  const host = 'h'.repeat(60_000);
  const targetOf = (at: number): string =>
    normalized({ url: `http://${host}${at}${collection}/n${at}` } as unknown as IncomingMessage).url ?? '';
  const before = heapUsed();
  for (let at = 0; at < 400; at += 1) {
    routed(filter, 'GET', targetOf(at));
    routed(filter, 'GET', targetOf(at));
  }
  expect(heapUsed() - before).toBeLessThan(6_000_000);
  expect(routed(filter, 'GET', targetOf(0)).target).toBe(routed(filter, 'GET', targetOf(0)).target);
});
