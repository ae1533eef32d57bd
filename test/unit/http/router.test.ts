import { expect, test } from '@jest/globals';
import express, { type Request, type Response } from 'express';
import * as fc from 'fast-check';
import { readFile } from 'node:fs/promises';
import { authenticated } from '../../../src/http/access.ts';
import type { Route } from '../../../src/http/route.ts';
import { createMatch } from '../../../src/http/router.ts';
import { RouteTree } from '../../../src/http/route-tree.ts';
import { sendRequest } from '../../fakes/request.ts';
import { as, doing, face } from '../../labs/http.ts';

const route = (path: string, method: Route['method'] = 'get'): Route => ({
  method,
  path,
  summary: '',
  access: authenticated,
  handler: () => undefined,
});

interface Match {
  readonly path: string;
  readonly method: string;
  readonly parameters: object;
}

const requestFor = (method: string, path: string): Request => ({ method, url: path }) as unknown as Request;

/** Returns what Express matches, after the routes are sorted so that literal segments precede parameters. */
function withExpress(routes: readonly Route[]): (method: string, path: string) => Match | undefined {
  const router = express.Router({ caseSensitive: true });
  let found: Match | undefined;
  for (const { method, path } of routes.toSorted((a, b) =>
    rank(a.path) < rank(b.path) ? -1 : Number(rank(a.path) > rank(b.path)),
  ))
    router[method](path, ({ params }) => {
      found = { path, method, parameters: { ...params } };
    });
  return (method, path) => {
    found = undefined;
    router(requestFor(method, path), {} as Response, () => undefined);
    return found;
  };
}

const rank = (path: string): string => path.replaceAll('/:', '/\uFFFF');

function withTree(routes: readonly Route[]): (method: string, path: string) => Match | undefined {
  const tree = new RouteTree(routes);
  return (method, path) => {
    const found = tree.find(method, path);
    return found && { path: found.route.path, method: found.route.method, parameters: found.parameters };
  };
}

const overlapping = [
  route('/'),
  route('/a'),
  route('/a/:x'),
  route('/a/:y', 'post'),
  route('/a/b', 'put'),
  route('/a/b/c'),
  route('/a/:x/c', 'delete'),
  route('/a/:x/:z'),
  route('/:p/b/:q/d'),
  route('/:p/:q/c/d', 'patch'),
];

async function described(): Promise<Route[]> {
  const file = await readFile(new URL('../../../api/platform.v3.json', import.meta.url), 'utf8');
  const { paths } = JSON.parse(file) as { paths: Record<string, Record<string, unknown>> };
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations)
      .filter((method) => ['get', 'post', 'put', 'patch', 'delete'].includes(method))
      .map((method) => route(path.replaceAll(/\{(\w+)\}/g, ':$1'), method as Route['method'])),
  );
}

test.each([
  ['overlapping routes', async (): Promise<Route[]> => overlapping],
  ['the routes of the API description', described],
])('%s are found as by Express, which gets literal segments first', async (_, table) => {
  expect.hasAssertions();
  const routes = await table();
  const [tree, reference] = [withTree(routes), withExpress(routes)];
  const segments = [...new Set(routes.flatMap(({ path }) => path.split('/').slice(1)))].map((segment) =>
    segment.replace(/^:/, ''),
  );
  const path = fc.oneof(
    fc.array(fc.constantFrom(...segments.filter((segment) => segment !== '')), { minLength: 1, maxLength: 8 }),
    fc.constantFrom(...routes.filter((one) => one.path !== '/').map((one) => one.path.split('/').slice(1))),
  );
  const method = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS');
  fc.assert(
    fc.property(method, path, (verb, parts) => {
      const target = `/${parts.map((part) => part.replace(/^:/, 'the-')).join('/')}`;
      expect(tree(verb, target)).toEqual(reference(verb, target));
    }),
    { numRuns: 2_000 },
  );
});

test.each(['/', '/a/', '//a', '/a//c', '/a/%62', '/a/%ZZ', '/a/b?x', '/a/b c', '/a/é', 'a'])(
  'the route tree leaves %j to Express',
  (path) => {
    expect(withTree(overlapping)('GET', path)).toBeUndefined();
  },
);

test.each([
  ['/kapis/a/b-c.d_1~:@', 'b-c.d_1~:@'],
  ['/kapis/a/b+c', 'b+c'],
  ['/kapis/a/%62', 'b'],
  ['/kapis/a/b/', 'b'],
])('the name in %s is read, whether the route tree or Express finds the route', async (path, name) => {
  const routes = [doing((req, res) => void res.end(JSON.stringify(req.params)), '/kapis/a/:name')];
  const { status, text } = await sendRequest(face({ routes }).app, path, as('alice'));
  expect([status, JSON.parse(text)]).toEqual([200, { name }]);
});

test('a route that an earlier route hides is refused', () => {
  expect(() => new RouteTree([route('/a/:x'), route('/a/b')])).toThrow('the route /a/b follows /a/:x, which hides it');
  expect(() => new RouteTree([route('/a/b'), route('/a/b')])).toThrow('the route /a/b follows /a/b, which hides it');
});

test.each(['/a/*rest', '/a/:x.json', '/a/:x-:y'])('the route tree leaves the route %s to Express', (path) => {
  expect(new RouteTree([route(path)]).find('GET', '/a/b-c.json')).toBeUndefined();
});

test('a route with a wildcard is found by Express', () => {
  const routes = [route('/a/*rest')];
  const found = createMatch(routes)(requestFor('GET', '/a/b'), {} as Response, '/a/b');
  expect(found.route.path).toBe('/a/*rest');
});

test.each([
  [
    'throws',
    (): void => {
      throw new Error('a bug');
    },
  ],
  ['rejects', (): Promise<void> => Promise.reject(new Error('a bug'))],
])('a route handler that %s causes 500', async (_, handler) => {
  const { app } = face({ routes: [doing(handler)] });
  expect(await sendRequest(app, '/kapis/version')).toMatchObject({ status: 500 });
});
