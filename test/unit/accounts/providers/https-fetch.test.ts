/** Requests to an HTTPS server in the test process. Each test sets the responses of the server. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createAuthority } from '../../../../hack/cluster/pki.ts';
import { fetchOverTLS } from '../../../../src/accounts/providers/https-fetch.ts';

let server: Server;
let ca: string;
let url: string;
let respond: (req: IncomingMessage, res: ServerResponse) => unknown;
let requests = 0;

beforeAll(async () => {
  const authority = await createAuthority('provider-ca');
  ca = authority.certificate;
  const { certificate, key } = await authority.issue({ commonName: 'provider', server: ['127.0.0.1'] });
  server = createServer({ cert: certificate, key }, (req, res) => {
    requests += 1;
    respond(req, res);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/path?query`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  requests = 0;
  respond = (_, res) => res.end('{}');
});

const get = (options: { readonly signal?: AbortSignal } = {}): Promise<Response> =>
  fetchOverTLS(ca)(url, { method: 'GET', headers: {}, ...options });
/** The bytes that the server writes. */
const raw = (bytes: string) => (_: IncomingMessage, res: ServerResponse) => res.socket?.end(bytes);

describe('a request to an OpenID provider', () => {
  test.each<[string, unknown, string]>([
    ['text', 'größe', 'größe'],
    ['a form', new URLSearchParams({ code: 'a b' }), 'code=a+b'],
    ['no body', undefined, ''],
    ['an empty form', new URLSearchParams(), ''],
  ])('a request to an OpenID provider sends its method, path, headers and %s', async (_, body, sent) => {
    const received = Promise.withResolvers<unknown>();
    respond = async (req, res) => {
      const { method, url: path, headers } = req;
      received.resolve({ method, path, headers, body: await text(req) });
      res.end();
    };
    await fetchOverTLS(ca)(url, { method: 'POST', headers: { 'x-a': 'b' }, body });
    const { headers, ...request } = (await received.promise) as { headers: Record<string, string> };
    expect(request).toEqual({ method: 'POST', path: '/path?query', body: sent });
    expect(headers).toMatchObject({ 'x-a': 'b', connection: 'close' });
    expect(headers['content-length']).toBe(String(Buffer.byteLength(sent)));
  });

  test.each<[string, string | undefined]>([
    ['if no CA is configured', undefined],
    ['if another CA is configured', 'other'],
  ])('a request to an OpenID provider whose certificate is from a private CA is not sent %s', async (_, other) => {
    const authority = other && (await createAuthority(other)).certificate;
    const response = fetchOverTLS(authority)(url, { method: 'GET', headers: {} });
    await expect(response).rejects.toThrow('unable to verify');
    expect(requests).toBe(0);
  });

  test('a request to an OpenID provider is not sent if the URL does not use HTTPS', async () => {
    const response = fetchOverTLS(ca)('http://127.0.0.1:1/', { method: 'GET', headers: {} });
    await expect(response).rejects.toThrow('127.0.0.1:1 must be requested over https');
  });

  test.each(['before', 'during'])(
    'a request to an OpenID provider is aborted by its abort signal %s the response',
    async (when) => {
      const controller = new AbortController();
      const arrived = Promise.withResolvers<void>();
      respond = (_, res) => {
        if (when === 'during') res.write('{');
        arrived.resolve();
      };
      const response = get({ signal: controller.signal });
      await arrived.promise;
      controller.abort();
      await expect(response).rejects.toMatchObject({ name: 'AbortError' });
    },
  );
});

describe('a response of an OpenID provider', () => {
  test('a response of an OpenID provider is returned with its status, headers and body', async () => {
    respond = (_, res) => {
      res.writeHead(418, { 'content-type': 'application/json', 'set-cookie': ['a=1', 'b=2'] });
      res.write('{"a":');
      res.end('"ö"}');
    };
    const response = await get();
    expect(response.status).toBe(418);
    expect(response.headers.get('content-type')).toBe('application/json');
    await expect(response.json()).resolves.toEqual({ a: 'ö' });
  });

  test('a redirect of an OpenID provider is not followed', async () => {
    respond = (_, res) => res.writeHead(302, { location: '/elsewhere' }).end();
    expect((await get()).status).toBe(302);
    expect(requests).toBe(1);
  });

  test.each([200, 204, 304])(
    'a response of an OpenID provider with the status %i is accepted without a body',
    async (status) => {
      respond = (_, res) => res.writeHead(status).end();
      const response = await get();
      expect({ status: response.status, body: response.body }).toEqual({ status, body: null });
    },
  );

  test('a response of an OpenID provider is accepted with a body of 1 MiB', async () => {
    respond = (_, res) => res.end('x'.repeat(1_048_576));
    expect(await (await get()).text()).toHaveLength(1_048_576);
  });

  test('a response of an OpenID provider is rejected as soon as it exceeds 1 MiB, even if it never ends', async () => {
    const closed = Promise.withResolvers<void>();
    respond = (_, res) => {
      res.once('close', () => closed.resolve());
      res.write('x'.repeat(1_048_577));
    };
    await expect(get()).rejects.toThrow(/127\.0\.0\.1:\d+ is too large/);
    await closed.promise;
  });

  test.each([
    // `Response` accepts the statuses 200 to 599, and no body for 205.
    ['has an invalid status', 'HTTP/1.1 999 No\r\nContent-Length: 2\r\n\r\n{}', 'status'],
    ['has a status below 200', 'HTTP/1.1 000 No\r\nContent-Length: 2\r\n\r\n{}', 'statusCode'],
    ['has the status 205 and a body', 'HTTP/1.1 205 Reset\r\nContent-Length: 2\r\n\r\n{}', 'status code 205'],
  ])('a response of an OpenID provider that %s causes only its own request to fail', async (_, bytes, message) => {
    respond = raw(bytes);
    await expect(get()).rejects.toThrow(message);
  });
});
