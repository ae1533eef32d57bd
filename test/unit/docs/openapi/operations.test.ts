import { describe, expect, test } from '@jest/globals';
import { Components } from '../../../../src/docs/openapi/components.ts';
import { templated, operationIdOf, tagOf } from '../../../../src/docs/openapi/operations.ts';
import { jsonSchemaOf } from '../../../../src/docs/openapi/json-schema.ts';
import { errorResponsesOf } from '../../../../src/docs/openapi/error-responses.ts';
import { merged } from '../../../../src/docs/openapi/cluster-schemas.ts';
import { anonymous, authenticated } from '../../../../src/http/access.ts';
import type { Route } from '../../../../src/http/route.ts';
import { count, eitherOf, flag, list, named, object, oneOf, text } from '../../../../src/http/schema.ts';

const iam = '/kapis/iam.platform.io/v1alpha2';
const resources = '/kapis/resources.platform.io/v1alpha3';
const logging = '/kapis/logging.platform.io';

const route = (path: string, more: Partial<Route> = {}): Route => ({
  method: 'get',
  path,
  summary: 'What it does',
  access: authenticated,
  handler: () => undefined,
  ...more,
});

describe('the ID of an operation', () => {
  test.each([
    ['get', `${iam}/users`, 'listIamUsers'],
    ['get', `${iam}/users/:name`, 'getIamUser'],
    ['post', `${iam}/users`, 'createIamUser'],
    ['patch', `${iam}/users/:name`, 'patchIamUser'],
    ['put', `${iam}/users/:name/password`, 'updateIamUserPassword'],
    ['delete', `${iam}/users/:name/sessions`, 'deleteIamUserSessions'],
    ['delete', `${iam}/users/:name/sessions/:session`, 'deleteIamUserSession'],
    ['get', `${iam}/whoami`, 'getIamWhoami'],
    ['get', `${resources}/nodes`, 'listNodes'],
    ['get', `${resources}/nodes/:name`, 'getNode'],
    ['get', `${resources}/:resources`, 'listResources'],
    ['get', `${resources}/namespaces/:namespace/:resources/:name`, 'getNamespaceResource'],
    ['get', `${logging}/v1alpha2/logs`, 'getLoggingLogs'],
    ['put', `${logging}/:version/fluentbit/outputs/:output/*rest`, 'updateLoggingFluentbitOutputRest'],
    ['get', '/kapis', 'getKapis'],
    ['get', '/kapis/iam.platform.io/v1alpha2', 'getKapisIamPlatformIoV1alpha2'],
    ['post', '/oauth/token', 'postOauthToken'],
    ['get', '/livez/:check', 'getLivezCheck'],
  ] as const)('the ID of an operation for %s %s is %s', (method, path, id) => {
    expect(operationIdOf({ method, path })).toBe(id);
  });
});

test('an OpenAPI path contains its parameters in braces', () => {
  expect(templated('/a/:b/c/*rest')).toBe('/a/{b}/c/{rest}');
});

test.each([
  ['iam', route(`${iam}/users`)],
  ['oauth', route('/oauth/token')],
  ['pages', route('/oauth/login', { responses: { 200: { description: 'A page', content: { 'text/html': text } } } })],
  ['removed', route(`${logging}/:version/x`, { removed: true })],
  ['server', route('/livez')],
])('an operation has the tag "%s" of its area', (tag, one) => {
  expect(tagOf(one).name).toBe(tag);
});

describe('the error responses of an operation', () => {
  const always = [400, 429, 500, 503, 504];
  const body = { required: true, content: { 'application/json': object({}) } };
  test.each([
    ['anonymous', route('/x', { access: anonymous }), []],
    ['authenticated', route('/x'), [401, 403]],
    ['for a named object', route('/x/:name', { access: anonymous }), [404]],
    ['below /kapis', route('/kapis/x'), [401, 403, 406]],
    ['for writes below /kapis', route('/kapis/x', { method: 'post' }), [401, 403]],
    ['removed below /kapis', route('/kapis/x', { removed: true }), [401, 403, 404]],
    ['called with a body', route('/x', { access: anonymous, body }), [408, 413, 415]],
    ['optionally authenticated', route('/x', { access: { kind: 'optional', parameter: 'verbose' } }), [403]],
    ['for authenticated clients', route('/oauth/x', { access: { kind: 'client', schemes: ['client'] } }), [401]],
    ['declared with additional errors', route('/x', { access: anonymous, errors: [409, 502] }), [409, 502]],
    ['removed', route('/x', { access: anonymous, removed: true }), [404]],
  ])('the error responses of an operation are derived from a route that is %s', (_, one, more) => {
    expect([...errorResponsesOf(one).keys()]).toEqual([...always, ...more].toSorted((a, b) => a - b));
  });

  test('the error responses of an operation omit the status codes that the route declares', () => {
    expect(errorResponsesOf(route('/x', { responses: { 503: { description: 'No' } } })).has(503)).toBe(false);
  });

  test('the error responses of an operation have the error format of their area', () => {
    const page = { responses: { 200: { description: 'A page', content: { 'text/html': text } } } };
    const responses = [route('/x'), route('/oauth/x'), route('/oauth/y', page)].map((one) =>
      errorResponsesOf(one).get(429),
    );
    expect(responses.map((refusal) => [refusal?.name, Object.keys(refusal?.response.content ?? {})])).toEqual([
      ['TooManyRequests', ['application/json']],
      ['OAuthTooManyRequests', ['application/json']],
      ['PageTooManyRequests', ['text/html', 'application/json']],
    ]);
    expect(responses[0]?.response.headers).toHaveProperty('Retry-After');
  });
});

describe('component schemas', () => {
  const inner = named('Inner', object({ n: count }));

  test('component schemas that have a name are listed once, in the order of names', () => {
    const components = new Components('#/x/');
    const outer = named('Outer', object({ one: inner }, { more: list(inner) }));
    expect(components.write(jsonSchemaOf(list(outer)))).toEqual({ type: 'array', items: { $ref: '#/x/Outer' } });
    expect(Object.keys(components.schemas)).toEqual(['Inner', 'Outer']);
    expect(components.schemas['Outer']).toMatchObject({
      properties: { one: { $ref: '#/x/Inner' }, more: { items: { $ref: '#/x/Inner' } } },
    });
  });

  test('component schemas cannot share a name', () => {
    const components = new Components('#/x/');
    components.write(jsonSchemaOf(inner));
    expect(() => components.write(jsonSchemaOf(named('Inner', object({ n: text }))))).toThrow(
      'two different schemas have the name Inner',
    );
  });

  test('component schemas with alternatives are merged into one object in Swagger 2.0', () => {
    const either = eitherOf(
      object({ kind: oneOf('A'), a: text, same: flag }),
      object({ kind: oneOf('B') }, { b: count, same: flag }),
    );
    expect(merged(jsonSchemaOf(either))).toEqual({
      type: 'object',
      properties: {
        kind: {},
        a: { type: 'string' },
        b: { type: 'integer', minimum: 0 },
        same: { type: 'boolean' },
      },
      additionalProperties: false,
    });
    expect(merged(jsonSchemaOf(text))).toEqual({ type: 'string' });
  });
});
