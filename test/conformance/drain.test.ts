import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { listenTo, upgraded } from '../fakes/web-socket.ts';
import { login, startLab } from '../labs/conformance/lab.ts';

interface Reader {
  /** Everything received until the server closed its connection. */
  readonly body: Promise<string>;
}

/** Maximum watches of one user. */
const max = 1_000;

test('during a shutdown, the server ends a thousand watches one after another, each with a last chunk or a close frame', async () => {
  const lab = await startLab();
  const token = String((await lab.token(login)).json()['access_token']);
  const path = '/kapis/resources.platform.io/v1alpha3/nodes?watch=true';
  const head = `Host: platform.example\r\nAuthorization: Bearer ${token}\r\n`;
  const request = `GET ${path} HTTP/1.1\r\n${head}\r\n`;
  const open = (): Promise<Reader> =>
    new Promise((resolve) => {
      const socket = net.connect({ port: lab.ports.http, host: '127.0.0.1' });
      socket.write(request);
      // The first bytes show that the watch has started.
      socket.once('data', () => resolve({ body }));
      const body = text(socket);
    });
  const readers: Reader[] = [];
  while (readers.length < max - 2)
    readers.push(...(await Promise.all(Array.from({ length: Math.min(100, max - 2 - readers.length) }, open))));
  const headers = { authorization: `Bearer ${token}` };
  const wellBehaved = await listenTo(`ws://127.0.0.1:${lab.ports.http}${path}`, { headers });
  // This client never replies to the close frame.
  const [unresponsive] = await upgraded(lab.ports.http, path, headers);
  const disconnected = once(unresponsive.on('error', () => undefined).resume(), 'close');
  await expect(upgraded(lab.ports.http, path, headers)).rejects.toThrow('status 429');
  let ended = 0;
  let leftAtFirst = 0;
  const bodies = readers.map(async ({ body }) => {
    const received = await body;
    ended += 1;
    if (ended === 1) leftAtFirst = readers.length - ended;
    return received;
  });
  await lab.stop({ announce: 1, grace: 4_000 });
  for (const received of await Promise.all(bodies)) {
    expect(received.match(/"type":"ADDED"/g)).toHaveLength(3);
    expect(received.endsWith('\r\n0\r\n\r\n')).toBe(true);
  }
  expect(await wellBehaved.closed).toEqual({ code: 1000, wasClean: true });
  await disconnected;
  expect(leftAtFirst).toBeGreaterThan(0);
});
