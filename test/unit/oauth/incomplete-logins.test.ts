import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import { send } from '../../fakes/request.ts';
import { createLab, login } from '../../labs/oauth.ts';

const head =
  'POST /oauth/token HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\n';

test('incomplete logins take no login slot, and are limited to ten per address', async () => {
  const { app, token } = await createLab();
  const clients = Array.from({ length: 100 }, () => send(app, head));
  const responses = clients.map(async (client) => {
    let text = '';
    client.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')));
    while (!text.includes('"error"')) await once(client, 'data');
    return text;
  });
  // The first ten logins hold the slots.
  const refused = await Promise.all(responses.slice(10));
  expect(new Set(refused.map((text) => text.slice(0, 12)))).toEqual(new Set(['HTTP/1.1 429']));
  expect(refused[0]).toContain(
    '10 incomplete logins of this address are already in progress (a tenth of requests.maxInFlightPerUser)',
  );
  expect((await token(login)).status).toBe(200);
  // The server still processes bodies that arrive late.
  clients[0]?.write('username=a');
  expect(await responses[0]).toContain('HTTP/1.1 401');
  for (const client of clients) client.destroy();
});
