/**
 * Compares the parser with node:http on random responses in random pieces. Most responses have a few changed bytes,
 * which either parser is allowed to reject. If both parsers accept a response, their results must be equal. fast-check
 * prints the seed of a failure; FUZZ=n tests 100 n responses.
 */
import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { request } from 'node:http';
import { Duplex } from 'node:stream';
import { ResponseParser } from '../../../../src/cluster/wire/response-parser.ts';

interface Reading {
  readonly status: number;
  /** Alternating names and values. */
  readonly headers: readonly string[];
  readonly body: string;
  readonly trailers: readonly string[];
}

const numRuns = 100 * Number(process.env['FUZZ'] ?? 5);

/** Reads the bytes of a whole connection. Returns undefined if they are not exactly one final response. */
function ownReading(method: string, pieces: readonly Buffer[]): Reading | undefined {
  let head: Pick<Reading, 'status' | 'headers'> | undefined;
  let trailers: readonly string[] | undefined;
  let body = '';
  const parser = new ResponseParser({
    onHead: (status, _, headers) => void (head = { status, headers }),
    onData: (chunk) => void (body += chunk.toString('latin1')),
    onEnd: (last) => void (trailers = last),
  });
  parser.expect(method);
  try {
    for (const piece of pieces) parser.read(piece);
    parser.finish();
  } catch {
    return undefined;
  }
  return head === undefined || trailers === undefined ? undefined : { ...head, body, trailers };
}

/** Returns undefined if node:http rejects the bytes. */
function nodeReading(method: string, bytes: Buffer): Promise<Reading | undefined> {
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  return new Promise((resolve) => {
    const refuse = (): void => resolve(undefined);
    const sent = request({ method, createConnection: () => socket, maxHeaderSize: 1024 * 1024 });
    sent.on('error', refuse);
    sent.on('response', (response) => {
      let body = '';
      response.setEncoding('latin1');
      response.on('error', refuse);
      response.on('close', refuse);
      response.on('data', (text: string) => void (body += text));
      response.on('end', () => {
        const { statusCode: status = 0, rawHeaders: headers, rawTrailers: trailers } = response;
        resolve(response.complete ? { status, headers, body, trailers } : undefined);
      });
    });
    sent.end();
    socket.push(bytes);
    socket.push(null);
  });
}

const oneOf = (characters: string): fc.Arbitrary<string> => fc.constantFrom(...characters.split(''));

const line = fc.string({ unit: oneOf('abcXYZ019 \t:;,="\u00e9\u00ff/'), maxLength: 12 });
const name = fc.string({ unit: oneOf('abcXYZ019-_!'), minLength: 1, maxLength: 8 });
const field = fc.tuple(name, line).map(([key, value]) => `x-${key}: ${value}\r\n`);
const fields = fc.array(field, { maxLength: 4 }).map((all) => all.join(''));
const connection = fc.constantFrom(
  '',
  'Connection: close\r\n',
  'Connection: keep-alive\r\n',
  'connection: Close, x\r\n',
);
const content = fc.string({ unit: oneOf('ab\r\n0:; {}'), maxLength: 40 });
const extension = fc.constantFrom('', ';a=b', ';a');

const chunks = fc.tuple(fc.array(fc.tuple(content, extension), { maxLength: 4 }), fields).map(
  ([all, trailers]) =>
    `${all
      .filter(([data]) => data !== '')
      .map(([data, more]) => `${data.length.toString(16)}${more}\r\n${data}\r\n`)
      .join('')}0\r\n${trailers}\r\n`,
);
const framed = fc.oneof(
  content.map((data): [string, string] => [`Content-Length: ${data.length}\r\n`, data]),
  chunks.map((data): [string, string] => ['Transfer-Encoding: chunked\r\n', data]),
  content.map((data): [string, string] => ['', data]),
);
const methods = fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'DELETE');
const status = fc.constantFrom('200 OK', '201 ', '404 Not Found', '429', '500 é', '204 No Content', '304 Not Modified');
const interim = fc.constantFrom('', '', 'HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n');
const version = fc.constantFrom('HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0');
const valid = fc
  .record({ method: methods, interim, version, status, first: fields, framed, connection, last: fields })
  .filter(({ version: one, framed: [framing] }) => one !== 'HTTP/1.0' || !framing.startsWith('Transfer-Encoding'))
  .map((one) => {
    const [framing, body] = one.framed;
    const head = `${one.interim}${one.version} ${one.status}\r\n${one.first}${framing}${one.connection}${one.last}\r\n`;
    return { method: one.method, text: one.method === 'HEAD' || /^[23]04/.test(one.status) ? head : head + body };
  });

/**
 * Random changes to a response. No change inserts a tab, because node:http does not recognize `chunked` if a tab
 * follows, contrary to RFC 9110 section 5.5.
 */
const change = fc.record({
  at: fc.nat(),
  removed: fc.nat({ max: 3 }),
  added: fc.constantFrom(
    '',
    '',
    '\r',
    '\n',
    '\r\n',
    ' ',
    '0',
    'f',
    ':',
    ',',
    ';',
    '\0',
    '\x7f',
    '-',
    '+',
    '\r\n\r\n',
    'HTTP/1.1 200 OK\r\n\r\n',
    'Content-Length: 1\r\n',
    'Transfer-Encoding: chunked\r\n',
  ),
});

test('a response that both the parser and node:http accept is parsed to the same result, however it is split', async () => {
  await fc.assert(
    fc.asyncProperty(
      valid,
      fc.array(change, { maxLength: 2 }),
      fc.array(fc.nat(), { maxLength: 6 }),
      async ({ method, text }, changes, cuts) => {
        const changed = changes.reduce((all, { at, removed, added }) => {
          const place = at % (all.length + 1);
          return all.slice(0, place) + added + all.slice(place + removed);
        }, text);
        const bytes = Buffer.from(changed, 'latin1');
        const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
        const pieces = places.slice(1).map((end, index) => bytes.subarray(places[index], end));
        const own = ownReading(method, [bytes]);
        expect(ownReading(method, pieces)).toEqual(own);
        const other = own && (await nodeReading(method, bytes));
        const isRefused = changes.length > 0 && (own === undefined || other === undefined);
        expect(isRefused ? 'refused' : own).toEqual(isRefused ? 'refused' : (other ?? 'no response'));
      },
    ),
    { numRuns },
  );
});
