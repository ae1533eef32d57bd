import { describe, expect, test } from '@jest/globals';
import { integerParameter } from '../../../src/http/request/parameters.ts';
import { described, oneOf, text } from '../../../src/http/schema.ts';
import { oauthParameters } from '../../../src/oauth/parameters.ts';
import { OAuthError } from '../../../src/runtime/errors.ts';

const parameters = oauthParameters({
  response_type: described('What is requested', oneOf('code')),
  challenge: described('A hash', text.regex(/^\w{4}$/, 'must be 4 letters')),
  max_age: described('Seconds', integerParameter({ min: 0, max: 9 }, 'a number of seconds').optional()),
  state: described('Anything', text.optional()),
});
const good = 'response_type=code&challenge=abcd';
const parse = (query: string): unknown => parameters.parse(new URLSearchParams(query));

describe('OAuth parameters', () => {
  test('OAuth parameters are parsed into typed values', () => {
    expect(parse(`${good}&max_age=5&state=x`)).toEqual({
      response_type: 'code',
      challenge: 'abcd',
      max_age: 5,
      state: 'x',
    });
  });

  test('OAuth parameters without a value count as omitted', () => {
    expect(parse(`${good}&max_age=&state`)).toEqual({ response_type: 'code', challenge: 'abcd' });
  });

  test.each(['unknown=x', '__proto__=x', 'constructor=x', 'toString=x'])(
    'OAuth parameters are parsed even if the request has the unknown parameter %s',
    (unknown) => {
      expect(parse(`${good}&${unknown}`)).toEqual({ response_type: 'code', challenge: 'abcd' });
      expect(() => parse(unknown)).toThrow('the parameter "response_type" is missing');
    },
  );

  test.each([
    ['', 'invalid_request', 'the parameter "response_type" is missing; the parameter "challenge" is missing'],
    ['response_type=code', 'invalid_request', 'the parameter "challenge" is missing'],
    ['response_type=&challenge=abcd', 'invalid_request', 'the parameter "response_type" is missing'],
    ['response_type=token&challenge=x', 'unsupported_response_type', 'response_type: must be "code"'],
    ['challenge=x', 'invalid_request', 'the parameter "response_type" is missing; challenge: must be 4 letters'],
    [`${good}&max_age=10`, 'invalid_request', 'max_age: expected a number of seconds, got "10"'],
    [`${good}&unknown=1&unknown=`, 'invalid_request', 'the parameter "unknown" is repeated'],
    ['response_type=token&state=a&state=a', 'invalid_request', 'the parameter "state" is repeated'],
    [
      'state=a&x=1&state=a&x=2&x=3',
      'invalid_request',
      'the parameter "state" is repeated; the parameter "x" is repeated',
    ],
  ] as const)('the OAuth parameters %j are rejected as %s: %s', (query, error, message) => {
    expect(() => parse(query)).toThrow(new OAuthError(error, message));
    expect(() => parse(query)).toThrow(expect.objectContaining({ error, code: 400 }));
  });

  test('the OpenAPI descriptions of OAuth parameters match their schema', () => {
    expect(parameters.descriptions).toMatchObject([
      { name: 'response_type', in: 'query', description: 'What is requested', required: true },
      { name: 'challenge', required: true },
      { name: 'max_age', description: 'Seconds' },
      { name: 'state', description: 'Anything' },
    ]);
    expect(parameters.descriptions.map((one) => 'required' in one)).toEqual([true, true, false, false]);
  });
});
