import { expect, test } from '@jest/globals';
import { ask, type Ask } from '../../../fakes/ask.ts';
import { as, face } from '../../../labs/http.ts';

const html = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const browser: Ask = { secure: true, headers: { accept: html } };

test.each(['/', '/?from=a-bookmark'])('a browser that opens %s is led to the page', async (path) => {
  const { app, handled } = face({ home: '/oauth/account' });
  for (const method of ['GET', 'HEAD']) {
    const { status, headers } = await ask(app, path, { ...browser, method });
    expect({ status, location: headers.location }).toEqual({ status: 303, location: '/oauth/account' });
    expect(headers.vary).toContain('Accept');
  }
  expect(handled).toEqual([]);
});

test.each<[string, string, Ask, number]>([
  ['over plain HTTP', '/', { headers: { accept: html } }, 401],
  ['that takes anything', '/', { secure: true, headers: { accept: '*/*' } }, 401],
  ['that says nothing of it', '/', { secure: true }, 401],
  ['with an identity', '/', { secure: true, headers: { accept: html, ...as('alice').headers } }, 200],
  ['at another path', '/nowhere', browser, 401],
  ['that posts', '/', { ...browser, method: 'POST' }, 401],
])('a client %s is not', async (_, path, options, status) => {
  expect((await ask(face({ home: '/oauth/account' }).app, path, options)).status).toBe(status);
});

test('nobody is where there is no page', async () => {
  expect((await ask(face().app, '/', browser)).status).toBe(401);
});
