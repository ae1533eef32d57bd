/** Watches over WebSockets (RFC 6455), one text message per event: at the gateway and behind the aggregator. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import http, { type OutgoingHttpHeaders } from 'node:http';
import https from 'node:https';
import net, { type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Agent } from 'undici';
import { responseTo, type AppResponse } from '../fakes/request.ts';
import {
  clientFrame,
  framesIn,
  handshake,
  listenTo,
  tokenProtocol,
  upgraded,
  type Listening,
} from '../fakes/web-socket.ts';
import { login, nodes as apis, startLab, type Lab } from '../labs/conformance/lab.ts';

const kapis = '/kapis/resources.platform.io/v1alpha3/nodes';

let lab: Lab;
let token: string;
beforeAll(async () => {
  lab = await startLab();
  token = String((await lab.token(login)).json()['access_token']);
});
afterAll(() => lab.stop());

const bearer = (): { authorization: string } => ({ authorization: `Bearer ${token}` });
const trusting = (): Agent => new Agent({ connect: { rejectUnauthorized: false } });

/** Ways to open a WebSocket, with the path of the listener. */
const ways: Record<string, (query: string) => Promise<Listening>> = {
  'HTTP with the token in a header': (query) =>
    listenTo(`ws://127.0.0.1:${lab.ports.http}${kapis}?${query}`, { headers: bearer() }),
  'HTTP with the token in a subprotocol': (query) =>
    listenTo(`ws://127.0.0.1:${lab.ports.http}${kapis}?${query}`, { protocols: [tokenProtocol(token), 'any'] }),
  'TLS with the token in a header': (query) =>
    listenTo(`wss://127.0.0.1:${lab.ports.https}${kapis}?${query}`, { headers: bearer(), dispatcher: trusting() }),
  'the aggregated API server with a client token': (query) =>
    listenTo(`wss://127.0.0.1:${lab.ports.aggregated}${apis}?${query}`, { headers: bearer(), dispatcher: trusting() }),
  'the aggregated API server with front-proxy headers': (query) =>
    listenTo(`wss://127.0.0.1:${lab.ports.aggregated}${apis}?${query}`, {
      headers: { 'x-remote-user': 'alice' },
      dispatcher: new Agent({ connect: { rejectUnauthorized: false, ...lab.frontProxy } }),
    }),
};

test('WebSocket watches send one event per message, small and large, and end with a close frame', async () => {
  const watches = await Promise.all(Object.values(ways).map((watch) => watch('watch=true&timeoutSeconds=10')));
  await Promise.all(watches.map((watch) => watch.until(3)));
  const sizes = [10, 100_000, 0, 1_000_000];
  for (const size of sizes) lab.putNode('changing', size);
  lab.cluster.delete('/api/v1/nodes', 'changing');
  for (const { closed, messages } of watches) {
    expect(await closed).toEqual({ code: 1000, wasClean: true });
    const events = messages.map((message) => {
      expect(message.endsWith('}\n')).toBe(true);
      const { type, object } = JSON.parse(message) as {
        type: string;
        object: { metadata: { name: string; annotations?: { filling: string } } };
      };
      return `${type} ${object.metadata.name} ${object.metadata.annotations?.filling.length ?? ''}`.trim();
    });
    expect(events).toEqual([
      'ADDED n1',
      'ADDED n2',
      'ADDED n3',
      'ADDED changing 10',
      'MODIFIED changing 100000',
      'MODIFIED changing 0',
      'MODIFIED changing 1000000',
      'DELETED changing 1000000',
    ]);
  }
});

test('WebSocket messages of a watch equal the lines of the same watch over HTTP', async () => {
  const query =
    'watch=true&timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
  const [lines, watch] = await Promise.all([
    lab.gateway(`${kapis}?${query}`, { headers: bearer() }),
    (ways['HTTP with the token in a header'] as (typeof ways)[string])(query),
  ]);
  await watch.closed;
  expect(watch.messages.join('')).toBe(lines.text);
});

/** Returns the response to a rejected handshake once the server has closed the connection. */
async function refusal(path: string, headers: OutgoingHttpHeaders = bearer(), method = 'GET'): Promise<AppResponse> {
  const target = { host: '127.0.0.1', port: lab.ports.http, agent: false, path, method } as const;
  const request = http.request({ ...target, headers: { ...handshake, ...headers } });
  const [response] = await Promise.all([responseTo(request), once(request, 'close')]);
  return response;
}

const watching = `${kapis}?watch=true`;

