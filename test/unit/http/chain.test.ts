import { describe, expect, test } from '@jest/globals';
import type { Response } from 'express';
import { authenticated, authorizedByPath } from '../../../src/http/access.ts';
import type { ChainOptions } from '../../../src/http/chain.ts';
import { ask, type Answer, type Ask } from '../../fakes/ask.ts';
import { as, doing, face, resourcePath } from '../../labs/http.ts';

describe('every answer', () => {
  test.each<[string, string, Ask, number]>([
    ['of a handler', resourcePath, as('alice'), 200],
    ['to nobody', resourcePath, {}, 401],
    ['to a bad token', resourcePath, as('bad'), 401],
    ['on an open path', '/livez', {}, 200],
    ['on a path that there is not', '/nowhere', as('alice'), 404],
    ['to a method that there is not', resourcePath, { ...as('alice'), method: 'POST' }, 405],
    ['to a path that is none', '/%', {}, 400],
    ['to a preflight', resourcePath, { method: 'OPTIONS' }, 401],
  ])('%s has the headers that all have, and no name of a program', async (_, path, options, status) => {
    const answer = await ask(face().app, path, options);
    expect(answer.status).toBe(status);
    expect(answer.headers).toMatchObject({
      'audit-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'cache-control': 'no-cache, private',
      'x-content-type-options': 'nosniff',
    });
    for (const name of ['x-powered-by', 'server', 'etag', 'set-cookie'])
      expect(answer.headers).not.toHaveProperty(name);
  });
});

const parameters = (count: number): string => Array.from({ length: count }, () => 'a').join('&');

describe('a query', () => {
  test.each([resourcePath, '/livez', '/oauth/open', '/nowhere'])(
    'of %s with more than 1,000 parameters is 400',
    async (path) => {
      const { app, handled } = face();
      const answer = await ask(app, `${path}?${parameters(1_001)}`, as('alice'));
      expect(answer.status).toBe(400);
      expect(answer.text).toContain('the query has more than 1000 parameters');
      expect(handled).toEqual([]);
      expect((await ask(app, `${path}?${parameters(1_000)}`, as('alice'))).text).not.toContain('1000 parameters');
    },
  );
});

describe('who wants to be another', () => {
  // evidence: impersonation-headers
  test.each(['Impersonate-User', 'impersonate-group', 'Impersonate-UID'])('by %s is refused', async (name) => {
    const { app, handled } = face();
    const { headers } = as('alice');
    const answer = await ask(app, resourcePath, { headers: { ...headers, [name]: 'bob' } });
    expect(answer.status).toBe(403);
    expect(answer.json()).toMatchObject({ reason: 'Forbidden', details: { name: 'bob' } });
    expect(handled).toEqual([]);
    expect((await ask(app, resourcePath, { headers: { [name]: 'bob' } })).status).toBe(401);
  });
});

describe('who asks to be many', () => {
  const gateway = {
    prefixes: new Set(['api']),
    access: authenticated,
    handler: (_: unknown, res: Response): void => void res.end(),
  };

  test.each([
    ['', 10],
    ['?watch=1', 50],
  ])('at once (%j) has no more than so many rights asked about: %d', async (query, most) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let asked = 0;
    const authorizer = {
      authorize: async () => {
        asked += 1;
        await promise;
        return { allowed: true, reason: '' };
      },
    };
    const { app } = face({
      gateway,
      authorizer,
      // At once, as a token that was authenticated before.
      authenticator: () => ({ username: 'alice', groups: [], via: 'token' }),
      settings: { maxInFlightPerUser: 10 },
    });
    const answers = Array.from({ length: 80 }, (_, index) =>
      ask(app, `/api/v1/pods${query}`, as('alice', { 'impersonate-user': `bob-${index}` })),
    );
    const refused = (await Promise.race([Promise.all(answers.slice(most)), ...answers.slice(0, most)])) as Answer[];
    expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([429]));
    expect(asked).toBe(most);
    resolve();
    for (const { status } of await Promise.all(answers.slice(0, most))) expect(status).toBe(200);
  });

  test('in one request is told how many they may be', async () => {
    const { app, asked } = face({ gateway });
    const { headers } = as('alice', { 'impersonate-user': 'bob' });
    const ofMany = (count: number): Promise<Answer> => {
      const groups = Array.from({ length: count }, (_, index) => `g-${index}`);
      return ask(app, '/api/v1/pods', { headers: { ...headers, 'impersonate-group': groups } });
    };
    expect((await ofMany(99)).status).toBe(200);
    expect(asked).toHaveLength(100);
    const answer = await ofMany(100);
    expect([answer.status, answer.json()['message']]).toEqual([400, expect.stringContaining('more than 100 names')]);
    expect(asked).toHaveLength(100);
  });
});

