import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { listenTo, upgraded } from '../fakes/web-socket.ts';
import { login, startLab } from '../labs/conformance/lab.ts';

interface Reader {
  /** All that it was told until the server closed its connection. */
  readonly body: Promise<string>;
}

/** Watches of one user. */
const most = 1_000;

test('a thousand watches, two of them WebSockets, end one by one when the server stops, each with the last chunk', async () => {
  const lab = await startLab();
  const token = String((await lab.token(login)).json()['access_token']);
  const path = '/kapis/resources.platform.io/v1alpha3/nodes?watch=true';
  const head = `Host: platform.example\r\nAuthorization: Bearer ${token}\r\n`;
  const request = `GET ${path} HTTP/1.1\r\n${head}\r\n`;
  const open = (): Promise<Reader> =>
    new Promise((resolve) => {
      const socket = net.connect({ port: lab.ports.http, host: '127.0.0.1' });
      socket.write(request);
      // Its first bytes: it has begun.
      socket.once('data', () => resolve({ body }));
      const body = text(socket);
    });
  const readers: Reader[] = [];
  while (readers.length < most - 2)
    readers.push(...(await Promise.all(Array.from({ length: Math.min(100, most - 2 - readers.length) }, open))));
  const headers = { authorization: `Bearer ${token}` };
  const polite = await listenTo(`ws://127.0.0.1:${lab.ports.http}${path}`, { headers });
  // Its client never answers the close.
  const [rude] = await upgraded(lab.ports.http, path, headers);
  const cut = once(rude.on('error', () => undefined).resume(), 'close');
  await expect(upgraded(lab.ports.http, path, headers)).rejects.toThrow('answered 429');
  let ended = 0;
  let leftAtFirst = 0;
  const bodies = readers.map(async ({ body }) => {
    const told = await body;
    ended += 1;
    if (ended === 1) leftAtFirst = readers.length - ended;
    return told;
  });
  await lab.stop({ announce: 1, grace: 4_000 });
  for (const told of await Promise.all(bodies)) {
    expect(told.match(/"type":"ADDED"/g)).toHaveLength(3);
    expect(told.endsWith('\r\n0\r\n\r\n')).toBe(true);
  }
  expect(await polite.closed).toEqual({ code: 1000, wasClean: true });
  await cut;
  expect(leftAtFirst).toBeGreaterThan(0);
});
