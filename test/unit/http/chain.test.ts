import { describe, expect, test } from '@jest/globals';
import type { Response } from 'express';
import { authenticated, authorizedByPath } from '../../../src/http/access.ts';
import type { ChainOptions } from '../../../src/http/chain.ts';
import { sendRequest, type AppResponse, type AppRequest } from '../../fakes/request.ts';
import { as, doing, face, resourcePath } from '../../labs/http.ts';

describe('every response', () => {
  test.each<[string, string, AppRequest, number]>([
    ['of a handler', resourcePath, as('alice'), 200],
    ['to an anonymous request', resourcePath, {}, 401],
    ['to an invalid token', resourcePath, as('bad'), 401],
    ['on a public path', '/livez', {}, 200],
    ['on an unknown path', '/nowhere', as('alice'), 404],
    ['to an unsupported method', resourcePath, { ...as('alice'), method: 'POST' }, 405],
    ['to an invalid path', '/%', {}, 400],
    ['to a preflight', resourcePath, { method: 'OPTIONS' }, 401],
  ])(
    'every response %s has the headers Audit-ID, Cache-Control and X-Content-Type-Options, and does not name the server software',
    async (_, path, options, status) => {
      const response = await sendRequest(face().app, path, options);
      expect(response.status).toBe(status);
      expect(response.headers).toMatchObject({
        'audit-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
        'cache-control': 'no-cache, private',
        'x-content-type-options': 'nosniff',
      });
      for (const name of ['x-powered-by', 'server', 'etag', 'set-cookie'])
        expect(response.headers).not.toHaveProperty(name);
    },
  );
});

const parameters = (count: number): string => Array.from({ length: count }, () => 'a').join('&');

describe('the limit of query parameters', () => {
  test.each([resourcePath, '/livez', '/oauth/open', '/nowhere'])(
    'a request for %s with more than 1,000 query parameters gets 400',
    async (path) => {
      const { app, handled } = face();
      const response = await sendRequest(app, `${path}?${parameters(1_001)}`, as('alice'));
      expect(response.status).toBe(400);
      expect(response.text).toContain('the query has more than 1000 parameters');
      expect(handled).toEqual([]);
      expect((await sendRequest(app, `${path}?${parameters(1_000)}`, as('alice'))).text).not.toContain(
        '1000 parameters',
      );
    },
  );
});

describe('a request to impersonate another user', () => {
  // evidence: impersonation-headers
  test.each(['Impersonate-User', 'impersonate-group', 'Impersonate-UID'])(
    'a request with the header %s that is not proxied to kube-apiserver gets 403',
    async (name) => {
      const { app, handled } = face();
      const { headers } = as('alice');
      const response = await sendRequest(app, resourcePath, { headers: { ...headers, [name]: 'bob' } });
      expect(response.status).toBe(403);
      expect(response.json()).toMatchObject({ reason: 'Forbidden', details: { name: 'bob' } });
      expect(handled).toEqual([]);
      expect((await sendRequest(app, resourcePath, { headers: { [name]: 'bob' } })).status).toBe(401);
    },
  );
});

