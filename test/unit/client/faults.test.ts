/** Faults in responses that the test client must detect; a test server produces each of them. */
import { once } from 'node:events';
import http2, { type ServerHttp2Stream } from 'node:http2';
import net, { type AddressInfo } from 'node:net';
import { duplexPair, type Duplex } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { Connection, open } from '../../client/http1.ts';
import { connectHTTP2, openHTTP2 } from '../../client/http2.ts';
import { whole, type Request, type Whole } from '../../client/message.ts';

/** A server that responds to any request with these parts and then closes the connection. */
function server(...parts: readonly (string | Buffer)[]): Duplex {
  const [client, far] = duplexPair();
  far.once('data', () => {
    for (const part of parts) far.write(part);
    far.end();
  });
  return client;
}

const json = 'Content-Type: application/json\r\n';
const plain = 'Content-Type: text/plain\r\n';
const chunked = `HTTP/1.1 200 OK\r\n${plain}Transfer-Encoding: chunked\r\n\r\n`;
const sized = (length: number | string, more = plain): string =>
  `HTTP/1.1 200 OK\r\n${more}Content-Length: ${length}\r\n\r\n`;

const exchange = async (request: Request, ...parts: readonly (string | Buffer)[]): Promise<Whole> =>
  whole(await open(server(...parts), request));

const member = gzipSync('{"a":1}');

describe('over HTTP/1.1 the test client accepts', () => {
  test.each<[string, string, string, readonly (string | Buffer)[]]>([
    ['a body of its announced length', 'GET', 'hello', [sized(5), 'hel', 'lo']],
    ['an empty body', 'GET', '', [sized(0)]],
    ['a chunked body', 'GET', 'hello world', [chunked, '5\r\nhello\r\n6\r\n wor', 'ld\r\n0\r\n\r\n']],
    ['a chunked body split at every byte', 'GET', 'hello', `${chunked}5\r\nhello\r\n0\r\n\r\n`.split('')],
    ['trailers', 'GET', 'a', [chunked, '1\r\na\r\n0\r\nExpires: 0\r\n\r\n']],
    ['a length without a body for HEAD', 'HEAD', '', [sized(5)]],
    ['chunked encoding without a body for HEAD', 'HEAD', '', [chunked]],
    ['the status 204', 'DELETE', '', ['HTTP/1.1 204 No Content\r\n\r\n']],
    [
      '304 with the length of the unchanged content',
      'GET',
      '',
      ['HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n'],
    ],
    ['an informational response before the final one', 'GET', 'a', ['HTTP/1.1 103 Early Hints\r\n\r\n', sized(1), 'a']],
    ['JSON', 'GET', '{}', [sized(2, json), '{}']],
    ['gzip', 'GET', '{"a":1}', [sized(member.length, `${json}Content-Encoding: gzip\r\n`), member]],
  ])('over HTTP/1.1 the test client accepts %s', async (_, method, content, parts) => {
    expect((await exchange({ method, path: '/' }, ...parts)).content.toString()).toBe(content);
  });

  test('over HTTP/1.1 the test client accepts a watch of JSON lines', async () => {
    const body = '{"a":1}\n{"a":2}\n';
    expect((await exchange({ path: '/nodes?watch=true' }, sized(body.length, json), body)).content.toString()).toBe(
      body,
    );
  });
});

