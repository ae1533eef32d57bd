import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { logOfLines } from '../fakes/log.ts';

function logged(message: string, fields: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const { log, lines } = logOfLines();
  log.info(message, fields);
  const [line = ''] = lines();
  return JSON.parse(line) as Record<string, unknown>;
}

test('a line is one JSON object with the time, the level and the fields', () => {
  expect(logged('a message\nof two lines', { a: 1, b: { c: [true, null] } })).toEqual({
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    level: 'info',
    message: 'a message\nof two lines',
    a: 1,
    b: { c: [true, null] },
  });
});

test('an error is written with its cause and its stack', () => {
  const { error } = logged('x', { error: new Error('outer', { cause: new Error('inner') }) });
  expect(error).toMatchObject({
    message: 'outer',
    cause: { message: 'inner' },
    stack: expect.stringContaining('.test.ts'),
  });
});

const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl';

describe('what is secret is not written', () => {
  const names = fc.constantFrom(
    'password',
    'newPassword',
    'Authorization',
    'cookie',
    'set-cookie',
    'secret',
    'client_secret',
    'clientSecret',
    'token',
    'access_token',
    'refreshToken',
    'passwordHash',
    'currentHash',
    'code',
    'code_verifier',
    'client_assertion',
  );

  test('at any depth, under any of its names', () => {
    fc.assert(
      fc.property(names, fc.array(fc.constantFrom('a', 'list', 'error'), { maxLength: 4 }), (name, path) => {
        const nested = path.reduceRight<unknown>(
          (inner, key) =>
            key === 'list' ? [inner] : key === 'error' ? new Error('x', { cause: inner }) : { [key]: inner },
          { [name]: 'hush-hush' },
        );
        expect(JSON.stringify(logged('x', { nested, [name]: { inner: 'hush-hush' } }))).not.toContain('hush-hush');
      }),
    );
  });

  test.each([`Bearer ${jwt}`, `bearer x ${jwt}`, `at /x?token=${jwt}&y`, 'Basic aHVzaDpodXNo', 'Bearer opaque-0123'])(
    'in any text: %s',
    (text) => {
      for (const line of [logged(text), logged('x', { text }), logged('x', { error: new Error(text) })])
        expect(JSON.stringify(line)).not.toMatch(/eyJ|aHVz|opaque/);
    },
  );
});

test('no field makes a log line fail', () => {
  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;
  fc.assert(fc.property(fc.object(), (fields) => JSON.stringify(logged('x', { fields })).length > 0));
  for (const value of [cycle, 1n, undefined, Symbol('x'), () => 1, new Map([[1, 2]]), NaN])
    expect(logged('x', { value })).toMatchObject({ message: 'x' });
});
