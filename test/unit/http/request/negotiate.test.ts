import { describe, expect, test } from '@jest/globals';
import { StatusError } from '../../../../src/runtime/errors.ts';
import { acceptsGzip, negotiate, parseAccept, prefersYAML } from '../../../../src/http/request/negotiate.ts';

describe('the Accept header', () => {
  test('is parsed with q and parameters, the preferred type first', () => {
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
    '%j accepts JSON',
    (header) => {
      expect(negotiate(header, ['application/json'], (type) => type)).toBe('application/json');
    },
  );

  test('is ignored after its first 100 clauses', () => {
    expect(parseAccept('a/b;q=0.1,'.repeat(10_000))).toHaveLength(100);
  });

  test.each(['text/html', 'application/json;q=0', 'application/vnd.kubernetes.protobuf', 'nonsense', ';', 'a/b/c'])(
    '%j results in 406',
    (header) => {
      const choose = (): string => negotiate(header, ['application/json'], (type) => type);
      expect(choose).toThrow(StatusError);
      expect(choose).toThrow('only the following media types are accepted: application/json');
    },
  );

  test('falls through to the next clause when the first cannot be served', () => {
    const chosen = negotiate(
      'application/json;as=Unknown,application/json;as=Table',
      ['application/json'],
      (_, { as }) => (as === 'Table' ? as : undefined),
    );
    expect(chosen).toBe('Table');
  });
});

test.each([
  [undefined, false],
  ['', false],
  ['gzip', true],
  ['deflate, GZIP;q=0.5', true],
  ['gzip;q=0', false],
  ['gzip;q=0.0, *', false],
  ['*', true],
  ['br', false],
])('Accept-Encoding %j accepts gzip: %s', (header, takes) => {
  expect(acceptsGzip(header)).toBe(takes);
});

test.each([
  ['application/yaml', true],
  ['application/YAML, application/json', true],
  ['application/json, application/yaml', false],
  ['application/json;q=0.5, application/yaml', true],
  ['*/*, application/yaml', true],
  ['application/yaml;as=Table', false],
  ['application/yaml;as=Table, application/yaml', true],
])('Accept %j prefers YAML: %s', (header, isPreferred) => {
  expect(prefersYAML(header)).toBe(isPreferred);
});
