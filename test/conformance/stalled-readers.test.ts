/** Streams whose clients stop reading end like other streams, and free their slots. */
// evidence: stalled-readers
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { FakeKubeApiserver } from '../fakes/upstream.ts';
import { login, startLab, type Lab } from '../labs/conformance/lab.ts';
import { as, begin, line, prepareLogs, putPod, resource, serveResources } from '../labs/conformance/logging-lab.ts';

const logs = '/kapis/logging.platform.io/v1alpha2/logs';
const secrets = '/api/v1/secrets';
const passedWatch =
  '/kapis/resources.platform.io/v1alpha3/secrets?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
/** A text that exceeds the buffers of a connection when sent `manyTimes`. */
const filling = 'x'.repeat(100_000);
const manyTimes = 300;

const kube = new FakeKubeApiserver();
let lab: Lab;
let token: string;
let client: Socket | undefined;
/** Server side of each open connection. A later connection can have the port of one that was closed. */
const accepted = new Set<Socket>();
const accept = (message: unknown): void => {
  const { socket } = message as { socket: Socket };
  accepted.add(socket);
  socket.once('close', () => accepted.delete(socket));
};

beforeAll(async () => {
  subscribe('net.server.socket', accept);
  kube.serve = (_, res) => {
    res.writeHead(200, { 'content-type': 'application/json' });
    for (let count = 0; count < manyTimes; count += 1) res.write(filling);
  };
  kube.grant = (_, socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    for (let count = 0; count < manyTimes; count += 1) socket.write(`${filling.length.toString(16)}\r\n${filling}\r\n`);
  };
  lab = await startLab({
    kubeApiserver: await kube.listen(),
    prepare: (cluster) => {
      prepareLogs(cluster, new Map());
      serveResources(cluster, { core: [resource('secrets', 'Secret', 'Namespaced')] });
      for (let count = 0; count < manyTimes; count += 1)
        cluster.put(secrets, { metadata: { name: `s-${count}`, namespace: 'shop', annotations: { filling } } });
      putPod(cluster, { namespace: 'shop', name: 'tailed' });
      putPod(cluster, { namespace: 'shop', name: 'exported' });
      cluster.podLogs.put('shop/tailed/main');
      const lines = Array.from({ length: manyTimes }, () => line(10, filling));
      cluster.podLogs.put('shop/exported/main', ...lines);
    },
  });
});
afterAll(async () => {
  unsubscribe('net.server.socket', accept);
  await lab.stop();
  kube.close();
});
beforeEach(async () => {
  token = String((await lab.token(login)).json()['access_token']);
});
afterEach(() => void client?.destroy());

/** Opens a stream without reading it. */
function open(path: string, more = ''): void {
  client = connect(lab.ports.http, '127.0.0.1').pause();
  client.on('error', () => undefined);
  client.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n${more}\r\n`);
}

async function openStreams(): Promise<number> {
  const { text } = await lab.gateway('/metrics', as('alice'));
  return Number(/^platform_apiserver_open_watches (\d+)$/m.exec(text)?.[1]);
}

/** Resolves when the server is blocked on writing. */
async function stalled(): Promise<void> {
  for (let before = 0; ;) {
    const served = [...accepted].find(({ remotePort }) => remotePort === client?.localPort);
    const { writableLength = 0, bytesWritten = 0 } = served ?? {};
    if (writableLength > 0 && bytesWritten === before) return;
    before = bytesWritten;
    await sleep(100);
  }
}

async function tail(): Promise<void> {
  const { podLogs } = lab.cluster;
  while (podLogs.open === 0) await sleep(5);
  const time = new Date().toISOString();
  for (let count = 0; count < manyTimes; count += 1) podLogs.write('shop/tailed/main', { time, log: filling });
}

const upgrade = 'Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n';

describe('a stream whose client does not read', () => {
  test.each<[string, string, string, () => Promise<void> | void]>([
    ['a log tail', `${logs}?follow=true&pods=tailed`, '', tail],
    ['a log export', `${logs}?operation=export&pods=exported&start_time=${begin}`, '', () => undefined],
    ['an uncached watch', passedWatch, '', () => undefined],
    ['a proxied watch', `${secrets}?watch=true`, '', () => undefined],
    ['a proxied watch with an upgrade', `${secrets}?watch=true`, upgrade, () => undefined],
    ['a proxied pod log', '/api/v1/namespaces/shop/pods/p/log?follow=true', '', () => undefined],
  ])(
    'a stream whose client does not read ends when its session is revoked, and frees its slot: %s',
    async (_, path, headers, fill) => {
      open(path, headers);
      await fill();
      await stalled();
      expect(await openStreams()).toBe(1);
      await lab.revoke(token);
      while ((await openStreams()) > 0) await sleep(50);
      expect(lab.cluster.podLogs.open).toBe(0);
    },
  );
});

test.each([
  ['a log tail', `${logs}?follow=true&pods=tailed&timeout=3s`, tail],
  ['a log export', `${logs}?operation=export&pods=exported&start_time=${begin}&timeout=3s`, () => undefined],
  ['an uncached watch', `${passedWatch}&timeoutSeconds=1`, () => undefined],
])('%s ends after its timeout even if the client does not read', async (_, path, fill) => {
  open(path);
  await fill();
  await stalled();
  while ((await openStreams()) > 0) await sleep(50);
  expect(lab.cluster.podLogs.open).toBe(0);
});
