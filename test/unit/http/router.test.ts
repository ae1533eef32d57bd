import { expect, test } from '@jest/globals';
import type { Route } from '../../../src/http/route.ts';
import { sendRequest } from '../../fakes/request.ts';
import { as, doing, face } from '../../labs/http.ts';

const route = (path: string, hot: boolean): Route => ({ ...doing((_, res) => void res.end(path), path), hot });

const echo = (hot: boolean): Route => ({
  ...doing((req, res) => void res.end(JSON.stringify(req.params)), '/kapis/a/:name'),
  hot,
});

const responseOf = async (routes: readonly Route[], path: string): Promise<readonly [number, string]> => {
  const { status, text } = await sendRequest(face({ routes: [...routes] }).app, path, as('alice'));
  return [status, text];
};

test('a route marked as `hot` is matched before the routes that precede it', async () => {
  const routes = [route('/kapis/a/:name', false), route('/kapis/a/b', true)];
  expect(await responseOf(routes, '/kapis/a/b')).toEqual([200, '/kapis/a/b']);
  expect(await responseOf(routes, '/kapis/a/c')).toEqual([200, '/kapis/a/:name']);
});

test.each(['/kapis/a/b', '/kapis/a/b/', '/kapis/a/b%2E', '/kapis/a/%ZZ', '/kapis/a/nothing/here', '/kapis/a/B'])(
  'the response for %s is the same whether or not a route is marked as `hot`',
  async (path) => {
    const [first, second] = await Promise.all(
      [true, false].map((hot) => responseOf([route('/kapis/a/b', hot), route('/kapis/a/:name', false)], path)),
    );
    expect(first).toEqual(second);
  },
);

test.each([
  '/kapis/a/b',
  '/kapis/a/b-c.d_1',
  '/kapis/a/%62',
  '/kapis/a/b~c',
  '/kapis/a/',
  '/kapis/a/b/c',
  '/kapis/a/%ZZ',
])('a route marked as `hot` reads the name in %s as Express does', async (path) => {
  expect(await responseOf([echo(true)], path)).toEqual(await responseOf([echo(false)], path));
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
