import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { Request, Response } from 'express';
import { OAuthError } from '../../../src/errors.ts';
import { decode, readForm, required } from '../../../src/oauth/form.ts';
import { ask } from '../../fakes/ask.ts';

const form = 'application/x-www-form-urlencoded';

interface Read {
  /** The form, or what was thrown. */
  readonly result: Record<string, string> | OAuthError;
}

async function read(body: string | Buffer, contentType: string | undefined = form, more: object = {}): Promise<Read> {
  let result: Read['result'] = {};
  await ask(
    (req, res) => {
      readForm(req as Request, res as Response)
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

describe('the fields of a form', () => {
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
    // Without a value a parameter counts as left out.
    ['a=&b&c=1', { c: '1' }],
    ['__proto__=1&constructor=2', { ['__proto__']: '1', constructor: '2' }],
    ['a[]=1&a[b]=2', { 'a[]': '1', 'a[b]': '2' }],
    ['a;b=1', { 'a;b': '1' }],
  ])('of %j', async (body, fields) => {
    expect(Object.entries((await read(body)).result)).toEqual(Object.entries(fields));
  });

  test('are what was encoded, whatever that is', async () => {
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
    'must not be repeated, and the one that is, is named: %s',
    async (body) => {
      expect((await read(body)).result).toMatchObject({
        error: 'invalid_request',
        code: 400,
        message: 'the parameter "a" is repeated',
      });
    },
  );
});

test.each<[string, string | Buffer]>([
  ['a percent sign alone', 'a=100%'],
  ['half a byte', 'a=%4'],
  ['no hexadecimal', 'a=%zz'],
  ['bytes that are no UTF-8, encoded', 'a=%ff'],
  ['half a character, encoded', 'a=%C3'],
  ['bytes that are no UTF-8', Buffer.from([0x61, 0x3d, 0xff])],
  ['a bad name', '%ff=1'],
])('a form with %s is 400', async (_, body) => {
  expect((await read(body)).result).toMatchObject({ name: 'OAuthError', error: 'invalid_request', code: 400 });
});

test.each([
  [form, true],
  [form.toUpperCase(), true],
  [`${form};charset=utf-8`, true],
  [`${form}; charset="UTF-8"`, true],
  [`${form} ;`, true],
  [`${form};charset=iso-8859-1`, false],
  [`${form};boundary=x`, false],
  [`${form}x`, false],
  ['application/json', false],
  ['multipart/form-data; boundary=x', false],
  ['text/plain', false],
  ['', false],
])('the content type %j is read: %j, and 415 if not', async (contentType, isRead) => {
  const { result } = await read('a=1', contentType);
  expect(result).toMatchObject(isRead ? { a: '1' } : { error: 'invalid_request', code: 415 });
});

test('a body of 64 KiB is read, a larger one is 413', async () => {
  expect((await read(`a=${'x'.repeat(65_534)}`)).result).toHaveProperty('a');
  expect((await read(`a=${'x'.repeat(65_535)}`)).result).toMatchObject({ status: 413 });
});

test('a body that is compressed into little is not let grow', async () => {
  const { gzipSync } = await import('node:zlib');
  const { result } = await read(gzipSync(`a=${'x'.repeat(1_000_000)}`), form, { 'content-encoding': 'gzip' });
  expect(result).toMatchObject({ status: 413 });
});

test('what was decoded is what was encoded', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      expect(decode(encodeURIComponent(text).replaceAll('%20', '+'))).toBe(text);
    }),
  );
});

test('a parameter that is missing is named', () => {
  expect(required(new Map([['a', '1']]), 'a')).toBe('1');
  expect(() => required(new Map(), 'username')).toThrow(
    new OAuthError('invalid_request', 'the parameter "username" is missing'),
  );
});
