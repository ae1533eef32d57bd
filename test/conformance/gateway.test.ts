/** What is passed on to kube-apiserver, and what comes back (docs/gateway.md): faults and attacks, over a server in its place. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import http2, { type ClientHttp2Stream, type IncomingHttpHeaders } from 'node:http2';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { text } from 'node:stream/consumers';
import { checked, type Answer } from '../fakes/ask.ts';
import { FakeKubeApiserver, ownToken } from '../fakes/upstream.ts';
import { talkOver } from '../fakes/talk.ts';
import { login, startLab, type Ask, type Lab, type Way } from '../labs/conformance/lab.ts';

const kube = new FakeKubeApiserver();
/** Whom alice may impersonate, by resource and name. */
const mayBe = new Set<string>();

let lab: Lab;
let token: string;
let bearer: { authorization: string };
beforeAll(async () => {
  lab = await startLab({ kubeApiserver: await kube.listen() });
  lab.cluster.respond('/apis/authorization.k8s.io/v1/subjectaccessreviews', ({ spec }) => {
    const { resourceAttributes: asked } = spec as { resourceAttributes?: Record<string, string> };
    const { verb, group, resource, subresource, name } = asked ?? {};
    const what = [group, resource, subresource, name].filter(Boolean).join('/');
    return { status: { allowed: verb !== 'impersonate' || mayBe.has(what) } };
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
  kube.answer = (_, res) => void res.end('{}');
});

const pods = '/api/v1/namespaces/default/pods';
const ask = (path: string, { headers, ...more }: Ask = {}): Promise<Answer> =>
  lab.gateway(path, { ...more, headers: { ...bearer, ...headers } });

/** The one request that arrived. */
function passed(): ReturnType<FakeKubeApiserver['taken']>[number] {
  const [one, ...more] = kube.taken();
  if (one === undefined || more.length > 0) throw new Error(`${more.length + (one ? 1 : 0)} requests arrived`);
  return one;
}

/** Everything that the server says to these bytes until it closes, or has been silent for a while. */
async function said(bytes: string, silence = 300): Promise<string> {
  const socket = net.connect(lab.ports.http, '127.0.0.1').setEncoding('latin1');
  let told = '';
  socket.on('data', (chunk: string) => (told += chunk));
  socket.on('error', () => undefined);
  socket.write(bytes, 'latin1');
  const closed = once(socket, 'close');
  let before: number;
  do {
    before = told.length;
    await Promise.race([closed, sleep(silence)]);
  } while (!socket.destroyed && (socket.bytesRead === 0 || told.length > before));
  socket.destroy();
  return told;
}

const statuses = (told: string): number[] => [...told.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => Number(code));

describe('in whose name', () => {
  test('a request is that of the caller, with our own credential', async () => {
    expect((await ask(pods)).status).toBe(200);
    const { headers } = passed();
    expect(headers.get('authorization')).toEqual([ownToken]);
    expect(headers.get('impersonate-user')).toEqual(['alice']);
    expect(headers.get('impersonate-group')).toEqual(['readers']);
    expect(headers.get('impersonate-uid')).toHaveLength(1);
    expect(headers.get('x-forwarded-for')).toEqual(['127.0.0.1']);
  });

  test('nothing of who the caller says to be arrives, nor what proves it', async () => {
    await ask(pods, {
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
    const { headers } = passed();
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
  ])('the header "Connection: %s" takes nothing of ours away', async (connection) => {
    await ask(pods, { headers: { connection, 'x-own': 'of this connection' } });
    const { headers } = passed();
    expect(headers.get('impersonate-user')).toEqual(['alice']);
    expect(headers.get('impersonate-group')).toEqual(['readers']);
    expect(headers.get('authorization')).toEqual([ownToken]);
    expect(headers.get('host')).toHaveLength(1);
    expect(headers.get('x-own')).toEqual(connection.includes('X-Own') ? undefined : ['of this connection']);
  });

  test('over HTTP/2 it is the same, and pseudo-headers and cookies stay here', async () => {
    const [headers] = await overHTTP2(pods, { cookie: ['a=b', 'c=d'], 'x-remote-user': 'root' });
    expect(headers[':status']).toBe(200);
    const seen = passed();
    expect(seen.headers.get('impersonate-user')).toEqual(['alice']);
    expect([...seen.headers.keys()].filter((name) => /^:|cookie|x-remote/.test(name))).toEqual([]);
    expect(seen.url).toBe(pods);
  });

  test.each(['/api', '/api/v1/nodes', '/apis', '/apis/apps/v1/deployments', '/openapi/v2', '/openapi/v3', '/version'])(
    'without an identity %s is 401, and nothing is passed on',
    async (path) => {
      expect((await lab.gateway(path)).status).toBe(401);
      expect((await lab.gateway(path, { headers: { authorization: 'Bearer x.y.z' } })).status).toBe(401);
      expect((await ask(`${path}?access_token=${token}`)).status).toBe(400);
      expect((await ask(`${path}?a=b&%61ccess_token=x`)).status).toBe(400);
      expect(kube.taken()).toEqual([]);
    },
  );

  test('the aggregated face passes nothing on', async () => {
    for (const path of ['/api/v1/nodes', '/apis/apps/v1/deployments', '/openapi/v3/api/v1', '/version'])
      await lab.aggregated(path);
    expect(kube.taken()).toEqual([]);
  });
});

describe('who asks to be somebody else', () => {
  let tests = 0;
  let name: string;
  let bob: { 'impersonate-user': string };
  // Another for each test: reviews are kept for seconds.
  beforeEach(() => {
    mayBe.clear();
    name = `bob-${(tests += 1)}`;
    bob = { 'impersonate-user': name };
  });

  test.each([' bob', 'bob '])(
    'is not the caller for white space at the ends of the name, over HTTP/2: %j',
    async (user) => {
      mayBe.add(`users/${user}`);
      const session = http2.connect(`https://127.0.0.1:${lab.ports.https}`, { rejectUnauthorized: false });
      const stream = session.request({ ':path': pods, ...bearer, 'impersonate-user': user });
      const [{ ':status': status }] = (await once(stream, 'response')) as [IncomingHttpHeaders];
      session.destroy();
      expect(status).toBe(400);
      expect(kube.seen).toEqual([]);
    },
  );

  test('is refused without the right to that name', async () => {
    const answer = await ask(pods, { headers: bob });
    expect(answer.status).toBe(403);
    expect(answer.json()).toMatchObject({ kind: 'Status', reason: 'Forbidden' });
    expect(kube.taken()).toEqual([]);
  });

  test('is that user with the right to each name, and the caller no more', async () => {
    const names = [`users/${name}`, 'groups/dev', 'groups/ops'];
    const more = ['authentication.k8s.io/uids/u-7', 'authentication.k8s.io/userextras/example.com/team/red'];
    for (const one of [...names, ...more]) mayBe.add(one);
    const headers = {
      ...bob,
      'Impersonate-Group': ['dev', 'ops'],
      'impersonate-uid': 'u-7',
      'impersonate-extra-example.com%2fteam': 'red',
    };
    expect((await ask(pods, { headers })).status).toBe(200);
    const seen = passed().headers;
    expect(seen.get('impersonate-user')).toEqual([name]);
    expect(seen.get('impersonate-group')).toEqual(['dev', 'ops']);
    expect(seen.get('impersonate-uid')).toEqual(['u-7']);
    expect(seen.get('impersonate-extra-example.com%2fteam')).toEqual(['red']);
    expect(seen.get('authorization')).toEqual([ownToken]);
  });

  test('has the extra of the very keys that were asked about', async () => {
    const extra = 'authentication.k8s.io/userextras';
    mayBe.add(`users/${name}`);
    for (const one of ['SCOPES/all', '__proto__/x', 'a/1', 'a/2']) mayBe.add(`${extra}/${one}`);
    const headers = {
      ...bob,
      'impersonate-extra-%53%43%4f%50%45%53': 'all',
      'impersonate-extra-__proto__': 'x',
      'impersonate-extra-%61': '1',
      'impersonate-extra-a': '2',
    };
    expect((await ask(pods, { headers })).status).toBe(200);
    const sent = passed().headers;
    expect(sent.get('impersonate-extra-%53%43%4f%50%45%53')).toEqual(['all']);
    expect(sent.get('impersonate-extra-__proto__')).toEqual(['x']);
    expect(sent.get('impersonate-extra-a')).toEqual(['1', '2']);
  });

  test.each<[string, Record<string, string | string[]>]>([
    ['one group too many', { 'impersonate-group': ['dev', 'none'] }],
    ['a uid', { 'impersonate-uid': 'u-8' }],
    ['an extra', { 'impersonate-extra-scopes': 'all' }],
  ])('is refused for %s without a right to it', async (_, headers) => {
    for (const one of [`users/${name}`, 'groups/dev']) mayBe.add(one);
    expect((await ask(pods, { headers: { ...bob, ...headers } })).status).toBe(403);
    expect(kube.taken()).toEqual([]);
  });

  test.each<[string, Record<string, string | string[]>]>([
    ['system:admin', { 'impersonate-user': 'system:admin' }],
    ['a ServiceAccount', { 'impersonate-user': 'system:serviceaccount:kube-system:default' }],
    ['system:masters', { 'impersonate-group': ['dev', 'system:masters'] }],
    ['system:authenticated, which is added anyway', { 'impersonate-group': 'system:authenticated' }],
  ])('is never %s', async (_, headers) => {
    for (const one of [`users/${name}`, 'groups/dev', 'groups/system:masters', 'users/system:admin']) mayBe.add(one);
    mayBe.add('groups/system:authenticated').add('users/system:serviceaccount:kube-system:default');
    expect((await ask(pods, { headers: { ...bob, ...headers } })).status).toBe(403);
    expect(kube.taken()).toEqual([]);
  });

  test.each<[string, Record<string, string | string[]>]>([
    ['a group without a user', { 'impersonate-user': [], 'impersonate-group': 'dev' }],
    ['an extra without a user', { 'impersonate-user': [], 'impersonate-extra-a': 'b' }],
    ['nobody', { 'impersonate-user': '' }],
    ['two users', { 'impersonate-user': ['bob', 'eve'] }],
    ['two uids', { 'impersonate-uid': ['a', 'b'] }],
    ['a group without a name', { 'impersonate-group': '' }],
    ['what kube-apiserver does not know', { 'impersonate-groups': 'dev' }],
    ['an extra of a key that is none', { 'impersonate-extra-%zz': 'b' }],
    ['an extra of a key with a line break', { 'impersonate-extra-a%0d%0ab': 'b' }],
  ])('is told 400 for %s', async (_, headers) => {
    for (const one of [`users/${name}`, 'groups/dev', 'users/bob', 'users/eve']) mayBe.add(one);
    expect((await ask(pods, { headers: { ...bob, ...headers } })).status).toBe(400);
    expect(kube.taken()).toEqual([]);
  });

  test.each<[string, Record<string, string>]>([
    ['users', { 'impersonate-user': 'bob' }],
    ['groups', { 'impersonate-group': 'bob' }],
    ['uids.authentication.k8s.io', { 'impersonate-uid': 'bob' }],
    ['userextras.authentication.k8s.io', { 'impersonate-extra-team': 'bob' }],
  ])('is nobody of these %s on our own paths', async (resource, headers) => {
    for (const one of ['users/bob', 'groups/bob']) mayBe.add(one);
    const answer = await ask('/kapis/resources.platform.io/v1alpha3/nodes', { headers });
    expect(answer.status).toBe(403);
    expect(answer.json()['message']).toContain(`${resource} "bob" is forbidden`);
  });
});

describe('the target', () => {
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
  ])('arrives as it came: %s', async (path) => {
    await said(`GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`);
    expect(passed().url).toBe(path);
  });

  test('is the path of an absolute one', async () => {
    const absolute = 'http://169.254.169.254/api/v1/pods?limit=1';
    await said(`GET ${absolute} HTTP/1.1\r\nHost: b\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`);
    const { url, headers } = passed();
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
  ])('that is ambiguous, or not kube-apiserver\u2019s, is not passed on: %s', async (path) => {
    for (const credential of [`Authorization: Bearer ${token}\r\n`, '']) {
      const told = await said(`GET ${path} HTTP/1.1\r\nHost: a\r\n${credential}Connection: close\r\n\r\n`);
      expect(kube.taken()).toEqual([]);
      expect(statuses(told)).not.toEqual([]);
    }
  });

  test.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('is asked by %s', async (method) => {
    expect((await ask(pods, { method })).status).toBe(200);
    expect(passed()).toMatchObject({ method, url: pods });
  });
});

/** An answer over HTTP/2, with its body. */
async function overHTTP2(
  path: string,
  headers: Record<string, string | string[]> = {},
  body?: string,
): Promise<[IncomingHttpHeaders, string]> {
  const method = body === undefined ? 'GET' : 'POST';
  const {
    status,
    headers: got,
    text: content,
  } = await checked(
    lab.open('HTTP/2', path, { method, headers: { ...bearer, ...headers }, ...(body === undefined ? {} : { body }) }),
  );
  return [Object.assign(got, { ':status': status }), content];
}

describe('an answer', () => {
  test('comes back as it is, but for what is of one connection, and cookies', async () => {
    kube.answer = (_, res) => {
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
    const { status, headers, text: body } = await ask(pods);
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
    expect(headers['audit-id']).toBe(passed().headers.get('audit-id')?.[0]);
    const [again, same] = await overHTTP2(pods);
    expect([again[':status'], same]).toEqual([422, '\u0000 not JSON']);
    expect(again).toMatchObject({ 'content-type': 'application/x-own', 'x-own': 'kept' });
    expect(again['warning']).toBe('299 - "one", 299 - "two"');
    expect(again).not.toHaveProperty('set-cookie');
  });

  test('has the Audit-Id that the caller gave', async () => {
    await ask(pods, { headers: { 'audit-id': 'given-by-the-caller' } });
    expect(passed().headers.get('audit-id')).toEqual(['given-by-the-caller']);
  });

  test.each([204, 304])('of %d has no body', async (status) => {
    kube.answer = (_, res) => void res.writeHead(status).end();
    expect(await ask(pods)).toMatchObject({ status, text: '' });
  });

  test('to HEAD has the length and no body', async () => {
    kube.answer = (_, res) => void res.writeHead(200, { 'content-length': '12' }).end();
    const { headers, text: body } = await ask(pods, { method: 'HEAD' });
    expect([headers['content-length'], body]).toEqual(['12', '']);
  });

  test('keeps its trailers', async () => {
    kube.answer = (_, res) => {
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

  test('whose reason phrase nobody may write has that of its status', async () => {
    kube.answer = (req) => void req.socket.end('HTTP/1.1 403 N\x01o\r\nContent-Length: 2\r\n\r\nhi', 'latin1');
    const told = await said(`GET ${pods} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    expect(told).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n[^]*\r\n\r\nhi$/);
  });

  test.each(['Date', 'Location', 'ETag', 'Content-Type', 'Retry-After'])(
    'with two headers %s has the first over HTTP/2, which has room for one',
    async (name) => {
      const twice = `${name}: a/b\r\n${name}: c/d\r\n`;
      kube.answer = (req) => {
        req.socket.end(`HTTP/1.1 200 OK\r\n${twice}Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n${twice}\r\n`);
      };
      const [headers, body] = await overHTTP2(pods);
      expect([headers[':status'], headers[name.toLowerCase()], body]).toEqual([200, 'a/b', 'hi']);
    },
  );

  test('of a status that HTTP/2 does not have is 502', async () => {
    kube.answer = (_, res) => void res.writeHead(999, { location: '/a', 'audit-id': 'its own' }).end();
    const [headers, body] = await overHTTP2(pods);
    expect([headers[':status'], headers.location, headers['audit-id']]).toEqual([502, undefined, 'its own']);
    expect(JSON.parse(body)).toMatchObject({ reason: 'BadGateway' });
  });

  test('that redirects is not followed', async () => {
    kube.answer = (_, res) => void res.writeHead(302, { location: '/api/v1/secrets' }).end();
    expect(await ask(pods)).toMatchObject({ status: 302, headers: { location: '/api/v1/secrets' } });
    expect(kube.taken()).toHaveLength(1);
  });

  test('of 401 says nothing about the caller, unless it is that of a server behind a proxy subresource', async () => {
    kube.answer = (_, res) => void res.writeHead(401, { 'www-authenticate': 'Basic' }).end('{}');
    expect((await ask(pods)).json()).toMatchObject({ code: 503, reason: 'ServiceUnavailable' });
    const behind = await ask('/api/v1/namespaces/d/services/s/proxy/');
    expect([behind.status, behind.headers['www-authenticate']]).toEqual([401, 'Basic']);
  });

  test('that never comes is 503', async () => {
    kube.answer = (req) => void req.socket.destroy();
    const answer = await ask(pods);
    expect(answer.json()).toMatchObject({ kind: 'Status', code: 503, reason: 'ServiceUnavailable' });
    expect(answer.headers['retry-after']).toBe('1');
  });

  test('that never comes to a change is 502, and nobody is told to try again', async () => {
    kube.answer = (req) => void req.socket.destroy();
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await ask(pods, { method });
      expect(answer.json()).toMatchObject({ kind: 'Status', code: 502, reason: 'BadGateway' });
      expect(answer.json()['message']).toMatch(/not known whether the change was made/);
      expect(answer.headers).not.toHaveProperty('retry-after');
    }
  });

  test.each(['HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef', 'nonsense\r\n\r\n'])(
    'that is no HTTP is 503: %j',
    async (bytes) => {
      kube.answer = (req) => void req.socket.end(bytes);
      expect((await ask(pods)).status).toBe(503);
    },
  );
});

/** Answers the first request of a connection, and ends the connection at the second. */
const onceEach = (): void => {
  const used = new WeakSet<net.Socket>();
  kube.answer = ({ socket }, res) => {
    if (used.has(socket)) socket.destroy();
    else res.end('an answer');
    used.add(socket);
  };
};

describe('a connection to kube-apiserver', () => {
  // What these answers leave of them nobody may use.
  afterEach(() => kube.cut());

  test('that was closed while nobody used it costs a reader nothing', async () => {
    onceEach();
    for (const method of ['GET', 'GET', 'HEAD', 'OPTIONS']) expect((await ask(pods, { method })).status).toBe(200);
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
    'that was closed then costs a %s its answer: it may have been done',
    async (method) => {
      onceEach();
      await ask(pods);
      expect((await ask(pods, { method })).status).toBe(502);
      expect(kube.taken().map((seen) => seen.method)).toEqual(['GET', method]);
    },
  );

  test.each([
    ['at once', 0],
    ['later', 5],
  ])('on which more comes than an answer, %s, is not used again', async (_, delay) => {
    const forged = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged';
    const connections = new Set<net.Socket>();
    kube.answer = ({ socket }) => {
      connections.add(socket);
      const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue';
      if (delay === 0) socket.write(answer + forged);
      else socket.write(answer, () => setTimeout(() => socket.write(forged), delay));
    };
    for (const round of [1, 2, 3]) {
      expect((await ask(pods)).text).toBe('true');
      await sleep(4 * delay);
      expect(connections.size).toBe(round);
    }
  });

  test('on which an answer came before the body had gone is not used again', async () => {
    const connections = new Set<net.Socket>();
    kube.answer = ({ socket }) => {
      connections.add(socket);
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue');
    };
    const caller = net.connect(lab.ports.http, '127.0.0.1');
    const talk = talkOver(caller, head('Content-Length: 1000\r\n\r\nGET /api/v1/secrets HTTP/1.1\r\n'));
    await talk.expectUntil('true');
    caller.destroy();
    expect((await ask(pods)).text).toBe('true');
    expect(kube.taken().map(({ url }) => url)).toEqual([pods, pods]);
    expect(connections.size).toBe(2);
  });

  test('is kept for the next request', async () => {
    const connections = new Set<net.Socket>();
    kube.answer = ({ socket, method }, res) => {
      connections.add(socket);
      res.end(method === 'HEAD' ? undefined : 'an answer');
    };
    for (const method of ['GET', 'HEAD', 'POST', 'DELETE', 'GET'])
      await ask(pods, { method, ...(method === 'POST' ? { body: 'a' } : {}) });
    expect(connections.size).toBe(1);
  });
});

/** An answer that has begun: what was read of it, and how it ends. */
interface Begun {
  readonly told: () => string;
  readonly leave: () => void;
  /** True if it ended as a whole one does. */
  readonly ended: Promise<boolean>;
}

const begin: Readonly<Record<string, Way>> = { 'HTTP/1.1': 'http', 'HTTP/2': 'HTTP/2' };

async function begun(way: Way, path: string): Promise<Begun> {
  const response = await lab.open(way, path, { headers: bearer });
  let told = '';
  response.setEncoding('utf8').on('data', (chunk: string) => (told += chunk));
  const ended = new Promise<boolean>((resolve) => response.once('close', () => resolve(response.readableEnded)));
  return { told: () => told, leave: () => void response.destroy(), ended };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(5);
}

describe.each(Object.keys(begin))('a stream over %s', (version) => {
  const open = (path: string): Promise<Begun> => begun(begin[version] as Way, path);

  test('is told as it comes, and its end is the end', async () => {
    let response: http.ServerResponse | undefined;
    kube.answer = (_, res) => (response = res).flushHeaders();
    const stream = await open(`${pods}?watch=true`);
    for (const line of ['one\n', 'two\n']) {
      response?.write(line);
      await until(() => stream.told().endsWith(line));
    }
    response?.end();
    expect([await stream.ended, stream.told()]).toEqual([true, 'one\ntwo\n']);
  });

  test.each([`${pods}?watch=true`, pods, `${pods}/p/log?follow=true`])(
    'that kube-apiserver breaks off is broken off here: %s',
    async (path) => {
      kube.answer = (req, res) => {
        res.write('part', () => setTimeout(() => req.socket.destroy(), 20));
      };
      const stream = await open(path);
      expect([await stream.ended, stream.told()]).toEqual([false, 'part']);
    },
  );

  test('that its reader leaves is left there too', async () => {
    let isLeft = false;
    kube.answer = (_, res) => {
      res.once('close', () => (isLeft = true));
      res.write('part');
    };
    const stream = await open(`${pods}/p/log?follow=true`);
    stream.leave();
    await until(() => isLeft);
    expect(await stream.ended).toBe(false);
  });
});

/** Connections on which an answer has begun, and nobody reads; `read` reads it to its end and says how much that was. */
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

test.each(Object.keys(unread))('a reader over %s that does not read has kube-apiserver wait', async (version) => {
  const chunk = Buffer.alloc(64 * 1024, 'x');
  const most = 64 * 1024 * 1024;
  let sent = 0;
  kube.answer = (_, res) => {
    const write = (): void => {
      while (sent < most) {
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
  // What the buffers of both connections hold.
  expect(sent).toBeLessThan(most / 2);
  expect(await read()).toBeGreaterThanOrEqual(most);
});

/** The bytes of a POST with these lines after its first ones. */
const head = (lines: string, path = pods): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n${lines}`;

describe('the body of a request', () => {
  const expecting = 'Expect: 100-continue\r\nContent-Length: 4\r\n\r\n';

  test.each<[string, string, Record<string, string>]>([
    ['POST', 'with a length', { 'content-length': '9' }],
    ['POST', 'in chunks', { 'transfer-encoding': 'chunked' }],
    ['DELETE', 'with a length', { 'content-length': '9' }],
    ['DELETE', 'in chunks', { 'transfer-encoding': 'chunked' }],
    ['GET', 'with a length', { 'content-length': '9' }],
    ['PATCH', 'whose length its connection claims for itself', { 'content-length': '9', connection: 'content-length' }],
  ])('of %s %s arrives', async (method, _, headers) => {
    expect((await ask(pods, { method, headers, body: '{"a": 1}\n' })).status).toBe(200);
    expect(await passed().body).toBe('{"a": 1}\n');
  });

  test('that is empty is none', async () => {
    await ask(pods, { method: 'POST', headers: { 'content-length': '0' } });
    const { headers, body } = passed();
    expect([headers.get('content-length'), headers.get('transfer-encoding'), await body]).toEqual([
      ['0'],
      undefined,
      '',
    ]);
  });

  test('arrives over HTTP/2', async () => {
    const [headers] = await overHTTP2(pods, {}, 'a body');
    expect([headers[':status'], await passed().body]).toEqual([200, 'a body']);
  });

  test.each([
    ['with a length', 'Content-Length: 1000\r\n\r\n{"half": '],
    ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n9\r\n{"half": \r\n'],
  ])('that is broken off %s is never whole there', async (_, rest) => {
    kube.answer = (req, res) => void req.resume().once('end', () => res.end());
    const socket = net.connect(lab.ports.http, '127.0.0.1');
    socket.write(head(rest));
    await until(() => kube.seen.length === 1);
    await sleep(20);
    socket.destroy();
    await expect(passed().body).rejects.toThrow('aborted');
  });

  test.each<[string, (stream: ClientHttp2Stream) => void]>([
    ['with its end', (stream) => stream.end('a body')],
    ['and then its end', (stream) => stream.write('a body', () => stream.end())],
    ['and later its end', (stream) => stream.write('a body', () => setTimeout(() => stream.end(), 2))],
  ])('that arrives over HTTP/2 %s is whole, however many come', async (_, send) => {
    kube.answer = (req, res) => void req.resume().once('end', () => res.end('done'));
    const session = http2.connect(`https://127.0.0.1:${lab.ports.https}`, { rejectUnauthorized: false });
    const answers = await Promise.all(
      Array.from({ length: 80 }, async () => {
        const stream = session.request({ ':path': pods, ':method': 'POST', ...bearer });
        send(stream);
        const [answer] = (await once(stream, 'response')) as [IncomingHttpHeaders];
        return [answer[':status'], await text(stream)].join(' ');
      }),
    );
    session.close();
    expect(new Set(answers)).toEqual(new Set(['200 done']));
    expect(new Set(await Promise.all(kube.taken().map(({ body }) => body)))).toEqual(new Set(['a body']));
  });

  test('that is broken off over HTTP/2 is never whole there', async () => {
    kube.answer = (req, res) => void req.resume().once('end', () => res.end());
    const session = http2.connect(`https://127.0.0.1:${lab.ports.https}`, { rejectUnauthorized: false });
    const stream = session.request({ ':path': pods, ':method': 'POST', ...bearer });
    stream.on('error', () => undefined);
    stream.write('{"half": ');
    await until(() => kube.seen.length === 1);
    await sleep(20);
    // By `close` Node would end the body first.
    stream.destroy();
    await expect(passed().body).rejects.toThrow('aborted');
    session.destroy();
  });

  test('that kube-apiserver does not want to read does not cost the answer', async () => {
    const refusal = 'HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large';
    kube.answer = ({ socket }) => void socket.end(refusal);
    const answer = await ask(pods, { method: 'POST', body: Buffer.alloc(4 * 1024 * 1024) });
    expect(answer).toMatchObject({ status: 413, text: 'too large' });
  });

  test('that kube-apiserver did not want to read does not stand in the way of the next request', async () => {
    const refusal = 'HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large';
    kube.answer = (req, res) => (req.method === 'POST' ? void req.socket.end(refusal) : void res.end('next'));
    const length = 4 * 1024 * 1024;
    const socket = net.connect(lab.ports.http, '127.0.0.1');
    const talk = talkOver(socket, head(`Content-Length: ${length}\r\n\r\n`));
    const half = Buffer.alloc(length / 2);
    socket.write(half);
    await talk.expectUntil('too large');
    socket.write(half);
    socket.write(`GET ${pods} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    await talk.expectUntil('next');
    expect(statuses(talk.told())).toEqual([413, 200]);
    socket.destroy();
  });

  test('is asked for when the caller waits for that, and not from who is refused', async () => {
    const socket = net.connect(lab.ports.http, '127.0.0.1').setEncoding('latin1');
    socket.write(head(expecting));
    expect((await once(socket, 'data'))[0]).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    socket.write('body');
    expect((await once(socket, 'data'))[0]).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
    const { headers, body } = passed();
    expect([headers.get('expect'), await body]).toEqual([undefined, 'body']);
    const last = await said(head(`Connection: close\r\n${expecting}body`));
    expect(statuses(last)).toEqual([100, 200]);
    expect(last).toMatch(/\r\nConnection: close\r\n/i);
    expect(await passed().body).toBe('body');
    const old = await said(head(expecting).replace('HTTP/1.1', 'HTTP/1.0').concat('body'));
    expect(statuses(old)).toEqual([200]);
    expect(await passed().body).toBe('body');
    const refused = await said(head(expecting, `${pods}?access_token=x`));
    expect(statuses(refused)).toEqual([400]);
    expect(refused).toMatch(/\r\nConnection: close\r\n/i);
  });
});

describe('a request within a request', () => {
  const inner = 'GET /api/v1/secrets HTTP/1.1\r\nHost: a\r\n\r\n';
  test.each([
    ['a length and chunks', `Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`],
    ['chunks and a length', `Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${inner}`],
    ['two lengths', `Content-Length: 0\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`],
    ['a list of lengths', `Content-Length: 0, ${inner.length}\r\n\r\n${inner}`],
    ['a length with a sign', `Content-Length: +${inner.length}\r\n\r\n${inner}`],
    ['a hexadecimal length', `Content-Length: 0x0\r\n\r\n${inner}`],
    ['a negative length', `Content-Length: -1\r\n\r\n${inner}`],
    ['an unknown coding', `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${inner}`],
    ['a coding before the chunks', `Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${inner}`],
    [
      'a coding before the chunks in a header of its own',
      `Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
    ],
    ['chunks that are not last', `Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${inner}`],
    ['chunks twice', `Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${inner}`],
    ['a space before the colon', `Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${inner}`],
    ['a folded header', `X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`],
    ['a bare line feed', `X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`],
    ['a bare carriage return', `X: y\rImpersonate-User: root\r\n\r\n${inner}`],
    ['a NUL', `X: y\0z\r\n\r\n${inner}`],
    ['a chunk size with a sign', `Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n${inner}`],
    ['a chunk size that overflows', `Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n${inner}`],
    ['a chunk that ends with a bare line feed', `Transfer-Encoding: chunked\r\n\r\n0\n\n${inner}`],
    ['two Hosts', `Host: b\r\nContent-Length: 0\r\n\r\n${inner}`],
  ])('by %s is refused', async (_, lines) => {
    const told = await said(head(lines));
    for (const status of statuses(told)) expect([400, 401, 501]).toContain(status);
    // The outer one may have begun to go on, in vain.
    expect(kube.taken().map(({ url }) => url)).not.toContain('/api/v1/secrets');
  });

  test('behind chunks of HTTP/1.0, which has none, is not read', async () => {
    const lines = `Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`;
    const told = await said(head(lines).replace('HTTP/1.1', 'HTTP/1.0'));
    expect(statuses(told)).toEqual([200]);
    expect(told).toMatch(/\r\nConnection: close\r\n/i);
  });

  test('in its body is body', async () => {
    const length = `Content-Length: ${inner.length}\r\nConnection: close\r\n\r\n`;
    expect(statuses(await said(head(`${length}${inner}`)))).toEqual([200]);
    expect(await passed().body).toBe(inner);
  });

  test.each(['h2c', 'TLS/1.0', 'own'])('behind an upgrade to %s is a request of nobody', async (protocol) => {
    const upgrade = `Connection: Upgrade, HTTP2-Settings\r\nUpgrade: ${protocol}\r\nHTTP2-Settings: AAMAAABk\r\n`;
    const told = await said(head(`${upgrade}Content-Length: 0\r\n\r\n${inner}`));
    expect(statuses(told)[0]).toBe(200);
    const seen = passed();
    expect([seen.url, seen.headers.get('upgrade'), seen.headers.get('http2-settings')]).toEqual([
      pods,
      undefined,
      undefined,
    ]);
  });
});
