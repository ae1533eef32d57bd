/**
 * Upgraded connections through the gateway to kube-apiserver, such as exec, over WebSockets and SPDY
 * (docs/reference/gateway.md).
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import net, { type Socket } from 'node:net';
import tls from 'node:tls';
import { allRecorded } from '../../src/http/records.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { logOfLines } from '../fakes/log.ts';
import { FakeKubeApiserver, ownToken } from '../fakes/upstream.ts';
import { talkOver, type Talk } from '../fakes/talk.ts';
import { tokenProtocol } from '../fakes/web-socket.ts';
import { login, startLab, type Lab } from '../labs/conformance/lab.ts';

const kube = new FakeKubeApiserver();
const exec = '/api/v1/namespaces/default/pods/p/exec?command=sh&stdin=true';

const { log, lines } = logOfLines();
let lab: Lab;
let token: string;
beforeAll(async () => {
  lab = await startLab({ kubeApiserver: await kube.listen(), log });
});
afterAll(async () => {
  await lab.stop();
  kube.close();
});
beforeEach(async () => {
  token = String((await lab.token(login)).json()['access_token']);
  kube.taken();
  kube.serve = (_, res) => void res.end('{}');
  kube.grant = (req, socket) => {
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${req.headers.upgrade}\r\n` +
        'X-Stream-Protocol-Version: v4.channel.k8s.io\r\nSet-Cookie: a=b\r\n\r\nhello',
    );
    socket.pipe(socket);
  };
});

const spdy = (more = ''): string =>
  `POST ${exec} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n` +
  `X-Stream-Protocol-Version: v4.channel.k8s.io\r\n${more}Content-Length: 0\r\n\r\n`;
const webSocket = (protocols: string, credential = ''): string =>
  `GET ${exec} HTTP/1.1\r\nHost: a\r\n${credential}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
  `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: ${protocols}\r\n\r\n`;

const talk = (bytes: string, socket: Socket = net.connect(lab.ports.http, '127.0.0.1')): Talk =>
  talkOver(socket, bytes);

/** Waits until all connections to kube-apiserver are closed. */
async function untilDisconnected(): Promise<void> {
  while (kube.sockets.size > 0) await sleep(5);
}

describe.each<[string, () => Socket]>([
  ['plain HTTP', () => net.connect(lab.ports.http, '127.0.0.1')],
  [
    'TLS',
    () =>
      tls.connect({ host: '127.0.0.1', port: lab.ports.https, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] }),
  ],
])('over %s', (_, connect) => {
  test.each<[string, () => string, string]>([
    ['the protocol SPDY', spdy, 'SPDY/3.1'],
    ['a WebSocket', () => webSocket('v5.channel.k8s.io', `Authorization: Bearer ${token}\r\n`), 'websocket'],
  ])(
    'a connection upgraded to %s transfers bytes in both directions on behalf of the caller',
    async (_name, handshake, protocol) => {
      const { socket, received, closed, expectUntil } = talk(handshake(), connect());
      await expectUntil('hello');
      expect(received()).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/);
      expect(received()).toMatch(new RegExp(`\r\nUpgrade: ${protocol}\r\n`));
      expect(received()).toMatch(/\r\nX-Stream-Protocol-Version: v4\.channel\.k8s\.io\r\n/);
      expect(received()).not.toMatch(/Set-Cookie/i);
      const [{ headers, url } = { headers: new Map<string, string[]>(), url: '' }] = kube.taken();
      expect(url).toBe(exec);
      expect(headers.get('impersonate-user')).toEqual(['alice']);
      expect(headers.get('authorization')).toEqual([ownToken]);
      expect(headers.get('content-length') ?? ['0']).toEqual(['0']);
      const much = 'x'.repeat(3_000_000);
      socket.write(`${much}end`);
      await expectUntil(`${much}end`);
      socket.end();
      await closed;
      await untilDisconnected();
    },
  );
});

test('the gateway removes only the token from the WebSocket subprotocols', async () => {
  const { expectUntil, socket } = talk(webSocket(`v5.channel.k8s.io, ${tokenProtocol(token)}, v4.channel.k8s.io`));
  await expectUntil('hello');
  const [seen] = kube.taken();
  expect(seen?.headers.get('sec-websocket-protocol')).toEqual(['v5.channel.k8s.io, v4.channel.k8s.io']);
  expect(JSON.stringify([...(seen?.headers ?? [])])).not.toContain('bearer.authorization');
  socket.destroy();
  await untilDisconnected();
});

