import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { ResponseParser } from '../../../../src/cluster/wire/response-parser.ts';

interface Received {
  head?: [number, string, string[]];
  body: string;
  trailers?: string[];
  isReusable?: boolean;
  problem?: string;
}

/** Returns what the parser reports for these pieces. `isLast` ends the connection after the last piece. */
function received(pieces: readonly string[], { method = 'GET', isLast = false } = {}): Received {
  const result: Received = { body: '' };
  const parser = new ResponseParser({
    onHead: (...head) => void (result.head = head),
    onData: (chunk) => void (result.body += chunk.toString('latin1')),
    onEnd: (trailers) => void (result.trailers = trailers),
  });
  parser.expect(method);
  try {
    for (const piece of pieces) parser.read(Buffer.from(piece, 'latin1'));
    if (isLast) parser.finish();
  } catch (error) {
    result.problem = (error as Error).message;
  }
  if (result.trailers !== undefined) result.isReusable = parser.isReusable;
  return result;
}

const ok = 'HTTP/1.1 200 OK\r\n';
const length = (count: number): string => `Content-Length: ${count}\r\n`;
const chunked = 'Transfer-Encoding: chunked\r\n';

/** Complete responses, by the feature that each of them tests. */
const whole: Record<string, [text: string, method: string, body: string, trailers: string[], isReusable: boolean]> = {
  'a length': [`${ok}${length(5)}\r\nhello`, 'GET', 'hello', [], true],
  'a length of nothing': [`${ok}${length(0)}\r\n`, 'GET', '', [], true],
  chunks: [`${ok}${chunked}\r\n5\r\nhello\r\nA;x="y"\r\n, world...\r\n0\r\n\r\n`, 'GET', 'hello, world...', [], true],
  'no chunk': [`${ok}${chunked}\r\n0\r\n\r\n`, 'GET', '', [], true],
  trailers: [`${ok}${chunked}\r\n1\r\na\r\n0\r\nX-Sum: 7\r\ny:\r\n\r\n`, 'GET', 'a', ['X-Sum', '7', 'y', ''], true],
  'lines in a chunk': [`${ok}${chunked}\r\n9\r\n0\r\n\r\nab\r\n\r\n0\r\n\r\n`, 'GET', '0\r\n\r\nab\r\n', [], true],
  'the head only': [`${ok}${length(5)}\r\n`, 'HEAD', '', [], true],
  'the head of chunks only': [`${ok}${chunked}\r\n`, 'HEAD', '', [], true],
  'status 204': ['HTTP/1.1 204 No Content\r\n\r\n', 'DELETE', '', [], true],
  'status 304 with the length of the unchanged content': [`HTTP/1.1 304\r\n${length(9)}\r\n`, 'GET', '', [], true],
  'preceding informational responses': [
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nLink: a\r\n\r\n${ok}${length(1)}\r\na`,
    'PUT',
    'a',
    [],
    true,
  ],
  'a request to close the connection': [
    `${ok}connection: Keep-Alive, CLOSE\r\n${length(1)}\r\na`,
    'GET',
    'a',
    [],
    false,
  ],
  'HTTP/1.0': [`HTTP/1.0 200 OK\r\n${length(1)}\r\na`, 'GET', 'a', [], false],
};

test.each(Object.entries(whole))(
  'a response with %s is parsed to the same result however it is split',
  (_, [text, method, body, trailers, isReusable]) => {
    const all = received([text], { method });
    expect(all).toMatchObject({ body, trailers, isReusable });
    expect(all).not.toHaveProperty('problem');
    expect(received(text.split(''), { method })).toEqual(all);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: text.length }), { maxLength: 5 }), (cuts) => {
        const at = [0, ...cuts.toSorted((a, b) => a - b), text.length];
        const pieces = at.slice(1).map((end, index) => text.slice(at[index], end));
        expect(received(pieces, { method })).toEqual(all);
      }),
    );
  },
);

test('a response without a length lasts until the connection ends', () => {
  const text = `${ok}\r\nhello`;
  expect(received([text])).toEqual({ head: [200, 'OK', []], body: 'hello' });
  expect(received([text], { isLast: true })).toEqual({
    head: [200, 'OK', []],
    body: 'hello',
    trailers: [],
    isReusable: false,
  });
});

test('header values of a response are unchanged except for surrounding white space', () => {
  const { head } = received([`HTTP/1.1 201\r\nX-A:b \t\r\nx-a: \u00a0c:d\u00a0\r\nSet-Cookie:\r\n${length(0)}\r\n`]);
  expect(head).toEqual([201, '', ['X-A', 'b', 'x-a', '\u00a0c:d\u00a0', 'Set-Cookie', '', 'Content-Length', '0']]);
});

test.each<[string, string]>([
  ['a different protocol', 'SSH-2.0-OpenSSH\r\n\r\n'],
  ['HTTP/2', 'HTTP/2 200 OK\r\n\r\n'],
  ['no status', 'HTTP/1.1 OK\r\n\r\n'],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
  ['a line break in the status line', 'HTTP/1.1 200 O\nK\r\n\r\n'],
  ['an unrequested protocol', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n'],
  ['a header without a colon', `${ok}nonsense\r\n\r\n`],
  ['a header without a name', `${ok}: a\r\n\r\n`],
  ['a blank before the colon', `${ok}Content-Length : 5\r\n\r\n`],
  ['a header folded over two lines', `${ok}X-A: b\r\n c: d\r\n\r\n`],
  ['a line feed in a value', `${ok}X-A: b\nContent-Length: 0\r\n\r\n`],
  ['a carriage return in a value', `${ok}X-A: b\rc\r\n\r\n`],
  ['a NUL in a value', `${ok}X-A: b\0c\r\n\r\n`],
  ['two lengths', `${ok}${length(1)}${length(1)}\r\na`],
  ['a list of lengths', `${ok}Content-Length: 1, 1\r\n\r\na`],
  ['a length with a sign', `${ok}Content-Length: +1\r\n\r\na`],
  ['a hexadecimal length', `${ok}Content-Length: 0x1\r\n\r\na`],
  ['a length of 10^16', `${ok}Content-Length: 10000000000000000\r\n\r\na`],
  ['an empty length', `${ok}Content-Length:\r\n\r\na`],
  ['a length and chunks', `${ok}${length(1)}${chunked}\r\n1\r\na\r\n0\r\n\r\n`],
  ['chunks and a length', `${ok}${chunked}${length(1)}\r\n1\r\na\r\n0\r\n\r\n`],
  ['an unsupported encoding', `${ok}Transfer-Encoding: gzip, chunked\r\n\r\n`],
  ['the same encoding twice', `${ok}${chunked}${chunked}\r\n`],
  ['chunks in HTTP/1.0', `HTTP/1.0 200 OK\r\n${chunked}\r\n`],
  ['a chunk without a size', `${ok}${chunked}\r\n\r\n`],
  ['a chunk whose size is not a number', `${ok}${chunked}\r\n0x1\r\na\r\n`],
  ['a chunk with a negative size', `${ok}${chunked}\r\n-1\r\n`],
  ['a chunk of 2^56 bytes', `${ok}${chunked}\r\n100000000000000\r\n`],
  ['a chunk that is longer than its size', `${ok}${chunked}\r\n1\r\nab\r\n0\r\n\r\n`],
  ['a bare line feed after a size', `${ok}${chunked}\r\n1\na\r\n0\r\n\r\n`],
  ['a trailer without a name', `${ok}${chunked}\r\n0\r\nnonsense\r\n\r\n`],
  ['more bytes after the end', `${ok}${length(1)}\r\na${ok}${length(1)}\r\nb`],
  ['an endless head', `${ok}X-A: ${'b'.repeat(300_000)}`],
  ['a long head', `${ok}X-A: ${'b'.repeat(300_000)}\r\n\r\n`],
  ['an endless line between chunks', `${ok}${chunked}\r\n1;${'x'.repeat(5_000)}`],
  ['endless trailers', `${ok}${chunked}\r\n0\r\nX-A: ${'b'.repeat(300_000)}`],
])('a response with %s is rejected', (_, text) => {
  expect(received([text]).problem).toMatch(/^[a-z]/);
});

test.each([ok, `${ok}${length(5)}\r\nhell`, `${ok}${chunked}\r\n5\r\nhello\r\n`, `${ok}${chunked}\r\n0\r\n`, ''])(
  'a truncated response is reported as incomplete: %j',
  (text) => {
    const result = received(text === '' ? [] : [text], { isLast: true });
    expect(result.problem).toBe('the response is incomplete');
    expect(result).not.toHaveProperty('trailers');
  },
);

test('unrequested bytes are rejected, even after a response', () => {
  const parser = new ResponseParser({ onHead: () => undefined, onData: () => undefined, onEnd: () => undefined });
  expect(() => parser.read(Buffer.from('a'))).toThrow('unexpected bytes after the response');
  parser.expect('GET');
  parser.read(Buffer.from(`${ok}${length(0)}\r\n`));
  expect(parser.isIdle).toBe(true);
  expect(() => parser.read(Buffer.from(ok))).toThrow('unexpected bytes after the response');
});
