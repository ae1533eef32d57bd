import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { execFileSync } from 'node:child_process';
import { read, type ShownOperation } from '../../../../../src/docs/explorer/browser/openapi.ts';
import {
  bytesOf,
  curlOf,
  isSecret,
  requestOf,
  Unsendable,
  type FilledIn,
} from '../../../../../src/docs/explorer/browser/request.ts';

const base = 'https://platform.example';

const operation = (
  method: string,
  path: string,
  parameters: readonly (readonly [place: string, name: string])[] = [],
): ShownOperation => {
  const described = { operationId: 'it', parameters: parameters.map(([place, name]) => ({ in: place, name })) };
  return read({ paths: { [path]: { [method]: described } } }).operations[0] as ShownOperation;
};

const filledIn = (parameters: readonly string[] = [], more: Partial<FilledIn> = {}): FilledIn => ({
  parameters,
  accept: 'application/json',
  withToken: false,
  ...more,
});

const special = `'"\\$\`!\n*~#&;|<>(){}[] =@`.split('');

/** What a shell makes of the words of a command. */
const wordsOf = (command: string, env: Readonly<Record<string, string>> = {}): string[] =>
  execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }\n${command}`], { env, encoding: 'utf8' })
    .split('\0')
    .slice(0, -1);

describe('a request', () => {
  test.each([
    ['a name in the path', ['path', 'name'], 'n1', '/x/n1'],
    ['a name of other letters', ['path', 'name'], 'ä/ö?#%&', '/x/%C3%A4%2F%C3%B6%3F%23%25%26'],
    ['a name with what replacements take for their own', ['path', 'name'], "$&$'{name}", "/x/%24%26%24'%7Bname%7D"],
    ['dots, but not alone', ['path', 'name'], '...', '/x/...'],
  ] as const)('has %s', (_, parameter, value, path) => {
    expect(requestOf(operation('get', '/x/{name}', [parameter]), filledIn([value])).path).toBe(path);
  });

  test.each(['', '.', '..'])('cannot have "%s" for a segment of its path', (value) => {
    const of = operation('get', '/x/{name}', [
      ['query', 'q'],
      ['path', 'name'],
    ]);
    const attempt = (): unknown => requestOf(of, filledIn(['1', value]));
    expect(attempt).toThrow(Unsendable);
    expect(attempt).toThrow(expect.objectContaining({ index: 1, message: expect.stringContaining('name') }));
  });

  test('has no half of a character in its path', () => {
    const of = operation('get', '/x/{name}', [['path', 'name']]);
    expect(() => requestOf(of, filledIn(['a\uD800']))).toThrow(
      expect.objectContaining({ index: 0, message: expect.stringContaining('half') }),
    );
  });

  test('has a query of what is filled in, and nothing else', () => {
    const of = operation('get', '/x', [
      ['query', 'a'],
      ['query', 'b'],
      ['query', 'c d'],
    ]);
    expect(requestOf(of, filledIn(['1', '', 'e&f=g'])).path).toBe('/x?a=1&c+d=e%26f%3Dg');
    expect(requestOf(of, filledIn()).path).toBe('/x');
  });

  test('has headers: those of parameters, what may come, and what is sent', () => {
    const body = { type: 'application/merge-patch+json', text: '{}' };
    const of = operation('patch', '/x', [['header', 'Last-Event-ID']]);
    expect(requestOf(of, filledIn(['7'], { body }))).toMatchObject({
      method: 'PATCH',
      headers: [
        ['Accept', 'application/json'],
        ['Last-Event-ID', '7'],
        ['Content-Type', 'application/merge-patch+json'],
      ],
    });
  });

  test.each([
    ['watch', 'true', 'application/json', true],
    ['watch', '1', 'application/json', true],
    ['watch', 'false', 'application/json', false],
    ['follow', 'true', 'application/json', true],
    ['name', 'true', 'application/json', false],
    ['watch', '', 'text/event-stream', true],
    ['watch', '', 'application/x-ndjson', true],
  ])('with %s=%s for %s goes on: %s', (name, value, accept, isStream) => {
    expect(requestOf(operation('get', '/x', [['query', name]]), filledIn([value], { accept })).isStream).toBe(isStream);
  });

  test('of a form is as browsers send one', () => {
    const fields = [
      { name: 'a b', value: 'ä & =' },
      { name: 'c', value: '' },
    ];
    expect(bytesOf({ fields })).toBe('a+b=%C3%A4+%26+%3D&c=');
    expect(bytesOf({ type: 'text/plain', text: 'as it is' })).toBe('as it is');
  });
});

const command = (of: ShownOperation, filled: FilledIn): string => curlOf(requestOf(of, filled), base);

describe('curl', () => {
  test('has the token as a variable', () => {
    const text = command(operation('get', '/x'), filledIn([], { withToken: true }));
    expect(text).toContain('-H "Authorization: Bearer $TOKEN"');
    expect(wordsOf(text, { TOKEN: 'a token' })).toEqual([
      '-sS',
      `${base}/x`,
      '-H',
      'Authorization: Bearer a token',
      '-H',
      'Accept: application/json',
    ]);
  });

  test.each([
    ['get', undefined, false],
    ['get', '{}', true],
    ['post', '{}', false],
    ['post', undefined, true],
    ['delete', undefined, true],
    ['put', '{}', true],
  ])('says that it is a %s with the body %s where curl would take it for another: %s', (method, text, isSaid) => {
    const body = text === undefined ? undefined : { type: 'application/json', text };
    const words = wordsOf(command(operation(method, '/x'), filledIn([], { body })));
    expect(words.includes('-X') && words[words.indexOf('-X') + 1] === method.toUpperCase()).toBe(isSaid);
  });

  test('does not hold back what comes of a stream', () => {
    const text = command(operation('get', '/x', [['query', 'watch']]), filledIn(['true']));
    expect(wordsOf(text)[0]).toBe('-sSN');
  });

  test('has secrets of a form as variables', () => {
    const fields = [
      { name: 'grant_type', value: 'password' },
      { name: 'password', value: 'not to be seen' },
      { name: 'client_secret', value: 'nor this' },
    ];
    const text = command(operation('post', '/oauth/token'), filledIn([], { body: { fields } }));
    expect(text).not.toMatch(/not to be seen|nor this/);
    expect(wordsOf(text, { PASSWORD: 'p w', CLIENT_SECRET: 's' }).slice(-6)).toEqual([
      '--data-urlencode',
      'grant_type=password',
      '--data-urlencode',
      'password=p w',
      '--data-urlencode',
      'client_secret=s',
    ]);
  });

  test('reads a body with a secret in it from its input', () => {
    const body = { type: 'application/json', text: '{"password":"not to be seen"}', isSecret: true };
    const text = command(operation('put', '/x'), filledIn([], { body }));
    expect(text).not.toContain('not to be seen');
    expect(wordsOf(text).slice(-2)).toEqual(['--data-binary', '@-']);
  });

  test('is for a shell the same as what is sent, whatever that is', () => {
    const anything = fc.string({ unit: fc.oneof(fc.constantFrom(...special), fc.string()) });
    const line = anything.map((text) => text.replaceAll(/[\0\n]/g, ' '));
    fc.assert(
      fc.property(anything, line, line, (text, header, value) => {
        const of = operation('put', '/x/{name}', [
          ['path', 'name'],
          ['header', 'X-It'],
          ['query', 'q'],
        ]);
        const body = { type: 'application/json', text: text.replaceAll('\0', '') };
        fc.pre(!/^\.{0,2}$/.test(value));
        const request = requestOf(of, filledIn([value, header, text], { body }));
        const wanted = ['-sS', `${base}${request.path}`, '-X', 'PUT'];
        for (const [name, one] of request.headers) wanted.push('-H', `${name}: ${one}`);
        expect(wordsOf(curlOf(request, base))).toEqual([...wanted, '--data-raw', body.text]);
      }),
      { numRuns: 60 },
    );
  });
});

test.each([
  ['password', undefined, true],
  ['client_secret', undefined, true],
  ['refresh_token', undefined, true],
  ['anything', 'password', true],
  ['token_type_hint', undefined, false],
  ['requested_token_type', undefined, false],
  ['username', undefined, false],
])('%s of the format %s is a secret: %s', (name, format, expected) => {
  expect(isSecret(name, format)).toBe(expected);
});
