import type { Request, Response } from 'express';
import { describe, expect, test } from '@jest/globals';
import { gunzipSync } from 'node:zlib';
import { write, writeJson, writeList, type Streamed } from '../../../../src/http/response/write.ts';
import { FakeResponse } from '../../../labs/resources.ts';

const request = (headers: Record<string, string> = {}, method = 'GET'): Request =>
  ({ method, headers }) as unknown as Request;
const asResponse = (response: FakeResponse): Response => response as unknown as Response;

const large = Array.from({ length: 3000 }, (_, index) => Buffer.from(`${index} ${'x'.repeat(500)}\n`));
const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

describe('a response', () => {
  test('a response has its length and an entity tag', async () => {
    const response = new FakeResponse();
    await write(request(), asResponse(response), {
      status: 201,
      contentType: 'text/plain',
      body: [Buffer.from('a'), Buffer.from('ö')],
      headers: { ETag: '"x"' },
    });
    expect(response.statusCode).toBe(201);
    expect(response.text).toBe('aö');
    expect(response.headers).toEqual({
      'content-type': 'text/plain',
      'content-length': '3',
      etag: '"x"',
    });
  });

  test('a JSON response ends with a newline', async () => {
    const response = new FakeResponse();
    await writeJson(request(), asResponse(response), { a: 1 });
    expect(response.text).toBe('{"a":1}\n');
    expect(response.headers['content-type']).toBe('application/json');
  });

  test('a response that has already ended is not written again', async () => {
    const response = new FakeResponse();
    response.end('late');
    await writeJson(request(), asResponse(response), {});
    expect(response.text).toBe('late');
    expect(response.headers).toEqual({});
  });

  test('a large response is sent unchanged at the speed of its reader', async () => {
    const response = new FakeResponse();
    response.stalled = true;
    const writing = write(request(), asResponse(response), { contentType: 'text/plain', body: large });
    await settle();
    expect(response.chunks).toHaveLength(1);
    expect(response.chunks[0]?.length).toBeLessThan(600_000);
    response.read();
    await writing;
    expect(Buffer.concat(large).equals(Buffer.concat(response.chunks))).toBe(true);
    expect(response.headers).toMatchObject({
      'content-length': String(Buffer.concat(large).length),
      vary: 'Accept-Encoding',
    });
    expect(response.writableEnded).toBe(true);
  });

  test.each([{}, { 'accept-encoding': 'gzip' }])(
    'a response to a request with the headers %j ends when its reader disconnects',
    async (headers) => {
      const response = new FakeResponse();
      response.stalled = true;
      const writing = write(request(headers), asResponse(response), { contentType: 'text/plain', body: large });
      await settle();
      response.destroy();
      await writing;
      expect(response.text.length).toBeLessThan(600_000);
    },
  );

  test('a large response is compressed for a client that accepts gzip', async () => {
    const response = new FakeResponse();
    await write(request({ 'accept-encoding': 'gzip' }), asResponse(response), {
      contentType: 'text/plain',
      body: large,
    });
    expect(response.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
    expect(response.headers).not.toHaveProperty('content-length');
    expect(gunzipSync(Buffer.concat(response.chunks)).equals(Buffer.concat(large))).toBe(true);
  });

  test('a small response is not compressed', async () => {
    const response = new FakeResponse();
    const body = [Buffer.alloc(128 * 1024, 'x')];
    await write(request({ 'accept-encoding': 'gzip' }), asResponse(response), { contentType: 'text/plain', body });
    expect(response.headers).not.toHaveProperty('content-encoding');
  });

  test('a response to HEAD has no body', async () => {
    const response = new FakeResponse();
    await write(request({}, 'HEAD'), asResponse(response), { contentType: 'text/plain', body: large });
    expect(response.text).toBe('');
    expect(response.headers['content-length']).toBe(String(Buffer.concat(large).length));
  });
});

describe('a list response', () => {
  const items = large;
  const part = 250;

  /** Creates the parts of a list. `made` counts these parts, and `ended` reports whether the creation has stopped. */
  function counting(): { parts: () => AsyncGenerator<Buffer[]>; made: () => number; ended: () => boolean } {
    let made = 0;
    let ended = false;
    async function* parts(): AsyncGenerator<Buffer[]> {
      try {
        for (let start = 0; start < large.length; start += part) {
          made += 1;
          yield large.slice(start, start + part);
        }
      } finally {
        ended = true;
      }
    }
    return { parts, made: () => made, ended: () => ended };
  }

  test.each([
    ['a known length', Buffer.concat(large).length, { 'content-length': String(Buffer.concat(large).length) }],
    ['unknown length', undefined, {}],
  ])('a list response of %s is created at the speed of its reader', async (_, length, headers) => {
    const response = new FakeResponse();
    response.stalled = true;
    const { parts, made, ended } = counting();
    const plain = async (): Promise<Streamed> => ({ length, parts: parts() });
    const writing = writeList(request(), asResponse(response), { contentType: 'text/plain', items, plain });
    await settle();
    expect(made()).toBeLessThan(large.length / part / 2);
    response.read();
    await writing;
    expect(ended()).toBe(true);
    expect(Buffer.concat(large).equals(Buffer.concat(response.chunks))).toBe(true);
    expect(response.headers).toEqual({
      'content-type': 'text/plain',
      vary: 'Accept-Encoding',
      ...headers,
    });
  });

  test('a list response is no longer created after its reader has disconnected', async () => {
    const response = new FakeResponse();
    response.stalled = true;
    const { parts, made, ended } = counting();
    const plain = async (): Promise<Streamed> => ({ length: undefined, parts: parts() });
    const writing = writeList(request(), asResponse(response), { contentType: 'text/plain', items, plain });
    await settle();
    response.destroy();
    await writing;
    expect(ended()).toBe(true);
    expect(made()).toBeLessThan(large.length / part / 2);
  });

  test.each([
    ['GET', large.length / part, Buffer.concat(large)],
    ['HEAD', 0, Buffer.alloc(0)],
  ])('a list response to %s is compressed for a client that accepts gzip', async (method, wanted, body) => {
    const response = new FakeResponse();
    const { parts, made } = counting();
    const plain = async (): Promise<Streamed> => ({ length: 1, parts: parts() });
    const compressed = request({ 'accept-encoding': 'gzip' }, method);
    await writeList(compressed, asResponse(response), { contentType: 'text/plain', items, plain });
    expect(response.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
    expect(response.headers).not.toHaveProperty('content-length');
    expect(made()).toBe(wanted);
    const sent = Buffer.concat(response.chunks);
    // toEqual would compare each byte separately.
    expect((sent.length === 0 ? sent : gunzipSync(sent)).equals(body)).toBe(true);
  });
});