describe('the limits of impersonation', () => {
  const gateway = {
    prefixes: new Set(['api']),
    access: authenticated,
    handler: (_: unknown, res: Response): void => void res.end(),
    ownIdentity: async () => ({ username: 'the-server' }),
  };

  test.each([
    ['', 10],
    ['?watch=1', 50],
  ])(
    '80 concurrent requests of one caller with impersonation and the query %j cause at most %d concurrent access reviews',
    async (query, max) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      let reviews = 0;
      const authorizer = {
        authorize: async () => {
          reviews += 1;
          await promise;
          return { allowed: true, reason: '' };
        },
      };
      const { app } = face({
        gateway,
        authorizer,
        // Authentication takes no time, so that all access reviews start concurrently.
        authenticator: () => ({ username: 'alice', groups: [], via: 'token' }),
        settings: { maxInFlightPerUser: 10 },
      });
      const responses = Array.from({ length: 80 }, (_, index) =>
        sendRequest(app, `/api/v1/pods${query}`, as('alice', { 'impersonate-user': `bob-${index}` })),
      );
      const refused = (await Promise.race([
        Promise.all(responses.slice(max)),
        ...responses.slice(0, max),
      ])) as AppResponse[];
      expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([429]));
      expect(reviews).toBe(max);
      resolve();
      for (const { status } of await Promise.all(responses.slice(0, max))) expect(status).toBe(200);
    },
  );

  test('a request that impersonates more than 100 names is rejected with an error that states the limit', async () => {
    const { app, reviews } = face({ gateway });
    const { headers } = as('alice', { 'impersonate-user': 'bob' });
    const ofMany = (count: number): Promise<AppResponse> => {
      const groups = Array.from({ length: count }, (_, index) => `g-${index}`);
      return sendRequest(app, '/api/v1/pods', { headers: { ...headers, 'impersonate-group': groups } });
    };
    expect((await ofMany(99)).status).toBe(200);
    expect(reviews).toHaveLength(100);
    const response = await ofMany(100);
    expect([response.status, response.json()['message']]).toEqual([400, expect.stringContaining('at most 100 names')]);
    expect(reviews).toHaveLength(100);
  });
});

describe('an anonymous request', () => {
  test.each([resourcePath, '/metrics', '/nowhere', '/', '/livezz', '/LIVEZ', '/swagger', '/.well-known'])(
    'an anonymous request for %s gets 401 with the challenge of RFC 6750, and reaches no handler',
    async (path) => {
      const { app, handled } = face();
      const response = await sendRequest(app, path);
      expect(response.status).toBe(401);
      expect(response.headers['www-authenticate']).toBe('Bearer realm="platform"');
      expect(response.json()).toEqual({
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message:
          'the request has no credentials: send "Authorization: Bearer <access token>"; POST /oauth/token of this server issues access tokens',
        reason: 'Unauthorized',
        code: 401,
      });
      expect(handled).toEqual([]);
    },
  );

  test.each(['/livez', '/kapis/version', '/oauth/open', '/version'])(
    'an anonymous request for %s is served',
    async (path) => {
      const { app } = face({ routes: [doing((_, res) => void res.end(), path)] });
      expect((await sendRequest(app, path)).status).toBe(200);
    },
  );

  test('the public path /livez?verbose identifies the user of a valid token and ignores an invalid token', async () => {
    const { app, handled } = face();
    for (const [path, username] of [
      ['/livez?verbose', 'alice'],
      ['/livez?verbose', 'bad'],
      ['/livez', 'alice'],
    ] as const)
      expect((await sendRequest(app, path, as(username))).status).toBe(200);
    expect(handled.map(({ user }) => user?.username)).toEqual(['alice', undefined, undefined]);
  });
});

test.each([resourcePath, '/livez?verbose'])(
  'a request for %s gets 429 when the queue for authentication is full, and is not served later',
  async (path) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const usernames = ['alice', 'bob', 'carol'];
    const authenticator: ChainOptions['authenticator'] = async () => {
      const username = usernames.shift() ?? '';
      await promise;
      return { username, groups: [], via: 'token' };
    };
    // Two requests can wait for authentication: twice `maxInFlightPerUser`.
    const { app, handled } = face({ authenticator, settings: { maxInFlightPerUser: 1 } });
    const responses = Array.from({ length: 3 }, () => sendRequest(app, path));
    const refused = await Promise.race(responses);
    expect(refused.status).toBe(429);
    expect(handled).toEqual([]);
    resolve();
    expect((await Promise.all(responses)).filter(({ status }) => status === 200)).toHaveLength(2);
    expect(handled.map(({ user }) => user?.username)).toEqual(['alice', 'bob']);
  },
);

