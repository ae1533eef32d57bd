// evidence: fair-share-in-flight
import { describe, expect, test } from '@jest/globals';
import type { Duplex } from 'node:stream';
import { registry } from '../../../../src/runtime/metrics/registry.ts';
import { sendRequest, send, type AppResponse, type AppRequest } from '../../../fakes/request.ts';
import { as, doing, face, resourcePath } from '../../../labs/http.ts';

interface Open {
  readonly response: Promise<AppResponse>;
  readonly end: () => void;
}

interface Lab {
  /** Sends a request that stays open until `end`. */
  readonly open: (path: string, options: AppRequest) => Promise<Open>;
  readonly refused: (path: string, options: AppRequest) => Promise<AppResponse>;
}

/** Creates a server whose handlers do not respond before the test calls `end`. */
function lab(settings: Readonly<Record<string, unknown>>): Lab {
  const held: (() => void)[] = [];
  const paths = ['/metrics', '/livez', '/readyz', resourcePath];
  const routes = paths.map((path) => doing((_, res) => void held.push(() => void res.end()), path));
  const { app } = face({ settings, routes });
  return {
    open: async (path, options) => {
      const response = sendRequest(app, path, options);
      const before = held.length;
      while (held.length === before) await new Promise((resolve) => setImmediate(resolve));
      return { response, end: held.at(-1) ?? (() => undefined) };
    },
    refused: (path, options) => sendRequest(app, path, options),
  };
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));
const busy = { status: 429, headers: { 'retry-after': '1' } };
const watch = `${resourcePath}?watch=true`;

describe('the limit of concurrent requests', () => {
  test('a request gets 429 while the number of concurrent requests has reached the limit', async () => {
    const { open, refused } = lab({ maxInFlight: 2 });
    const [one, two] = [await open('/metrics', as('alice')), await open('/metrics', as('bob'))];
    const response = await refused('/metrics', as('carol'));
    expect(response).toMatchObject(busy);
    expect(response.json()).toMatchObject({
      reason: 'TooManyRequests',
      details: { retryAfterSeconds: 1 },
      message: '2 reads are already in progress (requests.maxInFlight); please try again later',
    });
    one.end();
    expect((await one.response).status).toBe(200);
    const three = await open('/metrics', as('carol'));
    for (const { end } of [two, three]) end();
    expect([(await two.response).status, (await three.response).status]).toEqual([200, 200]);
  });

  test('watches and health probes are served while the number of concurrent requests has reached the limit', async () => {
    const { open } = lab({ maxInFlight: 1, maxInFlightPerUser: 1 });
    const all = [
      await open(watch, as('alice')),
      await open(watch, as('alice')),
      await open('/metrics', as('alice')),
      await open(watch, as('alice')),
      await open('/livez', {}),
      await open('/readyz', {}),
    ];
    for (const { end } of all) end();
    expect((await Promise.all(all.map(({ response }) => response))).map(({ status }) => status)).toEqual(
      all.map(() => 200),
    );
  });
});

test('one user cannot take all request slots', async () => {
  const { open, refused } = lab({ maxInFlight: 10, maxInFlightPerUser: 2 });
  const all = [await open('/metrics', as('alice')), await open('/metrics', as('alice'))];
  const refusal = await refused('/metrics', as('alice'));
  expect(refusal).toMatchObject(busy);
  expect(refusal.json()['message']).toBe(
    '2 reads of this user are already in progress (requests.maxInFlightPerUser); please try again later',
  );
  all.push(await open('/metrics', as('bob')));
  for (const { end } of all) end();
  await Promise.all(all.map(({ response }) => response));
  const again = await open('/metrics', as('alice'));
  again.end();
  expect((await again.response).status).toBe(200);
});

const reads = async (): Promise<number> => {
  const text = await registry.metrics();
  return Number(/^platform_apiserver_requests_in_flight\{kind="read"\} (\d+)$/m.exec(text)?.[1] ?? 0);
};

