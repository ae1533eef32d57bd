import { expect, test } from '@jest/globals';
import { HotRoutes } from '../../../src/http/router.ts';
import type { Route } from '../../../src/http/route.ts';
import { ask } from '../../fakes/ask.ts';
import { as, doing, face } from '../../labs/http.ts';

const paths = ['/a', '/a/:name', '/a/b', '/a/b/:name', '/:x/b/c', '/:x/:y/d'];
const route = (path: string, more: Partial<Route> = {}): Route => ({
  ...doing((_, res) => void res.end(path), path),
  hot: true,
  ...more,
});

test.each([
  ['/a', '/a'],
  ['/a/x', '/a/:name'],
  ['/a/b', '/a/b'],
  ['/a/b/c', '/a/b/:name'],
  ['/x/b/c', '/:x/b/c'],
  ['/a/b.c-d_e:f', '/a/:name'],
  // One that has the names of another at first.
  ['/a/x/d', '/:x/:y/d'],
])('%s is found to be %s', (path, expected) => {
  const routes = paths.map((one) => route(one));
  expect(new HotRoutes(routes).find('GET', path)).toBe(routes.find((one) => one.path === expected));
});

test.each([
  ['POST', '/a'],
  ['OPTIONS', '/a'],
  ['GET', '/'],
  ['GET', ''],
  ['GET', '/A'],
  ['GET', '/b'],
  ['GET', '/a/'],
  ['GET', '//a'],
  ['GET', '/a/%62'],
  ['GET', '/a/b/c/d/e'],
  ['GET', '/a/x/y'],
  ['GET', '/__proto__'],
])('%s %s is left to Express', (method, path) => {
  const routes = ['/a', '/a/:name', '/a/b', '/cold'].map((one) => route(one, { hot: one !== '/cold' }));
  expect(new HotRoutes(routes).find(method, path)).toBeUndefined();
  expect(new HotRoutes(routes).find('GET', '/cold')).toBeUndefined();
});

test.each([[route('/a', { method: 'post' })], [route('/a/*rest')]])('what cannot be hot is refused', (one) => {
  expect(() => new HotRoutes([one])).toThrow('cannot be a hot route');
});

test.each(['/kapis/a/b', '/kapis/a/b/', '/kapis/a/b%2E', '/kapis/a/nothing/here', '/kapis/a/B'])(
  'the answer at %s is the same as without hot routes',
  async (path) => {
    const answers = await Promise.all(
      [true, false].map((hot) => {
        const routes = ['/kapis/a/b', '/kapis/a/:name'].map((one) => route(one, { hot }));
        return ask(face({ routes }).app, path, as('alice'));
      }),
    );
    const [first, second] = answers.map(({ status, text }) => [status, text]);
    expect(first).toEqual(second);
  },
);

test.each([
  [
    'throws',
    (): void => {
      throw new Error('a bug');
    },
  ],
  ['rejects', (): Promise<void> => Promise.reject(new Error('a bug'))],
])('a hot handler that %s is answered for', async (_, handler) => {
  const { app } = face({ routes: [{ ...doing(handler), hot: true }] });
  expect(await ask(app, '/kapis/version')).toMatchObject({ status: 500 });
});