describe('a rejected WebSocket handshake', () => {
  test.each<[string, number, string, string, () => OutgoingHttpHeaders]>([
    ['without a token', 401, 'Unauthorized', watching, () => ({})],
    ['with an invalid token', 401, 'Unauthorized', watching, () => ({ authorization: 'Bearer nonsense' })],
    [
      'with an invalid token in a subprotocol',
      401,
      'Unauthorized',
      watching,
      () => offering(`${tokenProtocol('x')}, any`),
    ],
    ['with the token as the only subprotocol', 401, 'Unauthorized', watching, () => offering(tokenProtocol(token))],
    [
      'with two tokens',
      401,
      'Unauthorized',
      watching,
      () => offering(`any, ${tokenProtocol(token)}, ${tokenProtocol(token)}`),
    ],
    ['with a padded token', 401, 'Unauthorized', watching, () => offering(`any, ${tokenProtocol(token)}=`)],
    ['with a token in the query', 400, 'BadRequest', `${watching}&access_token=x`, () => ({})],
    ['for a list', 400, 'BadRequest', kapis, bearer],
    ['for an object', 400, 'BadRequest', `${kapis}/n1`, bearer],
    ['for a public path', 400, 'BadRequest', '/kapis/version', () => ({})],
    ['for an unknown path', 404, 'NotFound', '/kapis/nothing.platform.io/v1/things?watch=true', bearer],
    ['for an invalid selector', 400, 'BadRequest', `${watching}&labelSelector=a=b=c`, bearer],
    ['with an unsupported version', 400, 'BadRequest', watching, () => ({ ...bearer(), 'sec-websocket-version': '8' })],
    ['with an invalid key', 400, 'BadRequest', watching, () => ({ ...bearer(), 'sec-websocket-key': 'short' })],
  ])(
    'a rejected WebSocket handshake %s gets the HTTP response %i %s, and its connection is closed',
    async (_, code, reason, path, headers) => {
      const response = await refusal(path, headers());
      expect(response.status).toBe(code);
      expect(response.json()).toMatchObject({ kind: 'Status', reason, code });
      expect(response.headers.connection).toBe('close');
      expect(response.headers['audit-id']).toMatch(/^[\w-]{36}$/);
      expect(response.headers).not.toHaveProperty('sec-websocket-accept');
    },
  );

  test('a rejected WebSocket handshake without the right to watch gets the HTTP response 403, and its connection is closed', async () => {
    const target = { host: '127.0.0.1', port: lab.ports.aggregated, path: `${apis}?watch=true`, agent: false } as const;
    const headers = { ...handshake, 'x-remote-user': 'bob' };
    const request = https.request({ ...target, ...lab.frontProxy, rejectUnauthorized: false, headers });
    const [response] = await Promise.all([responseTo(request), once(request, 'close')]);
    expect(response.json()).toMatchObject({ kind: 'Status', reason: 'Forbidden', code: 403 });
  });

  test('a rejected WebSocket handshake with an unsupported version gets a response that names the supported version', async () => {
    const { headers } = await refusal(watching, { ...bearer(), 'sec-websocket-version': '8' });
    expect(headers['sec-websocket-version']).toBe('13');
  });
});

test.each([
  ['the token in a subprotocol of a request without upgrade', { connection: 'close' }, 'GET', 401],
  ['the token in a subprotocol of a POST', handshake, 'POST', 401],
])('%s is ignored when the request headers contain %j', async (_, headers, method, code) => {
  const target = { host: '127.0.0.1', port: lab.ports.http, agent: false, path: kapis, method } as const;
  const response = await responseTo(
    http.request({ ...target, headers: { ...headers, ...offering(`any, ${tokenProtocol(token)}`) } }),
  );
  expect(response.status).toBe(code);
});

const offering = (protocols: string): OutgoingHttpHeaders => ({ 'sec-websocket-protocol': protocols });