test('the in-flight metric counts only open requests', async () => {
  const { open, refused } = lab({ maxInFlight: 2 });
  const before = await reads();
  const all = [await open('/metrics', as('alice')), await open('/metrics', as('bob'))];
  await refused('/metrics', as('carol'));
  expect(await reads()).toBe(before + 2);
  for (const { end } of all) end();
  await Promise.all(all.map((one) => one.response));
  await settled();
  expect(await reads()).toBe(before);
});

test('reads are served while writes take all slots for writes, even for a user whose writes are in progress', async () => {
  const held: (() => void)[] = [];
  const { app } = face({
    settings: { maxInFlight: 2, maxInFlightPerUser: 1 },
    routes: [
      doing((_, res) => void held.push(() => void res.end()), '/metrics', 'post'),
      doing((_, res) => void res.end(), '/metrics'),
    ],
  });
  const change = (user: string): Promise<AppResponse> => sendRequest(app, '/metrics', { method: 'POST', ...as(user) });
  const all = [change('alice')];
  expect(await change('alice')).toMatchObject(busy);
  all.push(change('bob'));
  expect(await change('carol')).toMatchObject(busy);
  for (const user of ['alice', 'carol']) expect((await sendRequest(app, '/metrics', as(user))).status).toBe(200);
  for (const end of held) end();
  expect((await Promise.all(all)).map(({ status }) => status)).toEqual([200, 200]);
});

// evidence: login-ipv6-prefix
test('logins from one IPv6 /64 count as logins from one address', async () => {
  const held: (() => void)[] = [];
  const hold = doing((_, res) => void held.push(() => void res.end()), '/oauth/token', 'post');
  const { app } = face({ settings: { maxInFlight: 10, maxInFlightPerUser: 2 }, routes: [hold] });
  const login = (from: string): Promise<AppResponse> => sendRequest(app, '/oauth/token', { method: 'POST', from });
  const all = [login('2001:db8:7:7::1'), login('2001:db8:7:7::2')];
  expect(await login('2001:db8:7:7::3')).toMatchObject(busy);
  all.push(login('2001:db8:7:8::1'));
  await settled();
  for (const end of held) end();
  expect((await Promise.all(all)).map(({ status }) => status)).toEqual([200, 200, 200]);
});

test('logins take no slots from other requests, and each address has a share of the login slots', async () => {
  const held: (() => void)[] = [];
  const hold = doing((_, res) => void held.push(() => void res.end()), '/oauth/token', 'post');
  const { app } = face({
    settings: { maxInFlight: 3, maxInFlightPerUser: 2 },
    routes: [hold, doing((_, res) => void res.end())],
  });
  const login = (from: string): Promise<AppResponse> => sendRequest(app, '/oauth/token', { method: 'POST', from });
  const all = [login('192.0.2.1'), login('192.0.2.1')];
  expect(await login('192.0.2.1')).toMatchObject(busy);
  all.push(login('192.0.2.2'));
  expect(await login('192.0.2.3')).toMatchObject(busy);
  expect((await sendRequest(app, '/kapis/version', { from: '192.0.2.1' })).status).toBe(200);
  for (const end of held) end();
  expect((await Promise.all(all)).map(({ status }) => status)).toEqual([200, 200, 200]);
});

