/** CPU and heap profiles of the server (docs/guides/operations.md). */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { connect } from 'node:net';
import { issuer, login, startLab, type Lab, type LabRequest } from '../labs/conformance/lab.ts';
import type { AppResponse } from '../fakes/request.ts';

const cpu = '/debug/profiles/cpu';
const heap = '/debug/profiles/heap';

const passwordHash = '$2b$04$PVYFFzvPKAZ5s.rDfx34..PB6WWeDAm4X5T0Fqize59IEWhtVe4tS';
const bearerOf = async (username: string): Promise<{ authorization: string }> => ({
  authorization: `Bearer ${String((await lab.token({ ...login, username })).json()['access_token'])}`,
});

let lab: Lab;
/** Credentials of alice, who has all rights. */
let headers: { authorization: string };
beforeAll(async () => {
  const users = ['alice', 'bob'].map((username) => ({ username, passwordHash }));
  lab = await startLab({ sections: { authentication: { issuer, users } } });
  headers = await bearerOf('alice');
});
afterAll(() => lab.stop());

const send = (path: string, more: LabRequest = {}): Promise<AppResponse> =>
  lab.gateway(path, { ...more, headers: { ...headers, ...more.headers } });

/** Returns all keys and all strings of a JSON value. */
function partsOf(value: unknown, keys = new Set<string>(), texts = new Set<string>()) {
  if (typeof value === 'string') texts.add(value);
  if (typeof value === 'object' && value !== null)
    for (const [key, item] of Object.entries(value)) {
      if (!Array.isArray(value)) keys.add(key);
      partsOf(item, keys, texts);
    }
  return { keys, texts };
}

test.each([cpu, heap])('%s requires authentication and the right to get the path', async (path) => {
  expect((await lab.gateway(path)).status).toBe(401);
  const response = await lab.gateway(path, { headers: await bearerOf('bob') });
  expect([response.status, response.json()['message']]).toEqual([
    403,
    `forbidden: User "bob" cannot get path "${path}"`,
  ]);
});

test.each(['0', '61', '1.5', '-1', 'x', ''])(
  'a CPU profile with the parameter seconds=%j is rejected with 400',
  async (seconds) => {
    const { status, text } = await send(`${cpu}?seconds=${seconds}`);
    expect([status, text]).toEqual([400, expect.stringContaining('seconds: expected an integer from 1 to 60')]);
  },
);

test('a CPU profile contains the functions of the server and samples', async () => {
  const response = await send(`${cpu}?seconds=1`);
  expect(response.headers).toMatchObject({
    'content-type': 'application/json',
    'content-disposition': 'attachment; filename="platform-apiserver.cpuprofile"',
  });
  const { keys } = partsOf(response.json());
  for (const key of ['nodes', 'startTime', 'endTime', 'samples', 'timeDeltas']) expect(keys).toContain(key);
});

test('a heap profile contains functions, positions and sizes, but no values of a request in progress', async () => {
  const secret = 'four green kettles';
  const [response] = await Promise.all([
    send(`${heap}?seconds=1`),
    ...Array.from({ length: 50 }, () => lab.token({ ...login, password: secret, client_secret: secret })),
  ]);
  const { keys, texts } = partsOf(response.json());
  // V8 removes the samples of objects that garbage collection has freed.
  const ofSamples = ['nodeId', 'ordinal', 'size'];
  expect([...keys].filter((key) => !ofSamples.includes(key)).toSorted()).toEqual([
    'callFrame',
    'children',
    'columnNumber',
    'functionName',
    'head',
    'id',
    'lineNumber',
    'samples',
    'scriptId',
    'selfSize',
    'url',
  ]);
  for (const value of [secret, headers.authorization.split(' ')[1] ?? ''])
    expect([...texts].filter((one) => one.includes(value))).toEqual([]);
});

test('the request for a profile is rejected with 429 and Retry-After while another profile is recorded', async () => {
  const first = send(`${cpu}?seconds=1`);
  let refused = await send(`${heap}?seconds=1`);
  // The second request may arrive before the first.
  while (refused.status === 200) refused = await send(`${heap}?seconds=1`);
  expect([refused.status, refused.headers['retry-after']]).toEqual([429, '1']);
  expect([200, 429]).toContain((await first).status);
});

test('the server stops recording a profile when the client disconnects', async () => {
  const socket = connect({ port: lab.ports.http, host: '127.0.0.1' });
  const { authorization } = headers;
  socket.write(`GET ${cpu}?seconds=60 HTTP/1.1\r\nHost: platform.example\r\nAuthorization: ${authorization}\r\n\r\n`);
  while ((await send(`${heap}?seconds=1`)).status !== 429) continue;
  socket.destroy();
  let after = await send(`${heap}?seconds=1`);
  while (after.status === 429) after = await send(`${heap}?seconds=1`);
  expect(after.status).toBe(200);
});

test('the request for a profile gets 503 if the server stops during the recording', async () => {
  const response = send(`${cpu}?seconds=60`);
  while ((await send(`${heap}?seconds=1`)).status !== 429) continue;
  await lab.stop();
  expect((await response).status).toBe(503);
});