/** Opens a WebSocket, closes it after the response, and returns the headers of the response. */
async function accepted(protocols: OutgoingHttpHeaders): Promise<http.IncomingHttpHeaders> {
  const target = { host: '127.0.0.1', port: lab.ports.http, agent: false, path: watching } as const;
  const request = http.request({ ...target, headers: { ...handshake, ...bearer(), ...protocols } });
  request.end();
  const [{ statusCode, headers }, socket] = (await once(request, 'upgrade')) as [http.IncomingMessage, Socket];
  socket.destroy();
  expect(statusCode).toBe(101);
  // The key and its response are those of RFC 6455 section 1.3.
  expect(headers['sec-websocket-accept']).toBe('s3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
  expect(headers['sec-websocket-extensions']).toBeUndefined();
  expect(headers['audit-id']).toMatch(/^[\w-]{36}$/);
  return headers;
}

describe('the WebSocket handshake', () => {
  test.each(['first, second', 'token, first', 'first, token'])(
    'a WebSocket handshake that offers the subprotocols %j is accepted with the subprotocol "first"',
    async (offered) => {
      const headers = await accepted(offering(offered.replace('token', tokenProtocol(token))));
      expect(headers['sec-websocket-protocol']).toBe('first');
    },
  );

  test('a WebSocket handshake without subprotocols is accepted without a subprotocol', async () => {
    expect(await accepted({})).not.toHaveProperty('sec-websocket-protocol');
  });

  test('a message that the client sends right after the WebSocket handshake is accepted', async () => {
    const [socket, first] = await raw();
    socket.unshift(first);
    const all = buffer(socket);
    socket.write(Buffer.concat([clientFrame(0x89, Buffer.from('early')), clientFrame(0x88, Buffer.alloc(0))]));
    const frames = framesIn(await all);
    expect(frames.at(-2)).toEqual({ opcode: 0xa, payload: Buffer.from('early') });
    expect(frames.at(-1)).toEqual({ opcode: 0x8, payload: Buffer.from([3, 232]) });
  });
});

test('a pipelined WebSocket handshake is treated as a plain request', async () => {
  const socket = net.connect({ port: lab.ports.http, host: '127.0.0.1' });
  const usual = `Host: platform.example\r\nAuthorization: ${bearer().authorization}\r\n`;
  const headerLines = Object.entries({ ...handshake, connection: 'Upgrade, close' }).map(
    ([name, value]) => `${name}: ${String(value)}\r\n`,
  );
  const one = `GET ${kapis} HTTP/1.1\r\n${usual}\r\n`;
  socket.write(`${one}${one}GET ${watching}&timeoutSeconds=1 HTTP/1.1\r\n${usual}${headerLines.join('')}\r\n`);
  const responses = (await buffer(socket)).toString().match(/HTTP\/1\.1 \d+|"type":"ADDED"/g);
  const ok = 'HTTP/1.1 200';
  expect(responses).toEqual([ok, ok, ok, ...Array.from({ length: 3 }, () => '"type":"ADDED"')]);
});

const raw = (query = ''): Promise<[Socket, Buffer]> => upgraded(lab.ports.http, `${watching}${query}`, bearer());

const message = (length: number): Buffer => clientFrame(0x81, Buffer.alloc(length, 'x'));

describe('a WebSocket client', () => {
  const close = clientFrame(0x88, Buffer.from([3, 232]));

  test.each<[string, number, Buffer]>([
    ['sends messages of all lengths', 1000, Buffer.concat([message(0), message(125), message(60_000), close])],
    [
      'sends a close frame with an application-defined code',
      4000,
      clientFrame(0x88, Buffer.from([0x0f, 0xa0, 0x62, 0x79, 0x65])),
    ],
    ['sends a close frame with half a code', 1002, clientFrame(0x88, Buffer.from([3]))],
    ['sends a close frame with an invalid code', 1002, clientFrame(0x88, Buffer.from([0, 1]))],
    ['sends a message that is too long', 1009, Buffer.concat([message(70_000), close])],
    ['sends an unmasked frame', 1002, Buffer.from([0x81, 1, 0x78])],
    ['sends a ping that is too long', 1002, clientFrame(0x89, Buffer.alloc(126))],
    ['sends HTTP', 1002, Buffer.from('GET / HTTP/1.1\r\n\r\n')],
  ])('a WebSocket client that %s gets a close frame with the code %d', async (_, code, bytes) => {
    const [socket, first] = await raw();
    socket.unshift(first);
    const all = buffer(socket);
    socket.write(bytes);
    const last = framesIn(await all).at(-1);
    expect(last?.opcode).toBe(8);
    expect(last?.payload.readUInt16BE(0)).toBe(code);
  });

  test('a WebSocket client that disconnects ends the watch', async () => {
    const before = await openWatches();
    const [socket] = await raw();
    expect(await openWatches()).toBe(before + 1);
    socket.resume().end();
    await once(socket, 'close');
    expect(await openWatches()).toBe(before);
  });
});

async function openWatches(): Promise<number> {
  const { text } = await lab.gateway('/metrics', { headers: bearer() });
  return Number(/^platform_apiserver_open_watches (\d+)$/m.exec(text)?.[1]);
}
