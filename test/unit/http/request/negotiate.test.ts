import { describe, expect, test } from '@jest/globals';
import { StatusError } from '../../../../src/runtime/errors.ts';
import { acceptsGzip, isKnown, negotiate, parseAccept, prefersYAML } from '../../../../src/http/request/negotiate.ts';

describe('the Accept header', () => {
  test('the media types of the Accept header are parsed with their parameters and sorted by preference', () => {
    const clauses = parseAccept(
      'text/html;q=0.5, application/json;as=Table;g="meta.k8s.io";v=v1 , */*;q=0.1,a/b;q=0,c/*',
    );
    expect(clauses.map(({ type, subtype }) => `${type}/${subtype}`)).toEqual([
      'application/json',
      'c/*',
      'text/html',
      '*/*',
    ]);
    expect(clauses[0]?.parameters).toEqual({ as: 'Table', g: 'meta.k8s.io', v: 'v1' });
  });

  test.each([undefined, '', '  ', '*/*', 'application/*', 'APPLICATION/JSON', 'application/json;charset=utf-8'])(
    'a request with the Accept header %j accepts JSON',
    (header) => {
      expect(negotiate(header, ['application/json'], (type) => type)).toBe('application/json');
    },
  );

  test('only the first 100 clauses of the Accept header are read', () => {
    expect(parseAccept('a/b;q=0.1,'.repeat(10_000))).toHaveLength(100);
  });

  test('only the first 20 parameters of a clause of the Accept header are read', () => {
    const names = Array.from({ length: 10_000 }, (_, index) => `p${index}=x`);
    expect(Object.keys(parseAccept(`a/b;${names.join(';')}`)[0]?.parameters ?? {})).toHaveLength(20);
  });

  test.each(['text/html', 'application/json;q=0', 'application/vnd.kubernetes.protobuf', 'nonsense', ';', 'a/b/c'])(
    'a request with the Accept header %j gets 406',
    (header) => {
      const choose = (): string => negotiate(header, ['application/json'], (type) => type);
      expect(choose).toThrow(StatusError);
      expect(choose).toThrow('only the following media types are accepted: application/json');
    },
  );

  test('the next clause of the Accept header is used if the server does not support the first clause', () => {
    const chosen = negotiate(
      'application/json;as=Unknown,application/json;as=Table',
      ['application/json'],
      (_, { as }) => (as === 'Table' ? as : undefined),
    );
    expect(chosen).toBe('Table');
  });
});

test.each([
  ['does not accept', undefined],
  ['does not accept', ''],
  ['accepts', 'gzip'],
  ['accepts', 'deflate, GZIP;q=0.5'],
  ['does not accept', 'gzip;q=0'],
  ['does not accept', 'gzip;q=0.0, *'],
  ['accepts', '*'],
  ['does not accept', 'br'],
])('an Accept-Encoding header %s gzip: %j', (outcome, header) => {
  expect(acceptsGzip(header)).toBe(outcome === 'accepts');
});

test('only the first 100 codings of the Accept-Encoding header and the first 20 parameters of a coding are read', () => {
  expect(acceptsGzip(`${'br,'.repeat(99)}gzip`)).toBe(true);
  expect(acceptsGzip(`${'br,'.repeat(100)}gzip`)).toBe(false);
  expect(acceptsGzip(`gzip${';a=b'.repeat(19)};q=0`)).toBe(false);
  expect(acceptsGzip(`gzip${';a=b'.repeat(20)};q=0`)).toBe(true);
});

test('only the first 100 entity tags of the If-None-Match header are read', () => {
  expect(isKnown(`${'"a",'.repeat(99)}W/"b"`, '"b"')).toBe(true);
  expect(isKnown(`${'"a",'.repeat(100)}"b"`, '"b"')).toBe(false);
});

test.each([
  ['prefers', 'application/yaml'],
  ['prefers', 'application/YAML, application/json'],
  ['does not prefer', 'application/json, application/yaml'],
  ['prefers', 'application/json;q=0.5, application/yaml'],
  ['prefers', '*/*, application/yaml'],
  ['does not prefer', 'application/yaml;as=Table'],
  ['prefers', 'application/yaml;as=Table, application/yaml'],
])('an Accept header %s YAML: %j', (outcome, header) => {
  expect(prefersYAML(header)).toBe(outcome === 'prefers');
});