describe('over HTTP/1.1 the test client reports', () => {
  test.each<[string, RegExp, readonly (string | Buffer)[], string?]>([
    ['a body that is shorter than announced', /ended after 3 bytes of 5/, [sized(5), 'hel']],
    ['a body that is longer than announced', /1 bytes follow the end of a message: "o"/, [sized(4), 'hello']],
    [
      'bytes that arrive after a body',
      /follow the end of a message: "c\\r\\nsecond third/,
      [chunked, '6\r\nfirst \r\n0\r\n\r\n', 'c\r\nsecond third\r\n'],
    ],
    ['a second response to one request', /follow the end of a message/, [sized(1), 'a', sized(1), 'a']],
    ['a body in a response to HEAD', /follow the end of a message/, [sized(5), 'hello'], 'HEAD'],
    ['a body with 304', /follow the end of a message/, ['HTTP/1.1 304 Not Modified\r\n\r\n', 'hello']],
    ['a length with 204', /204 must not announce a body/, ['HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n']],
    ['a body without length or chunks', /where the body ends/, [`HTTP/1.1 200 OK\r\n${plain}\r\n`, 'hello']],
    ['a chunked body without a last chunk', /ended after 1 bytes in a chunked body/, [chunked, '1\r\na\r\n']],
    ['a last chunk without its empty line', /ended after 1 bytes in a chunked body/, [chunked, '1\r\na\r\n0\r\n']],
    ['a chunk that is longer than its size', /a chunk is longer than its size/, [chunked, '1\r\nab\r\n0\r\n\r\n']],
    [
      'a chunk that is shorter than its size',
      /not a chunk size|longer than its size/,
      [chunked, '3\r\na\r\n0\r\n\r\n'],
    ],
    ['a chunk size that is not a number', /not a chunk size: "hello"/, [chunked, 'hello\r\n']],
    ['an empty line instead of a chunk size', /not a chunk size: ""/, [chunked, '\r\n0\r\n\r\n']],
    ['a chunk extension', /not a chunk size/, [chunked, '1;a=b\r\na\r\n0\r\n\r\n']],
    ['a line without CR', /without CR/, [chunked, '1\na\r\n0\r\n\r\n']],
    ['two lengths', /2 Content-Length fields/, [sized(5, `${plain}Content-Length: 5\r\n`), 'hello']],
    [
      'a length with chunked encoding',
      /both Content-Length and Transfer-Encoding/,
      [sized(5, `${plain}Transfer-Encoding: chunked\r\n`)],
    ],
    ['a length that is not a number', /not a length: Content-Length: 5x/, [sized('5x'), 'hello']],
    [
      'a different transfer coding',
      /must be chunked, not gzip/,
      [`HTTP/1.1 200 OK\r\n${plain}Transfer-Encoding: gzip\r\n\r\n`],
    ],
    ['a head that is cut off', /ended in the head/, [`HTTP/1.1 200 OK\r\n${plain}`]],
    ['no response', /ended in the head/, []],
    ['a status line of another protocol', /not a status line: "ICY 200 OK"/, ['ICY 200 OK\r\n\r\n']],
    ['a folded header field', /not a header field/, [`HTTP/1.1 200 OK\r\n${plain} folded\r\n\r\n`]],
    ['a space before a colon', /not a header field/, ['HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n']],
    ['JSON that is cut off', /the body is not JSON.*ends with "\{\\"a\\":"/s, [sized(5, json), '{"a":']],
    ['an empty JSON document', /the body is not JSON/, [sized(0, json)]],
    ['two JSON documents', /the body is not JSON/, [sized(5, json), '{}\n{}']],
    [
      'gzip that is cut off',
      /the body is not gzip/,
      [sized(member.length - 1, 'Content-Encoding: gzip\r\n'), member.subarray(0, -1)],
    ],
    ['bytes after gzip', /the body is not gzip/, [sized(member.length + 1, 'Content-Encoding: gzip\r\n'), member, 'a']],
    [
      'gzip with a wrong checksum',
      /the body is not gzip/,
      [
        sized(member.length, 'Content-Encoding: gzip\r\n'),
        Buffer.concat([member.subarray(0, -8), Buffer.alloc(4), member.subarray(-4)]),
      ],
    ],
  ])('over HTTP/1.1 the test client reports %s', async (_, message, parts, method = 'GET') => {
    await expect(exchange({ method, path: '/' }, ...parts)).rejects.toThrow(message);
  });

  test('over HTTP/1.1 the test client reports a line of a watch that is not JSON', async () => {
    const body = '{"a":1}\n{"a":\n';
    await expect(exchange({ path: '/nodes?watch=true' }, sized(body.length, json), body)).rejects.toThrow(
      /is not JSON/,
    );
  });

  test('over HTTP/1.1 the test client reports bytes that follow a complete response on a keep-alive connection', async () => {
    const [client, far] = duplexPair();
    far.once('data', () => far.write(`${sized(1)}a`));
    const connection = new Connection(client);
    await whole(await connection.request({ path: '/' }));
    far.end('b');
    await expect(connection.close()).rejects.toThrow(/follow the end of a message: "b"/);
  });

  test('over HTTP/1.1 the test client reports a request that is sent before the previous response was read', async () => {
    const connection = new Connection(server(sized(5), 'hel'));
    (await connection.request({ path: '/' })).destroy();
    await expect(connection.request({ path: '/' })).rejects.toThrow('left unread');
  });

  test('over HTTP/1.1 the test client reports bytes that precede the next response', async () => {
    const [client, far] = duplexPair();
    far.once('data', () => {
      far.write(`${sized(1)}a`);
      far.once('data', () => far.write(`b${sized(1)}a`));
    });
    const connection = new Connection(client);
    await whole(await connection.request({ path: '/' }));
    await expect(connection.request({ path: '/' })).rejects.toThrow(/not a status line: "bHTTP/);
  });
});

async function requestHTTP2(respond: (stream: ServerHttp2Stream) => void, method = 'GET'): Promise<Whole> {
  const server2 = http2.createServer();
  server2.on('stream', (stream) => {
    stream.on('error', () => undefined);
    respond(stream);
  });
  server2.listen(0, '127.0.0.1');
  await once(server2, 'listening');
  const session = connectHTTP2(`http://127.0.0.1:${(server2.address() as AddressInfo).port}`, {});
  try {
    return await whole(await openHTTP2(session, { method, path: '/' }));
  } finally {
    session.destroy();
    server2.close();
  }
}
const send =
  (headers: http2.OutgoingHttpHeaders, body: string | Buffer) =>
  (stream: ServerHttp2Stream): void => {
    stream.respond({ ':status': 200, ...headers });
    stream.end(body);
  };

describe('over HTTP/2 the test client', () => {
  test('over HTTP/2 the test client accepts a body of its announced length, a body without a length, and no body for HEAD', async () => {
    expect((await requestHTTP2(send({ 'content-length': 5 }, 'hello'))).content.toString()).toBe('hello');
    expect((await requestHTTP2(send({}, 'hello'))).content.toString()).toBe('hello');
    expect((await requestHTTP2(send({ 'content-length': 5 }, ''), 'HEAD')).content.toString()).toBe('');
  });

  test.each<[string, (stream: ServerHttp2Stream) => void]>([
    ['a body that is shorter than announced', send({ 'content-length': 5 }, 'hel')],
    ['a body that is longer than announced', send({ 'content-length': 4 }, 'hello')],
    [
      'a stream that is reset',
      (stream) => {
        stream.respond({ ':status': 200 });
        stream.write('hello', () => stream.destroy(new Error('broken')));
      },
    ],
    ['a stream without a response', (stream) => stream.close(http2.constants.NGHTTP2_REFUSED_STREAM)],
    ['JSON that is cut off', send({ 'content-type': 'application/json' }, '{"a":')],
    ['bytes after gzip', send({ 'content-encoding': 'gzip' }, Buffer.concat([member, member.subarray(0, 1)]))],
  ])('over HTTP/2 the test client reports %s', async (_, respond) => {
    await expect(requestHTTP2(respond)).rejects.toThrow(
      /Protocol error|of \d|INTERNAL_ERROR|closed with|not JSON|not gzip|Stream closed/,
    );
  });
});

test('the test client reports the same fault over a TCP socket and over an in-memory stream', async () => {
  const faulty = net.createServer((socket) => socket.once('data', () => socket.end(`${sized(4)}hello`)));
  faulty.listen(0, '127.0.0.1');
  await once(faulty, 'listening');
  const { port } = faulty.address() as AddressInfo;
  await expect(open(net.connect(port, '127.0.0.1'), { path: '/' }).then(whole)).rejects.toThrow(/follow the end/);
  faulty.close();
});
