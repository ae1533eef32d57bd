/**
 * Requests forwarded to kube-apiserver and their responses (docs/reference/gateway.md), with faults and attacks.
 * kube-apiserver is a fake.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import http2, { type ClientHttp2Stream, type IncomingHttpHeaders } from 'node:http2';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { text } from 'node:stream/consumers';
import { checked, type AppResponse } from '../fakes/request.ts';
import { FakeKubeApiserver, ownToken } from '../fakes/upstream.ts';
import { talkOver } from '../fakes/talk.ts';
import { login, startLab, type LabRequest, type Lab, type Way } from '../labs/conformance/lab.ts';

const kube = new FakeKubeApiserver();
/** Users, groups and extras that alice is allowed to impersonate, by resource and name. */
const allowed = new Set<string>();

let lab: Lab;
let token: string;
let bearer: { authorization: string };
beforeAll(async () => {
  lab = await startLab({ kubeApiserver: await kube.listen() });
  lab.cluster.respond('/apis/authorization.k8s.io/v1/subjectaccessreviews', ({ spec }) => {
    const { resourceAttributes: attributes } = spec as { resourceAttributes?: Record<string, string> };
    const { verb, group, resource, subresource, namespace, name } = attributes ?? {};
    const what = [group, resource, subresource, namespace, name].filter(Boolean).join('/');
    return { status: { allowed: verb !== 'impersonate' || allowed.has(what) } };
  });
  token = String((await lab.token(login)).json()['access_token']);
  bearer = { authorization: `Bearer ${token}` };
});
afterAll(async () => {
  await lab.stop();
  kube.close();
});
beforeEach(() => {
  kube.taken();
  kube.serve = (_, res) => void res.end('{}');
});

const pods = '/api/v1/namespaces/default/pods';
const send = (path: string, { headers, ...more }: LabRequest = {}): Promise<AppResponse> =>
  lab.gateway(path, { ...more, headers: { ...bearer, ...headers } });

/** Returns the only request that kube-apiserver received. */
function onlyRequest(): ReturnType<FakeKubeApiserver['taken']>[number] {
  const [one, ...more] = kube.taken();
  if (one === undefined || more.length > 0) throw new Error(`${more.length + (one ? 1 : 0)} requests arrived`);
  return one;
}

/** Sends bytes and returns everything received until the server closes the connection or is silent for a while. */
async function exchange(bytes: string, silence = 300): Promise<string> {
  const socket = net.connect(lab.ports.http, '127.0.0.1').setEncoding('latin1');
  let received = '';
  socket.on('data', (chunk: string) => (received += chunk));
  socket.on('error', () => undefined);
  socket.write(bytes, 'latin1');
  const closed = once(socket, 'close');
  let before: number;
  do {
    before = received.length;
    await Promise.race([closed, sleep(silence)]);
  } while (!socket.destroyed && (socket.bytesRead === 0 || received.length > before));
  socket.destroy();
  return received;
}

const statuses = (received: string): number[] =>
  [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => Number(code));

describe('a request forwarded to kube-apiserver', () => {
  test("a request forwarded to kube-apiserver impersonates the caller and has the server's own credential", async () => {
    expect((await send(pods)).status).toBe(200);
    const { headers } = onlyRequest();
    expect(headers.get('authorization')).toEqual([ownToken]);
    expect(headers.get('impersonate-user')).toEqual(['alice']);
    expect(headers.get('impersonate-group')).toEqual(['readers']);
    expect(headers.get('impersonate-uid')).toHaveLength(1);
    expect(headers.get('x-forwarded-for')).toEqual(['127.0.0.1']);
  });

  test('a request forwarded to kube-apiserver contains no identity headers or credentials of the caller', async () => {
    await send(pods, {
      headers: {
        cookie: '__Secure-login=secret',
        'x-remote-user': 'system:admin',
        'X-Remote-Group': ['system:masters', 'other'],
        'x-remote-extra-scopes': 'all',
        'x-forwarded-for': '203.0.113.1',
        'x-real-ip': '203.0.113.1',
        'proxy-authorization': 'Basic eDp5',
        te: 'trailers',
        'keep-alive': 'timeout=5',
        'http2-settings': 'AAMAAABk',
        accept: 'application/json;as=Table',
        'X-Own': 'kept',
      },
    });
    const { headers } = onlyRequest();
    expect([...headers.keys()].toSorted()).toEqual([
      'accept',
      'audit-id',
      'authorization',
      'host',
      'impersonate-group',
      'impersonate-uid',
      'impersonate-user',
      'x-forwarded-for',
      'x-own',
    ]);
    expect(headers.get('x-forwarded-for')).toEqual(['127.0.0.1']);
    expect(headers.get('accept')).toEqual(['application/json;as=Table']);
    expect(JSON.stringify([...headers])).not.toContain(token);
  });

  test.each([
    'Impersonate-User, Impersonate-Group, Impersonate-Uid, Authorization',
    'keep-alive, impersonate-user , X-Own',
    'close,IMPERSONATE-USER,audit-id,host,x-forwarded-for',
  ])(
    'a request forwarded to kube-apiserver keeps the server\'s own headers despite "Connection: %s"',
    async (connection) => {
      await send(pods, { headers: { connection, 'x-own': 'of this connection' } });
      const { headers } = onlyRequest();
      expect(headers.get('impersonate-user')).toEqual(['alice']);
      expect(headers.get('impersonate-group')).toEqual(['readers']);
      expect(headers.get('authorization')).toEqual([ownToken]);
      expect(headers.get('host')).toHaveLength(1);
      expect(headers.get('x-own')).toEqual(connection.includes('X-Own') ? undefined : ['of this connection']);
    },
  );

  test('a request forwarded to kube-apiserver impersonates the caller over HTTP/2, without pseudo-headers and cookies', async () => {
    const [headers] = await overHTTP2(pods, { cookie: ['a=b', 'c=d'], 'x-remote-user': 'root' });
    expect(headers[':status']).toBe(200);
    const seen = onlyRequest();
    expect(seen.headers.get('impersonate-user')).toEqual(['alice']);
    expect([...seen.headers.keys()].filter((name) => /^:|cookie|x-remote/.test(name))).toEqual([]);
    expect(seen.url).toBe(pods);
  });

  test.each(['/api', '/api/v1/nodes', '/apis', '/apis/apps/v1/deployments', '/openapi/v2', '/openapi/v3', '/version'])(
    'a request for a path of kube-apiserver gets 401 without a valid token: %s',
    async (path) => {
      expect((await lab.gateway(path)).status).toBe(401);
      expect((await lab.gateway(path, { headers: { authorization: 'Bearer x.y.z' } })).status).toBe(401);
      expect((await send(`${path}?access_token=${token}`)).status).toBe(400);
      expect((await send(`${path}?a=b&%61ccess_token=x`)).status).toBe(400);
      expect(kube.taken()).toEqual([]);
    },
  );

  test('the aggregated API server forwards no requests to kube-apiserver', async () => {
    for (const path of ['/api/v1/nodes', '/apis/apps/v1/deployments', '/openapi/v3/api/v1', '/version'])
      await lab.aggregated(path);
    expect(kube.taken()).toEqual([]);
  });
});

