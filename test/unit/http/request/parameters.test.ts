import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  flagParameter,
  integerParameter,
  memoizedParser,
  queryParameters,
} from '../../../../src/http/request/parameters.ts';
import { described, list, text } from '../../../../src/http/schema.ts';
import { badRequest, StatusError } from '../../../../src/runtime/errors.ts';

const parameters = queryParameters({
  limit: described('Items', integerParameter({ min: -1, max: 100 }, 'a whole number from 0 to 100, or -1').default(-1)),
  watch: described('Follow changes', flagParameter.default(false)),
  name: described('A part of the name', text.optional()),
  exclude: described('Left out', list(text).optional()),
});

function problemsOf(query: string): unknown {
  try {
    parameters.parse(new URLSearchParams(query));
    return 'none';
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return error.details?.causes?.map(({ field, message }) => `${field}: ${message}`);
  }
}

const matching = (pattern: RegExp): unknown => expect.stringMatching(pattern);

function outcomeOf(query: URLSearchParams): string {
  try {
    const { limit, watch } = parameters.parse(query);
    return limit >= -1 && limit <= 100 && typeof watch === 'boolean' ? 'parsed or 400' : 'wrong values';
  } catch (error) {
    return error instanceof StatusError && error.code === 400 ? 'parsed or 400' : String(error);
  }
}

describe('query parameters', () => {
  test('query parameters that are absent have their default values', () => {
    expect(parameters.parse(new URLSearchParams())).toEqual({ limit: -1, watch: false });
  });

  test('query parameters are parsed into typed values', () => {
    const query = new URLSearchParams('limit=10&watch=1&name=&exclude=a&exclude=b');
    expect(parameters.parse(query)).toEqual({ limit: 10, watch: true, name: '', exclude: ['a', 'b'] });
  });

  test.each([
    ['limit=-2', ['limit: expected a whole number from 0 to 100, or -1, got "-2"']],
    ['limit=101', ['limit: expected a whole number from 0 to 100, or -1, got "101"']],
    ['limit=-0', ['limit: expected a whole number from 0 to 100, or -1, got "-0"']],
    ['limit=1e1', ['limit: expected a whole number from 0 to 100, or -1, got "1e1"']],
    ['limit=', ['limit: expected a whole number from 0 to 100, or -1, got ""']],
    ['watch=yes', ['watch: expected true (or 1) or false (or 0), got "yes"']],
    ['watch=constructor', ['watch: expected true (or 1) or false (or 0), got "constructor"']],
    ['name=a&name=b', ['name: is given more than once']],
    ['lmit=1', ['lmit: unknown parameter; did you mean limit?']],
    ['__proto__=1', ['__proto__: unknown parameter; known parameters are limit, watch, name, exclude']],
  ])('the invalid query %s is rejected with the reason', (query, expected) => {
    expect(problemsOf(query)).toEqual(expected);
  });

  test('the error for several invalid query parameters lists all problems', () => {
    expect(problemsOf('watch=2&limit=x&other=1')).toMatchObject([/^watch: /, /^limit: /, /^other: /].map(matching));
  });

  test('the error for more than 20 invalid query parameters lists 20 problems and the number of further problems', () => {
    const query = Array.from({ length: 25 }, (_, at) => `unknown-${at}=1`).join('&');
    expect(problemsOf(query)).toHaveLength(20);
    expect(() => parameters.parse(new URLSearchParams(query))).toThrow(/; and 5 more$/);
  });

  test('any text in query parameters is parsed or rejected with 400', () => {
    const name = fc.oneof(fc.constantFrom('limit', 'watch', 'name', 'exclude'), fc.string());
    fc.assert(
      fc.property(fc.array(fc.tuple(name, fc.string())), (pairs) => {
        const query = new URLSearchParams(pairs);
        expect(outcomeOf(query)).toBe('parsed or 400');
      }),
    );
  });
});

test('the error for a missing required parameter also lists other problems', () => {
  const own = queryParameters({ client: text, limit: integerParameter({ min: 0 }, 'a number').optional() });
  expect(() => own.parse(new URLSearchParams())).toThrow(/^client: /);
  expect(() => own.parse(new URLSearchParams('limit=x'))).toThrow(/^client: .*; limit: expected a number, got "x"$/);
  expect(own.parse(new URLSearchParams('client=a'))).toEqual({ client: 'a' });
});

test('a StatusError that a schema throws keeps its message, with the name of the parameter', () => {
  const selector = text.transform((given) => {
    throw given === 'bug' ? new TypeError(given) : badRequest(`${given} is no selector`);
  });
  const own = queryParameters({ selector: selector.optional() });
  expect(() => own.parse(new URLSearchParams('selector=a'))).toThrow(
    expect.objectContaining({ code: 400, message: 'selector: a is no selector' }),
  );
  expect(() => own.parse(new URLSearchParams('selector=bug'))).toThrow(TypeError);
});

test('the error for a parameter that only other APIs support contains a hint', () => {
  const own = queryParameters({ page: text.optional() }, { continue: 'use page' });
  expect(() => own.parse(new URLSearchParams('continue=a'))).toThrow('continue: use page');
  expect(() => own.parse(new URLSearchParams('constructor=a'))).toThrow('constructor: unknown parameter');
});

test('all requests without query parameters share one immutable result', () => {
  const first = parameters.parse(new URLSearchParams());
  expect(parameters.parse(new URLSearchParams())).toBe(first);
  expect(Object.isFrozen(first)).toBe(true);
});

test('the OpenAPI description of query parameters contains their names, and marks required parameters', () => {
  const { descriptions } = queryParameters({ client: described('The client', text), state: text.optional() });
  expect(descriptions).toMatchObject([
    { name: 'client', in: 'query', description: 'The client', required: true },
    { name: 'state', in: 'query', description: '' },
  ]);
  expect(descriptions[1]).not.toHaveProperty('required');
});

test('an unknown query parameter is looked up once, however often it is repeated', () => {
  let lookUps = 0;
  const hints = {
    get wrong() {
      lookUps += 1;
      return 'is wrong';
    },
  };
  const hinted = queryParameters({}, hints);
  expect(() => hinted.parse(new URLSearchParams('wrong=1&'.repeat(900)))).toThrow('wrong: is wrong');
  expect(lookUps).toBe(1);
});

test('a query object is parsed once, and an invalid one is refused each time', () => {
  const parse = memoizedParser(parameters);
  const query = new URLSearchParams('limit=10');
  expect(parse(query)).toMatchObject({ limit: 10 });
  expect(parse(query)).toBe(parse(query));
  expect(parse(new URLSearchParams('limit=20'))).toMatchObject({ limit: 20 });
  const invalid = new URLSearchParams('limit=x');
  for (let times = 0; times < 2; times += 1) expect(() => parse(invalid)).toThrow(StatusError);
});