test('one IPv6 /48 has two shares of the login slots, and the error for a further login states the number of slots', async () => {
  const held: (() => void)[] = [];
  const hold = doing((_, res) => void held.push(() => void res.end()), '/oauth/token', 'post');
  const { app } = face({ settings: { maxInFlight: 10, maxInFlightPerUser: 2 }, routes: [hold] });
  const login = (from: string): Promise<AppResponse> => sendRequest(app, '/oauth/token', { method: 'POST', from });
  const all = [1, 2, 3, 4].map((subnet) => login(`2001:db8:7:${subnet}::1`));
  const refusal = await login('2001:db8:7:5::1');
  expect(refusal).toMatchObject(busy);
  expect(refusal.json()['error_description']).toBe(
    '4 logins of this network are already in progress (requests.maxInFlightPerUser); please try again later',
  );
  all.push(login('2001:db8:8:1::1'));
  while (held.length < 5) await new Promise((resolve) => setImmediate(resolve));
  for (const end of held) end();
  expect((await Promise.all(all)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
});

test('anonymous requests take no slots from authenticated users', async () => {
  const held: (() => void)[] = [];
  const hold = doing((_, res) => void held.push(() => void res.end()));
  const { app } = face({ settings: { maxInFlight: 4 }, routes: [hold, doing((_, res) => void res.end(), '/metrics')] });
  const all = [1, 2, 3, 4].map((host) => sendRequest(app, '/kapis/version', { from: `192.0.2.${host}` }));
  await settled();
  expect((await sendRequest(app, '/metrics', as('alice'))).status).toBe(200);
  const [refusal] = await Promise.all(all.slice(1));
  expect(refusal).toMatchObject(busy);
  expect(refusal?.json()['message']).toBe(
    '1 anonymous requests are already in progress (a quarter of requests.maxInFlight); please try again later',
  );
  for (const end of held) end();
  expect((await all[0])?.status).toBe(200);
});

test('requests that wait for authentication take no slots from authenticated users, and are limited in number per address', async () => {
  const { promise: reviewed, resolve: review } = Promise.withResolvers<void>();
  const { app } = face({
    settings: { maxInFlight: 1, maxInFlightPerUser: 1 },
    routes: [doing((_, res) => void res.end(), '/metrics')],
    authenticator: async ({ headers }) => {
      if (headers.authorization === 'Bearer forged') await reviewed;
      return headers.authorization === 'Bearer alice' ? { username: 'alice', groups: [], via: 'token' } : undefined;
    },
  });
  const all = [1, 2].map(() => sendRequest(app, '/metrics', as('forged')));
  await settled();
  expect((await sendRequest(app, '/metrics', { ...as('alice'), from: '192.0.2.2' })).status).toBe(200);
  const refusal = await sendRequest(app, '/metrics', as('forged'));
  expect(refusal).toMatchObject(busy);
  expect(refusal.json()['message']).toBe(
    '2 requests that wait for authentication of this address are already in progress (twice requests.maxInFlightPerUser); please try again later',
  );
  review();
  expect((await Promise.all(all)).map(({ status }) => status)).toEqual([401, 401]);
});

test('a client that disconnects during authentication releases its slot', async () => {
  const { promise: authenticated, resolve: authenticate } = Promise.withResolvers<void>();
  const gone: Duplex[] = [];
  const { app } = face({
    settings: { maxInFlight: 2, maxInFlightPerUser: 2 },
    routes: [doing((_, res) => void res.end())],
    authenticator: async (request) => {
      if (request.headers['x-slow'] !== undefined) await authenticated;
      return { username: 'alice', groups: [], via: 'token' };
    },
  });
  for (let round = 0; round < 2; round += 1)
    gone.push(send(app, 'GET /kapis/version HTTP/1.1\r\nHost: a\r\nX-Slow: 1\r\n\r\n'));
  await settled();
  for (const client of gone) client.destroy();
  await settled();
  authenticate();
  await settled();
  for (let round = 0; round < 3; round += 1) expect((await sendRequest(app, '/kapis/version')).status).toBe(200);
});

test('a client whose request never ends releases its slot when the response is sent', async () => {
  const { app } = face({
    settings: { maxInFlight: 1, maxInFlightPerUser: 1 },
    routes: [doing((_, res) => void res.end('too late'), '/oauth/token', 'post')],
  });
  const client = send(app, 'POST /oauth/token HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n');
  await settled();
  expect((await sendRequest(app, '/oauth/token', { method: 'POST' })).status).toBe(200);
  expect(client.destroyed).toBe(false);
  client.destroy();
});