describe('an impersonation request', () => {
  let tests = 0;
  let name: string;
  let bob: { 'impersonate-user': string };
  // A new name for each test, because reviews are cached for seconds.
  beforeEach(() => {
    allowed.clear();
    name = `bob-${(tests += 1)}`;
    bob = { 'impersonate-user': name };
  });

  test.each([' bob', 'bob '])(
    'an impersonation request with leading or trailing white space in the user name gets 400 over HTTP/2: %j',
    async (user) => {
      allowed.add(`users/${user}`);
      const session = http2.connect(`https://127.0.0.1:${lab.ports.https}`, { rejectUnauthorized: false });
      const stream = session.request({ ':path': pods, ...bearer, 'impersonate-user': user });
      const [{ ':status': status }] = (await once(stream, 'response')) as [IncomingHttpHeaders];
      session.destroy();
      expect(status).toBe(400);
      expect(kube.seen).toEqual([]);
    },
  );

  test('an impersonation request is rejected if the caller is not allowed to impersonate the user', async () => {
    const response = await send(pods, { headers: bob });
    expect(response.status).toBe(403);
    expect(response.json()).toMatchObject({ kind: 'Status', reason: 'Forbidden' });
    expect(kube.taken()).toEqual([]);
  });

  test('an impersonation request is forwarded as the requested user, not as the caller', async () => {
    const names = [`users/${name}`, 'groups/dev', 'groups/ops'];
    const more = ['authentication.k8s.io/uids/u-7', 'authentication.k8s.io/userextras/example.com/team/red'];
    for (const one of [...names, ...more]) allowed.add(one);
    const headers = {
      ...bob,
      'Impersonate-Group': ['dev', 'ops'],
      'impersonate-uid': 'u-7',
      'impersonate-extra-example.com%2fteam': 'red',
    };
    expect((await send(pods, { headers })).status).toBe(200);
    const seen = onlyRequest().headers;
    expect(seen.get('impersonate-user')).toEqual([name]);
    expect(seen.get('impersonate-group')).toEqual(['dev', 'ops']);
    expect(seen.get('impersonate-uid')).toEqual(['u-7']);
    expect(seen.get('impersonate-extra-example.com%2fteam')).toEqual(['red']);
    expect(seen.get('authorization')).toEqual([ownToken]);
  });

  test('an impersonation request is forwarded with exactly the authorized extra keys', async () => {
    const extra = 'authentication.k8s.io/userextras';
    allowed.add(`users/${name}`);
    for (const one of ['SCOPES/all', '__proto__/x', 'a/1', 'a/2']) allowed.add(`${extra}/${one}`);
    const headers = {
      ...bob,
      'impersonate-extra-%53%43%4f%50%45%53': 'all',
      'impersonate-extra-__proto__': 'x',
      'impersonate-extra-%61': '1',
      'impersonate-extra-a': '2',
    };
    expect((await send(pods, { headers })).status).toBe(200);
    const sent = onlyRequest().headers;
    expect(sent.get('impersonate-extra-%53%43%4f%50%45%53')).toEqual(['all']);
    expect(sent.get('impersonate-extra-__proto__')).toEqual(['x']);
    expect(sent.get('impersonate-extra-a')).toEqual(['1', '2']);
  });

  test.each<[string, Record<string, string | string[]>]>([
    ['one of several groups', { 'impersonate-group': ['dev', 'none'] }],
    ['a uid', { 'impersonate-uid': 'u-8' }],
    ['an extra', { 'impersonate-extra-scopes': 'all' }],
  ])(
    'an impersonation request is rejected for %s that the caller is not allowed to impersonate',
    async (_, headers) => {
      for (const one of [`users/${name}`, 'groups/dev']) allowed.add(one);
      expect((await send(pods, { headers: { ...bob, ...headers } })).status).toBe(403);
      expect(kube.taken()).toEqual([]);
    },
  );

  test('the right to impersonate a ServiceAccount in its namespace allows an impersonation request for the user of the ServiceAccount', async () => {
    const robot = { 'impersonate-user': `system:serviceaccount:ci:${name}` };
    expect((await send(pods, { headers: { ...robot, 'impersonate-group': 'dev' } })).status).toBe(403);
    allowed.add(`serviceaccounts/ci/${name}-2`);
    expect((await send(pods, { headers: { 'impersonate-user': `${robot['impersonate-user']}-2` } })).status).toBe(200);
    const seen = onlyRequest().headers;
    expect(seen.get('impersonate-user')).toEqual([`${robot['impersonate-user']}-2`]);
    // kube-apiserver adds the groups of ServiceAccounts.
    expect(seen.get('impersonate-group')).toBeUndefined();
  });

  test('a request to impersonate the gateway itself is rejected whatever rights the caller has', async () => {
    allowed.add('serviceaccounts/platform-system/platform-apiserver').add(`users/${name}`);
    const own = 'system:serviceaccount:platform-system:platform-apiserver';
    const response = await send(pods, { headers: { 'impersonate-user': own } });
    expect(response.status).toBe(403);
    expect(response.json()['message']).toContain('it is the identity of the gateway itself');
    expect(kube.taken()).toEqual([]);
  });

  test.each<[string, Record<string, string | string[]>]>([
    ['a group without a user', { 'impersonate-user': [], 'impersonate-group': 'dev' }],
    ['an extra without a user', { 'impersonate-user': [], 'impersonate-extra-a': 'b' }],
    ['an empty user name', { 'impersonate-user': '' }],
    ['two users', { 'impersonate-user': ['bob', 'eve'] }],
    ['two uids', { 'impersonate-uid': ['a', 'b'] }],
    ['a group without a name', { 'impersonate-group': '' }],
    ['a header unknown to kube-apiserver', { 'impersonate-groups': 'dev' }],
    ['an extra with a malformed key', { 'impersonate-extra-%zz': 'b' }],
    ['an extra with a line break in its key', { 'impersonate-extra-a%0d%0ab': 'b' }],
  ])('an impersonation request gets 400 for %s', async (_, headers) => {
    for (const one of [`users/${name}`, 'groups/dev', 'users/bob', 'users/eve']) allowed.add(one);
    expect((await send(pods, { headers: { ...bob, ...headers } })).status).toBe(400);
    expect(kube.taken()).toEqual([]);
  });

  test.each<[string, Record<string, string>]>([
    ['users', { 'impersonate-user': 'bob' }],
    ['groups', { 'impersonate-group': 'bob' }],
    ['uids.authentication.k8s.io', { 'impersonate-uid': 'bob' }],
    ['userextras.authentication.k8s.io', { 'impersonate-extra-team': 'bob' }],
  ])(
    'an impersonation request for a path of this server gets 403 with a message about %s',
    async (resource, headers) => {
      for (const one of ['users/bob', 'groups/bob']) allowed.add(one);
      const response = await send('/kapis/resources.platform.io/v1alpha3/nodes', { headers });
      expect(response.status).toBe(403);
      expect(response.json()['message']).toContain(`${resource} "bob" is forbidden`);
    },
  );
});

