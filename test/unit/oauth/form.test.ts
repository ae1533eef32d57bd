import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { Request } from 'express';
import http from 'node:http';
import http2 from 'node:http2';
import { duplexPair } from 'node:stream';
import { OAuthError } from '../../../src/runtime/errors.ts';
import { decode, readForm } from '../../../src/oauth/form.ts';
import { sendRequest } from '../../fakes/request.ts';

const form = 'application/x-www-form-urlencoded';

interface Read {
  /** Returns the parsed form or the thrown error. */
  readonly result: Record<string, string> | OAuthError;
}

async function read(body: string | Buffer, contentType: string | undefined = form, more: object = {}): Promise<Read> {
  let result: Read['result'] = {};
  await sendRequest(
    (req, res) => {
      readForm(req as Request)
        .then(
          (fields) => (result = Object.fromEntries(fields)),
          (error: unknown) => (result = error as OAuthError),
        )
        .finally(() => res.end());
    },
    '/',
    { method: 'POST', body, headers: { ...(contentType === '' ? {} : { 'content-type': contentType }), ...more } },
  );
  return { result };
}

describe('form fields', () => {
  // evidence: form-parameters
  test.each<[string, Record<string, string>]>([
    ['', {}],
    ['&&', {}],
    ['a=1&b=2', { a: '1', b: '2' }],
    ['a=1+2%2B3', { a: '1 2+3' }],
    ['a%20b=1', { 'a b': '1' }],
    ['a=b=c', { a: 'b=c' }],
    ['password=%C3%A4%E2%82%AC', { password: 'ä€' }],
    ['password=ä', { password: 'ä' }],
    ['a=%EF%BB%BFx', { a: '\uFEFFx' }],
    // A parameter without a value counts as omitted.
    ['a=&b&c=1', { c: '1' }],
    ['__proto__=1&constructor=2', { ['__proto__']: '1', constructor: '2' }],
    ['a[]=1&a[b]=2', { 'a[]': '1', 'a[b]': '2' }],
    ['a;b=1', { 'a;b': '1' }],
  ])('the form %j is parsed into its fields', async (body, fields) => {
    expect(Object.entries((await read(body)).result)).toEqual(Object.entries(fields));
  });

  test('encoded form fields are decoded to the original values', async () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(fc.dictionary(text, text, { maxKeys: 5 }), async (fields) => {
        const { result } = await read(new URLSearchParams(fields).toString());
        expect(Object.fromEntries(Object.entries(result))).toEqual(fields);
      }),
      { numRuns: 50 },
    );
  });

  test.each(['a=1&a=2', 'a=1&a=1', 'a=&a=', 'a&a', 'a=1&%61=2', 'a=1&b=2&a='])(
    'a form with a repeated field is rejected, and the error names the field: %s',
    async (body) => {
      expect((await read(body)).result).toMatchObject({
        error: 'invalid_request',
        code: 400,
        message: 'the parameter "a" is repeated',
      });
    },
  );
});

// evidence: form-charset
test.each<[string, string | Buffer]>([
  ['a bare percent sign', 'a=100%'],
  ['an incomplete byte', 'a=%4'],
  ['invalid hexadecimal digits', 'a=%zz'],
  ['percent-encoded invalid UTF-8', 'a=%ff'],
  ['an incomplete character, encoded', 'a=%C3'],
  ['invalid UTF-8', Buffer.from([0x61, 0x3d, 0xff])],
  ['an invalid name', '%ff=1'],
])('a form with %s gets 400', async (_, body) => {
  expect((await read(body)).result).toMatchObject({ name: 'OAuthError', error: 'invalid_request', code: 400 });
});

test.each([
  ['accepted', form],
  ['accepted', form.toUpperCase()],
  ['accepted', `${form};charset=utf-8`],
  ['accepted', `${form}; charset="UTF-8"`],
  ['accepted', `${form} ;`],
  ['rejected', `${form};charset=iso-8859-1`],
  ['rejected', `${form};boundary=x`],
  ['rejected', `${form}x`],
  ['rejected', 'application/json'],
  ['rejected', 'multipart/form-data; boundary=x'],
  ['rejected', 'text/plain'],
  ['rejected', ''],
])('a form is %s with the content type %j', async (outcome, contentType) => {
  const { result } = await read('a=1', contentType);
  expect(result).toMatchObject(outcome === 'accepted' ? { a: '1' } : { error: 'invalid_request', code: 415 });
});

const tooLarge = { error: 'invalid_request', code: 413 };

test('a form of 64 KiB is accepted, and a larger form gets 413', async () => {
  expect((await read(`a=${'x'.repeat(65_534)}`)).result).toHaveProperty('a');
  expect((await read(`a=${'x'.repeat(65_535)}`)).result).toMatchObject(tooLarge);
});