test('bytes that the client sends before the response to an upgrade are forwarded after the upgrade', async () => {
  const { expectUntil, socket } = talk(`${spdy()}early`);
  await expectUntil('helloearly');
  socket.destroy();
});

test('a large response that kube-apiserver sends instead of an upgrade arrives completely', async () => {
  const much = 'x'.repeat(20_000_000);
  kube.grant = (_, socket) => void socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${much.length}\r\n\r\n${much}`);
  const { received, closed } = talk(spdy());
  await closed;
  expect(received().endsWith(`\r\n\r\n${much}`)).toBe(true);
  await untilDisconnected();
});

test('a malformed reason phrase of an upgrade response is replaced with the standard reason phrase', async () => {
  kube.grant = (_, socket) => {
    socket.resume().once('end', () => socket.end());
    socket.write('HTTP/1.1 101 Switch\x01ing\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nhello', 'latin1');
  };
  const { received, expectUntil, socket } = talk(spdy());
  await expectUntil('hello');
  expect(received()).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/);
  socket.destroy();
  await untilDisconnected();
});

describe('an upgrade that kube-apiserver refuses', () => {
  const inner = 'GET /api/v1/secrets HTTP/1.1\r\nHost: a\r\n\r\n';

  test.each([
    [403, '{"kind":"Status","code":403}'],
    [200, 'not what was asked'],
    [400, ''],
    [302, ''],
  ])(
    'if kube-apiserver refuses an upgrade with %d, both connections are closed after the response (CVE-2018-1002105)',
    async (status, body) => {
      kube.grant = (_, socket) => {
        socket.resume().once('end', () => socket.end());
        socket.write(`HTTP/1.1 ${status} No\r\nContent-Length: ${body.length}\r\nX-Own: kept\r\n\r\n${body}`);
      };
      const { received, closed, socket } = talk(`${spdy()}${inner}`);
      socket.write(inner);
      await closed;
      expect(received()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} No\r\n`));
      expect(received()).toMatch(/\r\nX-Own: kept\r\n/);
      expect(received().endsWith(`\r\n\r\n${body}`)).toBe(true);
      expect(received().match(/HTTP\/1\.1/g)).toHaveLength(1);
      await untilDisconnected();
      expect(kube.taken()).toHaveLength(1);
      await allRecorded();
      const [id = ''] = /(?<=Audit-Id: )\S+/.exec(received()) ?? [];
      expect(lines().filter((line) => line.includes(id))).toEqual([expect.stringContaining('"message":"request"')]);
    },
  );

  test('if kube-apiserver refuses an upgrade with a malformed reason phrase, no connection stays open', async () => {
    kube.grant = (_, socket) => {
      socket.resume().once('end', () => socket.end());
      socket.write('HTTP/1.1 403 N\x01o\r\nContent-Length: 0\r\n\r\n', 'latin1');
    };
    const { received, closed } = talk(spdy());
    await closed;
    expect(received()).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
    await untilDisconnected();
  });

  test("an upgrade request gets 503 if kube-apiserver rejects the server's own credential", async () => {
    kube.grant = (_, socket) => {
      socket.resume().end('HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n');
    };
    const { received, closed } = talk(spdy());
    await closed;
    expect(received()).toMatch(/^HTTP\/1\.1 503 /);
    await untilDisconnected();
  });

  test.each([
    ['POST', 502],
    ['GET', 503],
  ])(
    'an upgrade request with the method %s gets %d if kube-apiserver closes the connection',
    async (method, status) => {
      kube.grant = (_, socket) => void socket.destroy();
      const { received, closed } = talk(spdy().replace('POST', method));
      await closed;
      expect(received()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(received().includes('\r\nRetry-After: ')).toBe(status === 503);
    },
  );
});

