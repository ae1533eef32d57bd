import { describe, expect, test } from '@jest/globals';
import { sendRequest, type AppRequest } from '../../../fakes/request.ts';
import { as, doing, face } from '../../../labs/http.ts';

const html = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const browser: AppRequest = { secure: true, headers: { accept: html } };

test.each(['/', '/?from=a-bookmark'])('a browser that opens %s is redirected to the account page', async (path) => {
  const { app, handled } = face({ home: '/oauth/account' });
  for (const method of ['GET', 'HEAD']) {
    const { status, headers } = await sendRequest(app, path, { ...browser, method });
    expect({ status, location: headers.location }).toEqual({ status: 303, location: '/oauth/account' });
    expect(headers.vary).toContain('Accept');
  }
  expect(handled).toEqual([]);
});

test.each<[string, string, AppRequest, number]>([
  ['that uses plain HTTP while no public URL is known', '/', { headers: { accept: html } }, 401],
  ['that accepts any media type', '/', { secure: true, headers: { accept: '*/*' } }, 401],
  ['that sends no Accept header', '/', { secure: true }, 401],
  ['that is authenticated', '/', { secure: true, headers: { accept: html, ...as('alice').headers } }, 200],
  ['that opens a path other than /', '/nowhere', browser, 401],
  ['that sends POST', '/', { ...browser, method: 'POST' }, 401],
])('a client %s is not redirected', async (_, path, options, status) => {
  expect((await sendRequest(face({ home: '/oauth/account' }).app, path, options)).status).toBe(status);
});

test('no client is redirected if the server has no account page', async () => {
  expect((await sendRequest(face().app, '/', browser)).status).toBe(401);
});

const overHTTP = (headers: Readonly<Record<string, string>> = {}): AppRequest => ({
  headers: { accept: html, ...headers },
});

describe('the redirect from HTTP to HTTPS', () => {
  const base = 'https://platform.example:9443/base';
  const options = {
    home: '/oauth/account',
    publicURL: () => base,
    routes: [
      { ...doing((_req, res) => void res.end('page'), '/oauth/open'), isPage: true },
      doing((_req, res) => void res.end('data'), '/livez'),
      doing((_req, res) => void res.end('paths'), '/'),
    ],
  };

  test.each([
    ['/', `${base}/oauth/account`],
    ['/oauth/open', `${base}/oauth/open`],
    ['/oauth/open?next=%2Foauth%2Faccount', `${base}/oauth/open?next=%2Foauth%2Faccount`],
    ['http://elsewhere.example/oauth/open', `${base}/oauth/open`],
  ])('a browser that opens a page over plain HTTP is redirected to HTTPS: %s', async (path, location) => {
    for (const method of ['GET', 'HEAD']) {
      const { status, headers } = await sendRequest(face(options).app, path, { ...overHTTP(), method });
      expect({ status, location: headers.location }).toEqual({ status: 307, location });
      expect(headers.vary).toContain('Accept');
    }
  });

  test.each([{ host: 'evil.example' }, { 'x-forwarded-host': 'evil.example' }, { forwarded: 'host=evil.example' }])(
    'a page over plain HTTP is never redirected to a host from the headers of the client: %j',
    async (headers) => {
      const { headers: sent } = await sendRequest(face(options).app, '/oauth/open', overHTTP(headers));
      expect(sent.location).toBe(`${base}/oauth/open`);
    },
  );

  test.each<[string, string, AppRequest]>([
    ['from a program', '/oauth/open', { headers: { accept: '*/*' } }],
    ['from an authenticated client', '/oauth/open', overHTTP(as('alice').headers as Record<string, string>)],
    ['from a proxy that terminates TLS', '/oauth/open', overHTTP({ 'x-forwarded-proto': 'https' })],
    [
      'from a proxy that sends the header Forwarded',
      '/oauth/open',
      overHTTP({ forwarded: 'for=192.0.2.1;proto=https' }),
    ],
    ['for a path that is not a page', '/livez', overHTTP()],
    ['over TLS', '/oauth/open', { ...overHTTP(), secure: true }],
  ])('a request %s is not redirected to HTTPS', async (_, path, request) => {
    expect((await sendRequest(face(options).app, path, request)).status).toBe(200);
  });

  test('a page over plain HTTP is served without a redirect if no public URL is known', async () => {
    const { app } = face({ ...options, publicURL: () => undefined });
    expect((await sendRequest(app, '/oauth/open', overHTTP())).status).toBe(200);
  });
});

const publicURL = (): string => 'https://platform.example:9443/base';

describe('a page that requires TLS', () => {
  const path = '/oauth/private';
  const routes = [{ ...doing((_req, res) => void res.end('page'), path), isPage: true, isTLSOnly: true }];
  const only = 'this page is available over https only';

  test.each<[string, AppRequest, (() => string) | undefined, string]>([
    ['for a program', {}, publicURL, `${only}: https://platform.example:9443/base/oauth/private`],
    [
      'in a POST',
      { ...overHTTP(), method: 'POST' },
      publicURL,
      `${only}: https://platform.example:9443/base/oauth/private`,
    ],
    [
      'if no public URL is known',
      overHTTP(),
      undefined,
      `${only}; /.well-known/openid-configuration has the address of this server`,
    ],
    [
      'behind a proxy that terminates TLS',
      overHTTP({ 'x-forwarded-proto': 'https' }),
      publicURL,
      `${only}; a proxy that terminates TLS must connect to this server over https`,
    ],
  ])(
    'a page that requires TLS returns 404 over plain HTTP %s, and the error explains how to reach the page',
    async (_, request, url, description) => {
      const method = request.method === 'POST' ? 'post' : 'get';
      const { app } = face({ routes: routes.map((route) => ({ ...route, method })), publicURL: url });
      const response = await sendRequest(app, `${path}?code=secret`, request);
      expect(response.status).toBe(404);
      expect(response.json()).toEqual({ error: 'invalid_request', error_description: description });
    },
  );

  test('a page that requires TLS is served over TLS, and a browser that uses plain HTTP is redirected to HTTPS', async () => {
    const { app } = face({ routes, publicURL });
    expect((await sendRequest(app, path, overHTTP())).status).toBe(307);
    expect((await sendRequest(app, path, browser)).text).toBe('page');
  });
});