// evidence: token-in-query
test.each([resourcePath, '/livez', '/oauth/open'])(
  'a request for %s with a token in the query gets 400',
  async (path) => {
    const { app, handled } = face();
    const response = await sendRequest(app, `${path}?access_token=alice`, as('alice'));
    expect(response.status).toBe(400);
    // RFC 6750 sections 3 and 3.1.
    expect(response.headers['www-authenticate']).toBe('Bearer realm="platform", error="invalid_request"');
    expect(handled).toEqual([]);
  },
);

describe('an authenticated request', () => {
  test.each([
    ['/metrics', [{ verb: 'get', path: '/metrics' }]],
    ['/nowhere', [{ verb: 'get', path: '/nowhere' }]],
    // The handler of this path authorizes access to the resource that it reads.
    [resourcePath, []],
    ['/apis', []],
    ['/', []],
    [
      '/apis/resources.platform.io/v1alpha3/nodes/n1',
      [{ verb: 'get', group: 'resources.platform.io', resource: 'nodes', subresource: '', namespace: '', name: 'n1' }],
    ],
  ])('an authenticated request for %s requires the rights %j', async (path, attributes) => {
    const { app, reviews } = face();
    await sendRequest(app, path, as('alice'));
    expect(reviews).toEqual(attributes);
  });

  // evidence: access-review-each-request
  test('an authenticated request without the required right gets 403 before any handler runs, even if the path is unknown', async () => {
    const { app, handled } = face({ allowed: false });
    for (const path of ['/metrics', '/nowhere', '/apis/resources.platform.io/v1alpha3/nodes'])
      expect((await sendRequest(app, path, as('alice'))).status).toBe(403);
    expect(handled).toEqual([]);
  });

  test('an authenticated request gets 429 before its access review when too many requests are in flight', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const entered = Promise.withResolvers<void>();
    const held = doing(async (_, res) => {
      entered.resolve();
      await promise;
      res.end();
    }, '/metrics');
    const { app, reviews } = face({ settings: { maxInFlightPerUser: 1 }, routes: [held] });
    const first = sendRequest(app, '/metrics', as('alice'));
    await entered.promise;
    expect((await sendRequest(app, '/metrics', as('alice'))).status).toBe(429);
    resolve();
    expect((await first).status).toBe(200);
    expect(reviews).toHaveLength(1);
  });
});

describe('an unsupported method', () => {
  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PURGE'])(
    'an unsupported method %s gets 405 with the supported methods',
    async (method) => {
      const response = await sendRequest(face().app, resourcePath, { ...as('alice'), method });
      expect(response).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
      expect(response.json()).toMatchObject({ kind: 'Status', reason: 'MethodNotAllowed', code: 405 });
    },
  );

  test('an unsupported method on a path with several routes gets 405 with the methods of all routes', async () => {
    const routes = [doing(() => undefined), doing(() => undefined, '/kapis/version', 'post')];
    const response = await sendRequest(face({ routes }).app, '/kapis/version', { method: 'DELETE' });
    expect(response.headers.allow).toBe('GET, HEAD, POST');
  });

  test('an unsupported method on a path with several routes gets 401 or 403 unless the caller meets the strictest access rule of these routes', async () => {
    const path = '/kapis/version';
    const routes = [doing(() => undefined), { ...doing(() => undefined, path, 'post'), access: authorizedByPath }];
    const { app } = face({ routes, allowed: false });
    expect((await sendRequest(app, path, { method: 'DELETE' })).status).toBe(401);
    expect((await sendRequest(app, path, { method: 'DELETE', ...as('alice') })).status).toBe(403);
  });
});

test('a HEAD request gets the status of the GET request, without a body', async () => {
  const { app } = face();
  const [get, head] = [await sendRequest(app, '/livez'), await sendRequest(app, '/livez', { method: 'HEAD' })];
  expect([get.status, head.status, get.text, head.text]).toEqual([200, 200, 'answered', '']);
});