describe('an upgrade request', () => {
  test.each<[string, number, () => string]>([
    ['without a token', 401, () => spdy().replace(/Authorization.*?\r\n/, '')],
    ['with an invalid token', 401, () => webSocket(`v5.channel.k8s.io, ${tokenProtocol('a.b.c')}`)],
    ['with the token as the only subprotocol', 401, () => webSocket(tokenProtocol(token))],
    ['with a token in the query', 400, () => spdy().replace('?', '?access_token=x&')],
    ['with impersonation that is not allowed', 403, () => spdy('Impersonate-User: nobody-may\r\n')],
    ['with an ambiguous path', 400, () => spdy().replace('/p/exec', '/p/../q/exec')],
    ['for a path of this server', 400, () => spdy().replace(exec, '/kapis/resources.platform.io/v1alpha3/nodes')],
  ])('an upgrade request %s is rejected with %d', async (_, status, handshake) => {
    lab.cluster.respond('/apis/authorization.k8s.io/v1/subjectaccessreviews', ({ spec }) => ({
      status: {
        allowed: (spec as { resourceAttributes?: { verb: string } }).resourceAttributes?.verb !== 'impersonate',
      },
    }));
    const { received, closed } = talk(handshake());
    await closed;
    expect(received()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(kube.taken()).toEqual([]);
  });

  test('an upgrade request with a body is forwarded as a plain request', async () => {
    const body = 'GET /api/v1/secrets HTTP/1.1\r\n\r\n';
    const handshake = spdy().replace('Content-Length: 0', `Content-Length: ${body.length}`);
    const { expectUntil, socket } = talk(`${handshake}${body}`);
    await expectUntil('{}');
    const [seen, ...more] = kube.taken();
    expect([seen?.headers.get('upgrade'), await seen?.body, more]).toEqual([undefined, body, []]);
    socket.destroy();
  });
});

describe('an upgraded connection', () => {
  test('an upgraded connection ends when kube-apiserver disconnects', async () => {
    const { expectUntil, closed } = talk(spdy());
    await expectUntil('hello');
    for (const socket of kube.sockets) socket.resetAndDestroy();
    await closed;
  });

  test('an upgraded connection delivers all data before it ends when kube-apiserver closes the connection', async () => {
    const last = 'y'.repeat(1_000_000);
    kube.grant = (_, socket) =>
      void socket.end(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n${last}`);
    const { received, closed } = talk(spdy());
    await closed;
    expect(received().endsWith(last)).toBe(true);
  });

  test('an upgraded connection ends when the client disconnects', async () => {
    const { expectUntil, socket } = talk(spdy());
    await expectUntil('hello');
    socket.resetAndDestroy();
    await untilDisconnected();
  });

  test.each([
    exec,
    // The gateway does not know which subresources of an aggregated API are long-running.
    '/apis/subresources.example.com/v1/namespaces/default/machines/m/console',
  ])('an upgraded connection ends when the session of its token is revoked: %s', async (path) => {
    const { expectUntil, closed } = talk(spdy().replace(exec, path));
    await expectUntil('hello');
    await lab.revoke(token);
    await closed;
    await untilDisconnected();
  });

  test.each<[string, string, string]>([
    ['a watch is completed', '/api/v1/secrets?watch=true', '5\r\nevent\r\n0\r\n\r\n'],
    ['a log is aborted', '/api/v1/namespaces/default/pods/p/log?follow=true', '5\r\nevent\r\n'],
  ])('a stream in response to an upgrade request ends when the session is revoked: %s', async (_, path, last) => {
    kube.grant = (_req, socket) => {
      socket.resume().once('end', () => socket.end());
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nevent\r\n');
    };
    const { received, expectUntil, closed } = talk(spdy().replace(`POST ${exec}`, `GET ${path}`));
    await expectUntil('event\r\n');
    await lab.revoke(token);
    await closed;
    expect(received().endsWith(last)).toBe(true);
    await untilDisconnected();
  });

  test.each<[string, (socket: Socket) => void]>([
    ['disconnects', (socket) => void socket.destroy()],
    ['resets the connection', (socket) => void socket.resetAndDestroy()],
    ['half-closes the connection', (socket) => void socket.end()],
  ])('an upgrade request is aborted at kube-apiserver when the client %s before the response', async (_, leave) => {
    kube.grant = (_req, socket) => void socket.resume().once('end', () => socket.end());
    const { socket, closed } = talk(spdy());
    while (kube.seen.length === 0) await sleep(5);
    leave(socket);
    await closed;
    await untilDisconnected();
    expect(kube.taken()).toHaveLength(1);
  });

  test('an upgrade request gets 503 when the session is revoked before the response', async () => {
    kube.grant = (_req, socket) => void socket.resume().once('end', () => socket.end());
    const { received, closed } = talk(spdy().replace('POST', 'GET'));
    while (kube.seen.length === 0) await sleep(5);
    await lab.revoke(token);
    await closed;
    expect(received()).toMatch(/^HTTP\/1\.1 503 /);
    await untilDisconnected();
  });
});
