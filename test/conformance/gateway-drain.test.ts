import { expect, test } from '@jest/globals';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { talkOver } from '../fakes/talk.ts';
import { FakeKubeApiserver } from '../fakes/upstream.ts';
import { login, startLab } from '../labs/conformance/lab.ts';

const pod = '/api/v1/namespaces/default/pods/p';

test('during a shutdown, the server completes watches, and serves exec until the grace period ends', async () => {
  const kube = new FakeKubeApiserver();
  kube.serve = (_, res) => void res.write('{}\n');
  kube.grant = (_, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nhello');
    socket.pipe(socket);
  };
  const lab = await startLab({ kubeApiserver: await kube.listen() });
  const token = String((await lab.token(login)).json()['access_token']);
  const talk = (line: string, more = '') =>
    talkOver(
      net.connect(lab.ports.http, '127.0.0.1'),
      `${line} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n${more}\r\n`,
    );
  const exec = talk(`POST ${pod}/exec`, 'Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n');
  const watch = talk('GET /api/v1/pods?watch=true');
  const log = talk(`GET ${pod}/log?follow=true`);
  await exec.expectUntil('hello');
  await watch.expectUntil('3\r\n{}\n\r\n');
  await log.expectUntil('3\r\n{}\n\r\n');
  const stopped = lab.stop({ announce: 1, grace: 3_000 });
  await watch.closed;
  exec.socket.write('still here');
  await exec.expectUntil('hellostill here');
  await Promise.all([stopped, exec.closed, log.closed]);
  expect(watch.received().endsWith('\r\n0\r\n\r\n')).toBe(true);
  expect(log.received().endsWith('3\r\n{}\n\r\n')).toBe(true);
  while (kube.sockets.size > 0) await sleep(5);
  kube.close();
});