describe('the request target', () => {
  test.each([
    '/api',
    '/api/',
    '/api/v1/pods?labelSelector=a%3Db%2Cc&limit=5&fieldSelector=x!%3Dy&&=&timeout=nonsense',
    '/apis/apps/v1/namespaces/a/deployments/b?dryRun=All&dryRun=All&fieldManager=k+c',
    '/%61pi/v1/nodes',
    '/api/v1/..;/secrets',
    '/api/v1/nodes?raw=%zz&caf%c3%A9=%FF&{}|[]"`',
    '/api/v1/namespaces/d/services/https:s:web/proxy/a//b%2Fc;x=1/?q=%2e%2e/',
    '/openapi/v3/apis/apps/v1?hash=AB',
  ])('the request target is forwarded unchanged: %s', async (path) => {
    await exchange(`GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`);
    expect(onlyRequest().url).toBe(path);
  });

  test('the request target is forwarded without the host of an absolute URL', async () => {
    const absolute = 'http://169.254.169.254/api/v1/pods?limit=1';
    await exchange(
      `GET ${absolute} HTTP/1.1\r\nHost: b\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
    );
    const { url, headers } = onlyRequest();
    expect(url).toBe('/api/v1/pods?limit=1');
    expect(headers.get('host')?.[0]).toMatch(/^127\.0\.0\.1:/);
  });

  test.each([
    '/api/../kapis/version',
    '/api/v1/%2e%2e/%2e%2e/metrics',
    '/kapis/../api/v1/secrets',
    '/livez/../api/v1/secrets',
    '/oauth/../api/v1/secrets',
    '/oauth/%2e%2e/api/v1/secrets',
    '/.well-known/../api/v1/secrets',
    '//api/v1/secrets',
    '/api//v1/secrets',
    '/api/v1/namespaces/a%2fsecrets',
    '/api/v1\\..\\secrets',
    '/api%2fv1/secrets',
    '/api/v1/secrets%00',
    '/api/v1/namespaces/d/services/s/proxy/../../../../secrets',
    '/api/v1/namespaces/d/services/s/proxy/%2e%2e%2f%2e%2e%2fsecrets',
    '/metrics',
    '/logs/',
    '/debug/pprof/',
    '*',
  ])('the request target is not forwarded if it is ambiguous or not a path of kube-apiserver: %s', async (path) => {
    for (const credential of [`Authorization: Bearer ${token}\r\n`, '']) {
      const received = await exchange(`GET ${path} HTTP/1.1\r\nHost: a\r\n${credential}Connection: close\r\n\r\n`);
      expect(kube.taken()).toEqual([]);
      expect(statuses(received)).not.toEqual([]);
    }
  });

  test.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'the request target is forwarded for the method %s',
    async (method) => {
      expect((await send(pods, { method })).status).toBe(200);
      expect(onlyRequest()).toMatchObject({ method, url: pods });
    },
  );
});

/** Returns a response over HTTP/2 with its body. */
async function overHTTP2(
  path: string,
  headers: Record<string, string | string[]> = {},
  body?: string,
): Promise<[IncomingHttpHeaders, string]> {
  const method = body === undefined ? 'GET' : 'POST';
  const {
    status,
    headers: actual,
    text: content,
  } = await checked(
    lab.open('HTTP/2', path, { method, headers: { ...bearer, ...headers }, ...(body === undefined ? {} : { body }) }),
  );
  return [Object.assign(actual, { ':status': status }), content];
}

describe('a response of kube-apiserver', () => {
  test('a response of kube-apiserver is forwarded unchanged except for hop-by-hop headers and cookies', async () => {
    kube.serve = (_, res) => {
      res.writeHead(
        422,
        'Very Own',
        [
          ['Content-Type', 'application/x-own'],
          ['Warning', '299 - "one"'],
          ['Warning', '299 - "two"'],
          ['Set-Cookie', 'a=b'],
          ['Set-Cookie', 'c=d'],
          ['Alt-Svc', 'h3=":443"'],
          ['Strict-Transport-Security', 'max-age=9; includeSubDomains'],
          ['X-Own', 'kept'],
          ['X-Hop', 'no'],
          ['Connection', 'keep-alive, X-Hop'],
          ['Access-Control-Allow-Origin', '*'],
          ['X-Latin', 'caf\u00e9'],
        ].flat(),
      );
      res.end('\u0000 not JSON');
    };
    const { status, headers, text: body } = await send(pods);
    expect([status, body]).toEqual([422, '\u0000 not JSON']);
    expect(headers).toMatchObject({ 'content-type': 'application/x-own', 'x-own': 'kept', 'x-latin': 'caf\u00e9' });
    expect(headers.warning).toBe('299 - "one", 299 - "two"');
    for (const name of [
      'set-cookie',
      'alt-svc',
      'strict-transport-security',
      'x-hop',
      'access-control-allow-origin',
      'cache-control',
    ])
      expect(headers).not.toHaveProperty(name);
    expect(headers['audit-id']).toBe(onlyRequest().headers.get('audit-id')?.[0]);
    const [again, same] = await overHTTP2(pods);
    expect([again[':status'], same]).toEqual([422, '\u0000 not JSON']);
    expect(again).toMatchObject({ 'content-type': 'application/x-own', 'x-own': 'kept' });
    expect(again['warning']).toBe('299 - "one", 299 - "two"');
    expect(again).not.toHaveProperty('set-cookie');
  });

  test('a response of kube-apiserver has the Audit-Id that the caller sent', async () => {
    await send(pods, { headers: { 'audit-id': 'given-by-the-caller' } });
    expect(onlyRequest().headers.get('audit-id')).toEqual(['given-by-the-caller']);
  });

  test.each([204, 304])('a response of kube-apiserver with status %d has no body', async (status) => {
    kube.serve = (_, res) => void res.writeHead(status).end();
    expect(await send(pods)).toMatchObject({ status, text: '' });
  });

  test('a response of kube-apiserver to HEAD has a length and no body', async () => {
    kube.serve = (_, res) => void res.writeHead(200, { 'content-length': '12' }).end();
    const { headers, text: body } = await send(pods, { method: 'HEAD' });
    expect([headers['content-length'], body]).toEqual(['12', '']);
  });

  test('a response of kube-apiserver keeps its trailers', async () => {
    kube.serve = (_, res) => {
      res.writeHead(200, { trailer: 'x-sum' }).write('body');
      res.addTrailers({ 'x-sum': '7' });
      res.end();
    };
    const request = http.request({
      host: '127.0.0.1',
      port: lab.ports.http,
      path: pods,
      headers: bearer,
      agent: false,
    });
    const [response] = (await once(request.end(), 'response')) as [IncomingMessage];
    expect(await text(response)).toBe('body');
    expect(response.trailers).toEqual({ 'x-sum': '7' });
  });

  test('a response of kube-apiserver gets the standard reason phrase if its reason phrase is malformed', async () => {
    kube.serve = (req) => void req.socket.end('HTTP/1.1 403 N\x01o\r\nContent-Length: 2\r\n\r\nhi', 'latin1');
    const received = await exchange(`GET ${pods} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    expect(received).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n[^]*\r\n\r\nhi$/);
  });

  test.each(['Date', 'Location', 'ETag', 'Content-Type', 'Retry-After'])(
    'a response of kube-apiserver with two %s headers keeps only the first over HTTP/2',
    async (name) => {
      const twice = `${name}: a/b\r\n${name}: c/d\r\n`;
      kube.serve = (req) => {
        req.socket.end(`HTTP/1.1 200 OK\r\n${twice}Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n${twice}\r\n`);
      };
      const [headers, body] = await overHTTP2(pods);
      expect([headers[':status'], headers[name.toLowerCase()], body]).toEqual([200, 'a/b', 'hi']);
    },
  );

  test('a response of kube-apiserver with a status that HTTP/2 does not support is replaced with a 502 response', async () => {
    kube.serve = (_, res) => void res.writeHead(999, { location: '/a', 'audit-id': 'its own' }).end();
    const [headers, body] = await overHTTP2(pods);
    expect([headers[':status'], headers.location, headers['audit-id']]).toEqual([502, undefined, 'its own']);
    expect(JSON.parse(body)).toMatchObject({ reason: 'BadGateway' });
  });

  test('a redirect of kube-apiserver is forwarded and not followed', async () => {
    kube.serve = (_, res) => void res.writeHead(302, { location: '/api/v1/secrets' }).end();
    expect(await send(pods)).toMatchObject({ status: 302, headers: { location: '/api/v1/secrets' } });
    expect(kube.taken()).toHaveLength(1);
  });

  test('a 401 response of kube-apiserver is replaced with a 503 response, except from a server behind a proxy subresource', async () => {
    kube.serve = (_, res) => void res.writeHead(401, { 'www-authenticate': 'Basic' }).end('{}');
    expect((await send(pods)).json()).toMatchObject({ code: 503, reason: 'ServiceUnavailable' });
    const behind = await send('/api/v1/namespaces/d/services/s/proxy/');
    expect([behind.status, behind.headers['www-authenticate']]).toEqual([401, 'Basic']);
  });

  test('a read gets 503 if kube-apiserver closes the connection without a response', async () => {
    kube.serve = (req) => void req.socket.destroy();
    const response = await send(pods);
    expect(response.json()).toMatchObject({ kind: 'Status', code: 503, reason: 'ServiceUnavailable' });
    expect(response.headers['retry-after']).toBe('1');
  });

  test('a write gets 502 without Retry-After if kube-apiserver closes the connection without a response', async () => {
    kube.serve = (req) => void req.socket.destroy();
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const response = await send(pods, { method });
      expect(response.json()).toMatchObject({ kind: 'Status', code: 502, reason: 'BadGateway' });
      expect(response.json()['message']).toMatch(/the outcome of the change is unknown/);
      expect(response.headers).not.toHaveProperty('retry-after');
    }
  });

  test.each(['HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef', 'nonsense\r\n\r\n'])(
    'a response of kube-apiserver that is not valid HTTP is replaced with a 503 response: %j',
    async (bytes) => {
      kube.serve = (req) => void req.socket.end(bytes);
      expect((await send(pods)).status).toBe(503);
    },
  );
});