test.each([
  ['gzip', 415],
  ['br', 415],
  ['identity, gzip', 415],
  ['identity', 200],
  ['Identity', 200],
])('a form with the content encoding %j gets %d', async (encoding, status) => {
  const { result } = await read('a=1', form, { 'content-encoding': encoding });
  expect(result).toMatchObject(
    status === 200 ? { a: '1' } : { error: 'invalid_request', code: 415, headers: { 'Accept-Encoding': 'identity' } },
  );
});

/** A request whose body the test controls. `clientStatus` is the status that the client receives. */
interface Open {
  readonly send: (text: string) => void;
  readonly end: () => void;
  readonly destroy: () => void;
  readonly result: Promise<Read['result']>;
  readonly clientStatus: Promise<number>;
}

const versions: readonly ['1.1' | '2', object][] = [
  ['1.1', { 'transfer-encoding': 'chunked' }],
  ['2', {}],
];

function open(version: '1.1' | '2', headers: object, timeout?: number): Open {
  const [near, far] = duplexPair();
  const result = Promise.withResolvers<Read['result']>();
  const clientStatus = Promise.withResolvers<number>();
  const listener = (req: unknown, res: unknown): void => {
    const response = (to: Read['result'], status: number): void => {
      result.resolve(to);
      (res as http.ServerResponse).writeHead(status).end();
    };
    readForm(req as Request, undefined, timeout).then(
      (fields) => response(Object.fromEntries(fields), 200),
      (error: OAuthError) => response(error, error.code),
    );
  };
  const outcome = { result: result.promise, clientStatus: clientStatus.promise };
  const all = { 'content-type': form, ...headers };
  if (version === '1.1') {
    http.createServer(listener).emit('connection', Object.assign(far, { remoteAddress: '192.0.2.1' }));
    const request = http.request({ createConnection: () => near, method: 'POST', headers: { host: 'a', ...all } });
    request.once('response', ({ statusCode = 0 }) => clientStatus.resolve(statusCode));
    request.on('error', () => clientStatus.resolve(0));
    request.flushHeaders();
    return { ...steps(request), ...outcome };
  }
  http2.createServer(listener).emit('connection', far);
  const session = http2.connect('http://platform.example', { createConnection: () => near });
  const request = session.request({ ':method': 'POST', ':path': '/', ...all });
  request.once('response', ({ ':status': status = 0 }) => clientStatus.resolve(status));
  request.on('error', () => clientStatus.resolve(0));
  return { ...steps(request), ...outcome };
}

const steps = (request: http.ClientRequest | http2.ClientHttp2Stream): Pick<Open, 'send' | 'end' | 'destroy'> => ({
  send: (text) => void request.write(text),
  end: () => void request.end(),
  destroy: () => void request.destroy(),
});

describe.each(versions)('over HTTP/%s', (version, headers) => {
  test('a form without a length is read to its end', async () => {
    const { send, end, result, clientStatus } = open(version, headers);
    send('a=1&');
    send('b=2');
    end();
    expect(await result).toEqual({ a: '1', b: '2' });
    expect(await clientStatus).toBe(200);
  });

  test('an empty form without a length is accepted', async () => {
    const { end, result } = open(version, headers);
    end();
    expect(await result).toEqual({});
  });

  test('a form without a length gets 413 as soon as the form exceeds the limit', async () => {
    const { send, result, clientStatus } = open(version, headers);
    for (let sent = 0; sent <= 64; sent += 1) send('x'.repeat(1024));
    expect(await result).toMatchObject(tooLarge);
    expect(await clientStatus).toBe(413);
  });

  test('a form without a length gets 408 when the form does not end in time', async () => {
    const { send, result, clientStatus } = open(version, headers, 50);
    send('a=1');
    expect(await result).toMatchObject({ error: 'invalid_request', code: 408 });
    expect(await clientStatus).toBe(408);
  });

  test('reading a form without a length stops when the client disconnects', async () => {
    const { send, destroy, result } = open(version, headers);
    send('a=1');
    setTimeout(destroy, 20);
    expect(await result).toMatchObject({ error: 'invalid_request', code: 400 });
  });
});

test('encoded forms are decoded to the original values', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      expect(decode(encodeURIComponent(text).replaceAll('%20', '+'))).toBe(text);
    }),
  );
});

const parameters = (count: number): string => Array.from({ length: count }, (_, index) => `p${index}=1`).join('&');

test('a form of more than 1,000 parameters is rejected', async () => {
  expect(Object.keys((await read(parameters(1_000))).result)).toHaveLength(1_000);
  expect((await read(parameters(1_001))).result).toMatchObject({
    error: 'invalid_request',
    message: 'the form has more than 1000 parameters',
  });
});
