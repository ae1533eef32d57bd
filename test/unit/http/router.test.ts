import { expect, test } from '@jest/globals';
import type { Route } from '../../../src/http/route.ts';
import { ask } from '../../fakes/ask.ts';
import { as, doing, face } from '../../labs/http.ts';

const route = (path: string, hot: boolean): Route => ({ ...doing((_, res) => void res.end(path), path), hot });

const responseOf = async (routes: readonly Route[], path: string): Promise<readonly [number, string]> => {
  const { status, text } = await ask(face({ routes: [...routes] }).app, path, as('alice'));
  return [status, text];
};

test('a hot route is matched before the routes in front of it', async () => {
  const routes = [route('/kapis/a/:name', false), route('/kapis/a/b', true)];
  expect(await responseOf(routes, '/kapis/a/b')).toEqual([200, '/kapis/a/b']);
  expect(await responseOf(routes, '/kapis/a/c')).toEqual([200, '/kapis/a/:name']);
});

test.each(['/kapis/a/b', '/kapis/a/b/', '/kapis/a/b%2E', '/kapis/a/%ZZ', '/kapis/a/nothing/here', '/kapis/a/B'])(
  'the response at %s is the same with and without a hot route',
  async (path) => {
    const [first, second] = await Promise.all(
      [true, false].map((hot) => responseOf([route('/kapis/a/b', hot), route('/kapis/a/:name', false)], path)),
    );
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
])('a handler that %s gives 500', async (_, handler) => {
  const { app } = face({ routes: [doing(handler)] });
  expect(await ask(app, '/kapis/version')).toMatchObject({ status: 500 });
});