/** Responds to the first request of each connection and closes the connection at the second. */
const onceEach = (): void => {
  const used = new WeakSet<net.Socket>();
  kube.serve = ({ socket }, res) => {
    if (used.has(socket)) socket.destroy();
    else res.end('a response');
    used.add(socket);
  };
};

describe('a connection to kube-apiserver', () => {
  // The responses of these tests leave connections in an unusable state.
  afterEach(() => kube.cut());

  test('a connection to kube-apiserver that was closed while idle is replaced, and a read on this connection is sent again', async () => {
    onceEach();
    for (const method of ['GET', 'GET', 'HEAD', 'OPTIONS']) expect((await send(pods, { method })).status).toBe(200);
    expect(kube.taken().map(({ method }) => method)).toEqual([
      'GET',
      'GET',
      'GET',
      'HEAD',
      'HEAD',
      'OPTIONS',
      'OPTIONS',
    ]);
  });

  test.each(['POST', 'PUT', 'PATCH', 'DELETE'])(
    'a %s request on a connection to kube-apiserver that was closed while idle gets 502, since kube-apiserver may have executed the request',
    async (method) => {
      onceEach();
      await send(pods);
      expect((await send(pods, { method })).status).toBe(502);
      expect(kube.taken().map((seen) => seen.method)).toEqual(['GET', method]);
    },
  );

  test.each([
    ['together with', 0],
    ['5 ms after', 5],
  ])('a connection to kube-apiserver that delivers extra bytes %s a response is not reused', async (_, delay) => {
    const forged = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged';
    const connections = new Set<net.Socket>();
    kube.serve = ({ socket }) => {
      connections.add(socket);
      const response = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue';
      if (delay === 0) socket.write(response + forged);
      else socket.write(response, () => setTimeout(() => socket.write(forged), delay));
    };
    for (const round of [1, 2, 3]) {
      expect((await send(pods)).text).toBe('true');
      await sleep(4 * delay);
      expect(connections.size).toBe(round);
    }
  });

  test('a connection to kube-apiserver that responded before the end of the request body is not reused', async () => {
    const connections = new Set<net.Socket>();
    kube.serve = ({ socket }) => {
      connections.add(socket);
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue');
    };
    const caller = net.connect(lab.ports.http, '127.0.0.1');
    const talk = talkOver(caller, head('Content-Length: 1000\r\n\r\nGET /api/v1/secrets HTTP/1.1\r\n'));
    await talk.expectUntil('true');
    caller.destroy();
    expect((await send(pods)).text).toBe('true');
    expect(kube.taken().map(({ url }) => url)).toEqual([pods, pods]);
    expect(connections.size).toBe(2);
  });

  test('a connection to kube-apiserver is reused for the next request', async () => {
    const connections = new Set<net.Socket>();
    kube.serve = ({ socket, method }, res) => {
      connections.add(socket);
      res.end(method === 'HEAD' ? undefined : 'a response');
    };
    for (const method of ['GET', 'HEAD', 'POST', 'DELETE', 'GET'])
      await send(pods, { method, ...(method === 'POST' ? { body: 'a' } : {}) });
    expect(connections.size).toBe(1);
  });
});

