import { expect, test } from '@jest/globals';
import { createUpstream, failureOf } from '../../../../src/cluster/client/upstream.ts';
import type { UpstreamIdentity } from '../../../../src/cluster/client/impersonation.ts';
import { addressOf } from '../../../../src/cluster/wire/connections.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { FakeSpan, within } from '../../../fakes/span.ts';
import { FakeKubeApiserver, upstreamAt } from '../../../fakes/upstream.ts';

/** Connects to an address at which no server listens, since rejected requests must not be sent. */
const upstream = upstreamAt('http://127.0.0.1:1');
const anna: UpstreamIdentity = { username: 'anna', groups: ['dev'], proved: false };

const nothing = (): void => undefined;
const ignored = { onHead: nothing, onData: nothing, onEnd: nothing, onError: nothing };

test.each<[string, UpstreamIdentity, string[]]>([
  ['without a user', { ...anna, username: '' }, []],
  ['of a user with a name that Kubernetes reserves', { ...anna, username: 'system:admin' }, []],
  ['of a user in a group that Kubernetes reserves', { ...anna, groups: ['system:masters'] }, []],
  ['of a user with a line break in a group', { ...anna, groups: ['dev\r\nImpersonate-User: root'] }, []],
  ['with its own Impersonate-User header', anna, ['Impersonate-User', 'root']],
  ['with its own Impersonate-Group header', anna, ['impersonate-group', 'system:masters']],
  ['with its own Impersonate-Extra header', anna, ['IMPERSONATE-EXTRA-scopes', 'all']],
  ['with its own Authorization header', anna, ['authorization', 'Bearer x']],
])('a request to kube-apiserver %s is never sent', async (_, user, headers) => {
  const request = { method: 'GET', target: '/api', headers, user, isLongRunning: false };
  const received: unknown[] = [];
  const hear = (): void => void received.push(0);
  const handler = { onHead: hear, onData: hear, onEnd: hear, onError: hear };
  await expect(upstream.send(request, handler)).rejects.toThrow(/./);
  await expect(upstream.upgrade(request, 'websocket', new AbortController().signal)).rejects.toThrow(/./);
  expect(received).toEqual([]);
});

test('a write gets 503 if it could not be sent, and 502 if its outcome is unknown', async () => {
  const { promise, resolve } = Promise.withResolvers<Error>();
  const request = { method: 'POST', target: '/api', headers: [], user: anna, isLongRunning: false };
  await upstream.send(request, { ...ignored, onError: (error) => resolve(error) });
  const error = await promise;
  expect(failureOf(error, request, false)).toMatchObject({ code: 503, headers: { 'Retry-After': '1' } });
  expect(failureOf(error, request, true)).toMatchObject({ code: 502, headers: {} });
  expect(failureOf(error, { method: 'GET' }, true)).toMatchObject({ code: 503, headers: { 'Retry-After': '1' } });
});

test('requests to kube-apiserver do not wait for each other', async () => {
  const kube = new FakeKubeApiserver();
  kube.serve = () => undefined;
  const busy = upstreamAt(await kube.listen());
  const request = { method: 'GET', target: '/api', headers: [], user: anna, isLongRunning: false };
  const many = 300;
  for (let count = 0; count < many; count += 1) await busy.send(request, ignored);
  while (kube.seen.length < many) await sleep(5);
  expect(kube.sockets.size).toBe(many);
  busy.close();
  kube.close();
});

const broken = createUpstream({
  address: addressOf('http://127.0.0.1:1', { rejectUnauthorized: true }),
  credential: { headers: () => Promise.reject(new Error('ENOENT')), renew: nothing },
});

test('a credential for kube-apiserver that cannot be read causes 503', async () => {
  const request = { method: 'GET', target: '/api', headers: [], user: anna, isLongRunning: false };
  await expect(broken.send(request, ignored)).rejects.toMatchObject({ code: 503 });
});

test.each([
  ['whose credential cannot be read', broken, '/api', 0],
  ['that cannot be serialized', upstream, '/a b', 1],
])('a request to kube-apiserver %s leaves no span open', async (_, to, target, started) => {
  const request = { method: 'GET', target, headers: [], user: anna, isLongRunning: false };
  const never = new AbortController().signal;
  const sends: (() => Promise<unknown>)[] = [
    () => to.send(request, ignored),
    () => to.upgrade(request, 'websocket', never),
  ];
  for (const send of sends) {
    const span = new FakeSpan();
    await expect(within(span, send)).rejects.toThrow(/./);
    expect([span.started.length, span.ended.length]).toEqual([started, started]);
  }
});