describe('who is nobody', () => {
  test.each([resourcePath, '/metrics', '/nowhere', '/', '/livezz', '/LIVEZ', '/swagger', '/.well-known'])(
    'has no answer at %s but 401 with the challenge of RFC 6750',
    async (path) => {
      const { app, handled } = face();
      const answer = await ask(app, path);
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toBe('Bearer realm="platform"');
      expect(answer.json()).toEqual({
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: 'Unauthorized',
        reason: 'Unauthorized',
        code: 401,
      });
      expect(handled).toEqual([]);
    },
  );

  test.each(['/livez', '/kapis/version', '/oauth/open', '/version'])('is answered at %s', async (path) => {
    const { app } = face({ routes: [doing((_, res) => void res.end(), path)] });
    expect((await ask(app, path)).status).toBe(200);
  });

  test('is no longer nobody on an open path with a good token where that counts, and a bad one does no harm', async () => {
    const { app, handled } = face();
    for (const [path, username] of [
      ['/livez?verbose', 'alice'],
      ['/livez?verbose', 'bad'],
      ['/livez', 'alice'],
    ] as const)
      expect((await ask(app, path, as(username))).status).toBe(200);
    expect(handled.map(({ user }) => user?.username)).toEqual(['alice', undefined, undefined]);
  });
});

test.each([resourcePath, '/livez?verbose'])(
  'a request of %s beyond those that may wait for authentication is 429, and is not served with a late identity',
  async (path) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const usernames = ['alice', 'bob', 'carol'];
    const authenticator: ChainOptions['authenticator'] = async () => {
      const username = usernames.shift() ?? '';
      await promise;
      return { username, groups: [], via: 'token' };
    };
    // Twice the share may wait.
    const { app, handled } = face({ authenticator, settings: { maxInFlightPerUser: 1 } });
    const responses = Array.from({ length: 3 }, () => ask(app, path));
    const refused = await Promise.race(responses);
    expect(refused.status).toBe(429);
    expect(handled).toEqual([]);
    resolve();
    expect((await Promise.all(responses)).filter(({ status }) => status === 200)).toHaveLength(2);
    expect(handled.map(({ user }) => user?.username)).toEqual(['alice', 'bob']);
  },
);

// evidence: token-in-query
test.each([resourcePath, '/livez', '/oauth/open'])('a token in the query of %s is 400', async (path) => {
  const { app, handled } = face();
  const answer = await ask(app, `${path}?access_token=alice`, as('alice'));
  expect(answer.status).toBe(400);
  // RFC 6750 sections 3 and 3.1.
  expect(answer.headers['www-authenticate']).toBe('Bearer realm="platform", error="invalid_request"');
  expect(handled).toEqual([]);
});

describe('who has an identity', () => {
  test.each([
    ['/metrics', [{ verb: 'get', path: '/metrics' }]],
    ['/nowhere', [{ verb: 'get', path: '/nowhere' }]],
    // What a path below /kapis reads is another resource, which its handler asks about.
    [resourcePath, []],
    ['/apis', []],
    ['/', []],
    [
      '/apis/resources.platform.io/v1alpha3/nodes/n1',
      [{ verb: 'get', group: 'resources.platform.io', resource: 'nodes', subresource: '', namespace: '', name: 'n1' }],
    ],
  ])('is asked at %s for the right to %j', async (path, attributes) => {
    const { app, asked } = face();
    await ask(app, path, as('alice'));
    expect(asked).toEqual(attributes);
  });

  // evidence: access-review-each-request
  test('and has no right is 403 before any handler, also where nothing is', async () => {
    const { app, handled } = face({ allowed: false });
    for (const path of ['/metrics', '/nowhere', '/apis/resources.platform.io/v1alpha3/nodes'])
      expect((await ask(app, path, as('alice'))).status).toBe(403);
    expect(handled).toEqual([]);
  });

  test('is refused before it is asked about when too many are there', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const entered = Promise.withResolvers<void>();
    const held = doing(async (_, res) => {
      entered.resolve();
      await promise;
      res.end();
    }, '/metrics');
    const { app, asked } = face({ settings: { maxInFlightPerUser: 1 }, routes: [held] });
    const first = ask(app, '/metrics', as('alice'));
    await entered.promise;
    expect((await ask(app, '/metrics', as('alice'))).status).toBe(429);
    resolve();
    expect((await first).status).toBe(200);
    expect(asked).toHaveLength(1);
  });
});

describe('a method that there is not', () => {
  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PURGE'])(
    '%s is 405 with those that there are',
    async (method) => {
      const answer = await ask(face().app, resourcePath, { ...as('alice'), method });
      expect(answer).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
      expect(answer.json()).toMatchObject({ kind: 'Status', reason: 'MethodNotAllowed', code: 405 });
    },
  );

  test('names all methods of several routes', async () => {
    const routes = [doing(() => undefined), doing(() => undefined, '/kapis/version', 'post')];
    const answer = await ask(face({ routes }).app, '/kapis/version', { method: 'DELETE' });
    expect(answer.headers.allow).toBe('GET, HEAD, POST');
  });

  test('is refused as the strictest of several routes demands', async () => {
    const path = '/kapis/version';
    const routes = [doing(() => undefined), { ...doing(() => undefined, path, 'post'), access: authorizedByPath }];
    const { app } = face({ routes, allowed: false });
    expect((await ask(app, path, { method: 'DELETE' })).status).toBe(401);
    expect((await ask(app, path, { method: 'DELETE', ...as('alice') })).status).toBe(403);
  });
});

test('HEAD is GET without the body', async () => {
  const { app } = face();
  const [get, head] = [await ask(app, '/livez'), await ask(app, '/livez', { method: 'HEAD' })];
  expect([get.status, head.status, get.text, head.text]).toEqual([200, 200, 'answered', '']);
});