/** A response that has started, with the data received so far. */
interface Stream {
  readonly received: () => string;
  readonly leave: () => void;
  /** Resolves with true if the response ended completely. */
  readonly ended: Promise<boolean>;
}

const waysByVersion: Readonly<Record<string, Way>> = { 'HTTP/1.1': 'http', 'HTTP/2': 'HTTP/2' };

async function openStream(way: Way, path: string): Promise<Stream> {
  const response = await lab.open(way, path, { headers: bearer });
  let received = '';
  response.setEncoding('utf8').on('data', (chunk: string) => (received += chunk));
  const ended = new Promise<boolean>((resolve) => response.once('close', () => resolve(response.readableEnded)));
  return { received: () => received, leave: () => void response.destroy(), ended };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(5);
}

describe.each(Object.keys(waysByVersion))('a response stream over %s', (version) => {
  const open = (path: string): Promise<Stream> => openStream(waysByVersion[version] as Way, path);

  test('a response stream is forwarded as it arrives, and completes when kube-apiserver completes it', async () => {
    let response: http.ServerResponse | undefined;
    kube.serve = (_, res) => (response = res).flushHeaders();
    const stream = await open(`${pods}?watch=true`);
    for (const line of ['one\n', 'two\n']) {
      response?.write(line);
      await until(() => stream.received().endsWith(line));
    }
    response?.end();
    expect([await stream.ended, stream.received()]).toEqual([true, 'one\ntwo\n']);
  });

  test.each([`${pods}?watch=true`, pods, `${pods}/p/log?follow=true`])(
    'a response stream to the client is aborted when kube-apiserver aborts its response: %s',
    async (path) => {
      kube.serve = (req, res) => {
        res.write('part', () => setTimeout(() => req.socket.destroy(), 20));
      };
      const stream = await open(path);
      expect([await stream.ended, stream.received()]).toEqual([false, 'part']);
    },
  );

  test('a response stream of kube-apiserver is aborted when the client disconnects', async () => {
    let isLeft = false;
    kube.serve = (_, res) => {
      res.once('close', () => (isLeft = true));
      res.write('part');
    };
    const stream = await open(`${pods}/p/log?follow=true`);
    stream.leave();
    await until(() => isLeft);
    expect(await stream.ended).toBe(false);
  });
});

