/** Watches as clients receive them, over each version of HTTP: complete to the last byte. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { once } from 'node:events';
import net from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Message } from '../client/message.ts';
import { login, startLab, type Lab, type Way } from '../labs/conformance/lab.ts';

const path = '/kapis/resources.platform.io/v1alpha3/nodes';

let lab: Lab;
let authorization: string;
beforeAll(async () => {
  lab = await startLab();
  authorization = `Bearer ${String((await lab.token(login)).json()['access_token'])}`;
});
afterAll(() => lab.stop());

async function opened(way: Way, query: string): Promise<Message> {
  const message = await lab.open(way, `${path}?${query}`, { headers: { authorization } });
  expect(message.status).toBe(200);
  return message;
}

/** Functions that open a watch over each transport and return its body. */
const ways: Record<string, (query: string) => Promise<Readable>> = {
  'HTTP/1.1': (query) => opened('http', query),
  'HTTP/1.1 over TLS': (query) => opened('https', query),
  'HTTP/2': (query) => opened('HTTP/2', query),
  'HTTP/1.0': async (query) => {
    const socket = net.connect({ port: lab.ports.http, host: '127.0.0.1' });
    socket.write(`GET ${path}?${query} HTTP/1.0\r\nAuthorization: ${authorization}\r\n\r\n`);
    let head = '';
    while (!head.endsWith('\r\n\r\n')) {
      const byte = socket.read(1) as Buffer | null;
      if (byte === null) await once(socket, 'readable');
      else head += byte.toString('latin1');
    }
    expect(head).toMatch(/^HTTP\/1\.1 200 /);
    expect(head).not.toMatch(/transfer-encoding/i);
    return socket;
  },
};

test('a watch over each version of HTTP sends existing objects and all changes, small and large, before the watch ends', async () => {
  const sizes = [10, 100_000, 0, 1_000_000];
  const bodies = await Promise.all(Object.values(ways).map((watch) => watch('watch=true&timeoutSeconds=10')));
  let waiting = bodies.length;
  const received = bodies.map(async (input) => {
    const all: string[] = [];
    for await (const line of createInterface({ input })) {
      const { type, object } = JSON.parse(line) as {
        type: string;
        object: { metadata: { name: string; annotations?: { filling: string } } };
      };
      all.push(`${type} ${object.metadata.name} ${object.metadata.annotations?.filling.length ?? ''}`.trim());
      if (all.length === 3) waiting -= 1;
      if (all.length !== 3 || waiting > 0) continue;
      for (const size of sizes) lab.putNode('changing', size);
      lab.cluster.delete('/api/v1/nodes', 'changing');
    }
    return all;
  });
  const wanted = [
    'ADDED n1',
    'ADDED n2',
    'ADDED n3',
    'ADDED changing 10',
    'MODIFIED changing 100000',
    'MODIFIED changing 0',
    'MODIFIED changing 1000000',
    'DELETED changing 1000000',
  ];
  expect(await Promise.all(received)).toEqual(bodies.map(() => wanted));
});

test('a pipelined watch is sent completely after the response to the previous request', async () => {
  const socket = net.connect({ port: lab.ports.http, host: '127.0.0.1' });
  const head = `Host: platform.example\r\nAuthorization: ${authorization}\r\n`;
  socket.write(
    `GET ${path} HTTP/1.1\r\n${head}\r\nGET ${path}?watch=true&timeoutSeconds=1 HTTP/1.1\r\n${head}Connection: close\r\n\r\n`,
  );
  const [, list = '', watch = ''] = (await text(socket)).split(/HTTP\/1\.1 200 OK\r\n/);
  expect(list).toContain('"kind":"NodeList"');
  const [, chunks = ''] = watch.split('\r\n\r\n', 2);
  expect(watch.endsWith('\r\n0\r\n\r\n')).toBe(true);
  expect(chunks.match(/"type":"ADDED"/g)).toHaveLength(3);
});

test('server-sent events resume after the last event that the client received', async () => {
  const events = async (headers: Record<string, string>): Promise<string[]> => {
    const accept = 'text/event-stream';
    const url = `${path}?watch=true&timeoutSeconds=1&labelSelector=!x`;
    const response = await lab.gateway(url, { headers: { authorization, accept, ...headers } });
    expect(response.headers['content-type']).toBe(accept);
    return response.text.split('\n\n').filter((part) => part.includes('data: '));
  };
  const first = await events({});
  expect(first).toHaveLength(3);
  lab.putNode('watched', 0);
  lab.putNode('watched', 1);
  const whole = await events({});
  const before = String(Number(lab.cluster.get('/api/v1/nodes', 'watched')?.metadata.resourceVersion) - 1);
  const resumed = await events({ 'last-event-id': before });
  expect(resumed).toHaveLength(1);
  expect(resumed[0]).toMatch(/^id: \d+\ndata: \{"type":"MODIFIED",.*"name":"watched"/);
  expect(whole).toHaveLength(4);
  lab.cluster.delete('/api/v1/nodes', 'watched');
});
