import { describe, expect, test } from '@jest/globals';
import { read, type ShownOperation } from '../../../../../src/docs/explorer/browser/openapi.ts';
import {
  bytesOf,
  isSecret,
  requestOf,
  Unsendable,
  type FilledIn,
} from '../../../../../src/docs/explorer/browser/request.ts';

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

describe('requestOf()', () => {
  test.each([
    ['a name in the path', ['path', 'name'], 'n1', '/x/n1'],
    ['letters beyond ASCII', ['path', 'name'], 'ä/ö?#%&', '/x/%C3%A4%2F%C3%B6%3F%23%25%26'],
    ['the special characters of String.replace', ['path', 'name'], "$&$'{name}", "/x/%24%26%24'%7Bname%7D"],
    ['several dots', ['path', 'name'], '...', '/x/...'],
  ] as const)('requestOf() encodes %s', (_, parameter, value, path) => {
    expect(requestOf(operation('get', '/x/{name}', [parameter]), filledIn([value])).path).toBe(path);
  });

  test.each(['', '.', '..'])('requestOf() rejects "%s" as a segment of the path', (value) => {
    const of = operation('get', '/x/{name}', [
      ['query', 'q'],
      ['path', 'name'],
    ]);
    const attempt = (): unknown => requestOf(of, filledIn(['1', value]));
    expect(attempt).toThrow(Unsendable);
    expect(attempt).toThrow(expect.objectContaining({ index: 1, message: expect.stringContaining('name') }));
  });

  test('requestOf() rejects half of a surrogate pair in the path', () => {
    const of = operation('get', '/x/{name}', [['path', 'name']]);
    expect(() => requestOf(of, filledIn(['a\uD800']))).toThrow(
      expect.objectContaining({ index: 0, message: expect.stringContaining('incomplete character') }),
    );
  });

  test('requestOf() sends only the query parameters that are filled in', () => {
    const of = operation('get', '/x', [
      ['query', 'a'],
      ['query', 'b'],
      ['query', 'c d'],
    ]);
    expect(requestOf(of, filledIn(['1', '', 'e&f=g'])).path).toBe('/x?a=1&c+d=e%26f%3Dg');
    expect(requestOf(of, filledIn()).path).toBe('/x');
  });

  test('requestOf() sends Accept, header parameters and Content-Type', () => {
    const body = { kind: 'text', type: 'application/merge-patch+json', text: '{}' } as const;
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
    ['a stream', 'watch', 'true', 'application/json'],
    ['a stream', 'watch', '1', 'application/json'],
    ['no stream', 'watch', 'false', 'application/json'],
    ['a stream', 'follow', 'true', 'application/json'],
    ['no stream', 'name', 'true', 'application/json'],
    ['a stream', 'watch', '', 'text/event-stream'],
    ['a stream', 'watch', '', 'application/x-ndjson'],
  ])('requestOf() requests %s for %s=%s and Accept %s', (outcome, name, value, accept) => {
    expect(requestOf(operation('get', '/x', [['query', name]]), filledIn([value], { accept })).isStream).toBe(
      outcome === 'a stream',
    );
  });

  test('bytesOf() encodes a form as browsers do', () => {
    const fields = [
      { name: 'a b', value: 'ä & =' },
      { name: 'c', value: '' },
    ];
    expect(bytesOf({ kind: 'form', fields })).toBe('a+b=%C3%A4+%26+%3D&c=');
    expect(bytesOf({ kind: 'text', type: 'text/plain', text: 'as it is' })).toBe('as it is');
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
])('isSecret() for the field %s with the format %s returns %s', (name, format, expected) => {
  expect(isSecret(name, format)).toBe(expected);
});