/** Opens connections whose response has started but is not read; `read` reads to its end and returns the length. */
const unread: Record<string, (path: string) => Promise<{ read: () => Promise<number> }>> = {
  'HTTP/1.1': async (path) => {
    const socket = net.connect(lab.ports.http, '127.0.0.1');
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`);
    await once(socket, 'readable');
    return { read: () => lengthOf(socket) };
  },
  'HTTP/2': async (path) => {
    const session = http2.connect(`https://127.0.0.1:${lab.ports.https}`, { rejectUnauthorized: false });
    const stream = session.request({ ':path': path, ...bearer });
    await once(stream, 'response');
    return { read: () => lengthOf(stream).finally(() => session.close()) };
  },
};

async function lengthOf(stream: AsyncIterable<unknown>): Promise<number> {
  let length = 0;
  for await (const chunk of stream) length += (chunk as Buffer).length;
  return length;
}

test.each(Object.keys(unread))(
  'the gateway stops reading from kube-apiserver while a client over %s does not read',
  async (version) => {
    const chunk = Buffer.alloc(64 * 1024, 'x');
    const total = 64 * 1024 * 1024;
    let sent = 0;
    kube.serve = (_, res) => {
      const write = (): void => {
        while (sent < total) {
          sent += chunk.length;
          if (!res.write(chunk)) {
            res.once('drain', write);
            return;
          }
        }
        res.end();
      };
      write();
    };
    const { read } = await (unread[version] as (typeof unread)[string])(pods);
    for (let before = -1; before !== sent;) {
      before = sent;
      await sleep(200);
    }
    // The buffers of both connections hold the data sent so far.
    expect(sent).toBeLessThan(total / 2);
    expect(await read()).toBeGreaterThanOrEqual(total);
  },
);

/** Returns a POST with these lines after its first headers. */
const head = (lines: string, path = pods): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n${lines}`;

describe('a request body', () => {
  const expecting = 'Expect: 100-continue\r\nContent-Length: 4\r\n\r\n';

  test.each<[string, string, Record<string, string>]>([
    ['POST', 'with a length', { 'content-length': '9' }],
    ['POST', 'in chunks', { 'transfer-encoding': 'chunked' }],
    ['DELETE', 'with a length', { 'content-length': '9' }],
    ['DELETE', 'in chunks', { 'transfer-encoding': 'chunked' }],
    ['GET', 'with a length', { 'content-length': '9' }],
    [
      'PATCH',
      'with a Content-Length that the Connection header names',
      { 'content-length': '9', connection: 'content-length' },
    ],
  ])('a request body is forwarded: %s %s', async (method, _, headers) => {
    expect((await send(pods, { method, headers, body: '{"a": 1}\n' })).status).toBe(200);
    expect(await onlyRequest().body).toBe('{"a": 1}\n');
  });

  test('an empty request body is forwarded as empty', async () => {
    await send(pods, { method: 'POST', headers: { 'content-length': '0' } });
    const { headers, body } = onlyRequest();
    expect([headers.get('content-length'), headers.get('transfer-encoding'), await body]).toEqual([
      ['0'],
      undefined,
      '',
    ]);
  });

  test('a request body is forwarded over HTTP/2', async () => {
    const [headers] = await overHTTP2(pods, {}, 'a body');
    expect([headers[':status'], await onlyRequest().body]).toEqual([200, 'a body']);
  });

  test.each([
    ['with Content-Length', 'Content-Length: 1000\r\n\r\n{"half": '],
    ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n9\r\n{"half": \r\n'],
  ])('a request body %s is aborted at kube-apiserver when the client aborts it', async (_, rest) => {
    kube.serve = (req, res) => void req.resume().once('end', () => res.end());
    const socket = net.connect(lab.ports.http, '127.0.0.1');
    socket.write(head(rest));
    await until(() => kube.seen.length === 1);
    await sleep(20);
    socket.destroy();
    await expect(onlyRequest().body).rejects.toThrow('aborted');
  });

  test.each<[string, (stream: ClientHttp2Stream) => void]>([
    ['in the frame with the data', (stream) => stream.end('a body')],
    ['right after the data', (stream) => stream.write('a body', () => stream.end())],
    ['2 ms after the data', (stream) => stream.write('a body', () => setTimeout(() => stream.end(), 2))],
  ])(
    'a request body over HTTP/2 whose stream ends %s is forwarded completely for 80 concurrent requests',
    async (_, sendBody) => {
      kube.serve = (req, res) => void req.resume().once('end', () => res.end('done'));
      const session = http2.connect(`https://127.0.0.1:${lab.ports.https}`, { rejectUnauthorized: false });
      const responses = await Promise.all(
        Array.from({ length: 80 }, async () => {
          const stream = session.request({ ':path': pods, ':method': 'POST', ...bearer });
          sendBody(stream);
          const [response] = (await once(stream, 'response')) as [IncomingHttpHeaders];
          return [response[':status'], await text(stream)].join(' ');
        }),
      );
      session.close();
      expect(new Set(responses)).toEqual(new Set(['200 done']));
      expect(new Set(await Promise.all(kube.taken().map(({ body }) => body)))).toEqual(new Set(['a body']));
    },
  );

  test('a request body over HTTP/2 is aborted at kube-apiserver when the client aborts it', async () => {
    kube.serve = (req, res) => void req.resume().once('end', () => res.end());
    const session = http2.connect(`https://127.0.0.1:${lab.ports.https}`, { rejectUnauthorized: false });
    const stream = session.request({ ':path': pods, ':method': 'POST', ...bearer });
    stream.on('error', () => undefined);
    stream.write('{"half": ');
    await until(() => kube.seen.length === 1);
    await sleep(20);
    // `close` would make Node end the body first.
    stream.destroy();
    await expect(onlyRequest().body).rejects.toThrow('aborted');
    session.destroy();
  });

  test('the response of kube-apiserver is forwarded even if kube-apiserver does not read the request body', async () => {
    const refusal = 'HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large';
    kube.serve = ({ socket }) => void socket.end(refusal);
    const response = await send(pods, { method: 'POST', body: Buffer.alloc(4 * 1024 * 1024) });
    expect(response).toMatchObject({ status: 413, text: 'too large' });
  });

  test('a request body that kube-apiserver does not read does not affect the next request', async () => {
    const refusal = 'HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large';
    kube.serve = (req, res) => (req.method === 'POST' ? void req.socket.end(refusal) : void res.end('next'));
    const length = 4 * 1024 * 1024;
    const socket = net.connect(lab.ports.http, '127.0.0.1');
    const talk = talkOver(socket, head(`Content-Length: ${length}\r\n\r\n`));
    const half = Buffer.alloc(length / 2);
    socket.write(half);
    await talk.expectUntil('too large');
    socket.write(half);
    socket.write(`GET ${pods} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    await talk.expectUntil('next');
    expect(statuses(talk.received())).toEqual([413, 200]);
    socket.destroy();
  });

  test('a client that sends Expect: 100-continue gets 100 Continue only after the request is accepted', async () => {
    const socket = net.connect(lab.ports.http, '127.0.0.1').setEncoding('latin1');
    socket.write(head(expecting));
    expect((await once(socket, 'data'))[0]).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    socket.write('body');
    expect((await once(socket, 'data'))[0]).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
    const { headers, body } = onlyRequest();
    expect([headers.get('expect'), await body]).toEqual([undefined, 'body']);
    const last = await exchange(head(`Connection: close\r\n${expecting}body`));
    expect(statuses(last)).toEqual([100, 200]);
    expect(last).toMatch(/\r\nConnection: close\r\n/i);
    expect(await onlyRequest().body).toBe('body');
    const old = await exchange(head(expecting).replace('HTTP/1.1', 'HTTP/1.0').concat('body'));
    expect(statuses(old)).toEqual([200]);
    expect(await onlyRequest().body).toBe('body');
    const refused = await exchange(head(expecting, `${pods}?access_token=x`));
    expect(statuses(refused)).toEqual([400]);
    expect(refused).toMatch(/\r\nConnection: close\r\n/i);
  });
});

describe('a smuggled request', () => {
  const inner = 'GET /api/v1/secrets HTTP/1.1\r\nHost: a\r\n\r\n';
  test.each([
    ['Content-Length before chunks', `Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`],
    ['chunks before Content-Length', `Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${inner}`],
    ['two lengths', `Content-Length: 0\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`],
    ['a list of lengths', `Content-Length: 0, ${inner.length}\r\n\r\n${inner}`],
    ['a length with a sign', `Content-Length: +${inner.length}\r\n\r\n${inner}`],
    ['a hexadecimal length', `Content-Length: 0x0\r\n\r\n${inner}`],
    ['a negative length', `Content-Length: -1\r\n\r\n${inner}`],
    ['an unknown coding', `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${inner}`],
    ['a coding before chunked', `Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${inner}`],
    [
      'a coding before chunked in a separate header',
      `Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
    ],
    ['chunked that is not the last coding', `Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${inner}`],
    [
      'two Transfer-Encoding headers',
      `Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${inner}`,
    ],
    ['a space before the colon', `Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${inner}`],
    ['a folded header', `X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`],
    ['a bare line feed', `X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`],
    ['a bare carriage return', `X: y\rImpersonate-User: root\r\n\r\n${inner}`],
    ['a NUL', `X: y\0z\r\n\r\n${inner}`],
    ['a chunk size with a sign', `Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n${inner}`],
    ['a chunk size that overflows', `Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n${inner}`],
    ['a chunk that ends with a bare line feed', `Transfer-Encoding: chunked\r\n\r\n0\n\n${inner}`],
    ['two Host headers', `Host: b\r\nContent-Length: 0\r\n\r\n${inner}`],
  ])('a smuggled request hidden by %s is rejected', async (_, lines) => {
    const received = await exchange(head(lines));
    for (const status of statuses(received)) expect([400, 401, 501]).toContain(status);
    // The gateway may have forwarded the outer request, but not the smuggled request.
    expect(kube.taken().map(({ url }) => url)).not.toContain('/api/v1/secrets');
  });

  test('a smuggled request after an HTTP/1.0 request with chunks is discarded', async () => {
    const lines = `Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`;
    const received = await exchange(head(lines).replace('HTTP/1.1', 'HTTP/1.0'));
    expect(statuses(received)).toEqual([200]);
    expect(received).toMatch(/\r\nConnection: close\r\n/i);
  });

  test('a smuggled request inside a body of declared length is treated as part of the body', async () => {
    const length = `Content-Length: ${inner.length}\r\nConnection: close\r\n\r\n`;
    expect(statuses(await exchange(head(`${length}${inner}`)))).toEqual([200]);
    expect(await onlyRequest().body).toBe(inner);
  });

  test.each(['h2c', 'TLS/1.0', 'own'])(
    'a smuggled request after an upgrade to the protocol "%s" is rejected because it has no credentials',
    async (protocol) => {
      const upgrade = `Connection: Upgrade, HTTP2-Settings\r\nUpgrade: ${protocol}\r\nHTTP2-Settings: AAMAAABk\r\n`;
      const received = await exchange(head(`${upgrade}Content-Length: 0\r\n\r\n${inner}`));
      expect(statuses(received)[0]).toBe(200);
      const seen = onlyRequest();
      expect([seen.url, seen.headers.get('upgrade'), seen.headers.get('http2-settings')]).toEqual([
        pods,
        undefined,
        undefined,
      ]);
    },
  );
});
