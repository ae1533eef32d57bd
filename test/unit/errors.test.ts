import { describe, expect, test } from '@jest/globals';
import * as errors from '../../src/errors.ts';

describe('a StatusError', () => {
  test('tells the caller nothing of its cause', () => {
    const cause = new Error('the cause');
    const error = errors.serviceUnavailable('later', 3, cause);
    expect(error.cause).toBe(cause);
    expect(JSON.stringify(error.toStatus())).not.toContain('the cause');
    expect(error.headers).toEqual({ 'Retry-After': '3' });
  });

  test.each([
    [errors.unauthorized(), 'Bearer realm="platform"'],
    [errors.unauthorized({ error: 'invalid_token' }), 'Bearer realm="platform", error="invalid_token"'],
  ])('%s of 401 carries the challenge of RFC 6750', (error, challenge) => {
    expect(error).toMatchObject({ code: 401, headers: { 'WWW-Authenticate': challenge } });
  });

  test('of 405 names what is allowed', () => {
    expect(errors.methodNotAllowed(['GET', 'HEAD']).headers).toEqual({ Allow: 'GET, HEAD' });
  });

  test.each([
    [errors.notFound({ group: '', resource: 'nodes' }, 'n"1'), 'nodes "n\\"1" not found'],
    [errors.notFound({ group: 'g.io', resource: 'nodes' }, 'n1'), 'nodes.g.io "n1" not found'],
    [errors.forbidden({ group: 'g.io', resource: 'nodes' }, '', 'why'), 'nodes.g.io is forbidden: why'],
    [errors.invalid({ group: 'g', kind: 'K' }, 'x', [{ field: 'f', message: 'm' }]), 'K.g "x" is invalid: f: m'],
    [
      errors.invalid({ group: 'g', kind: 'K' }, '', [
        { field: 'f', message: 'm' },
        { field: 'g', message: 'n' },
      ]),
      'K.g "" is invalid: [f: m, g: n]',
    ],
  ])('speaks as kube-apiserver does: %s', (error, message) => {
    expect(error.toStatus().message).toBe(message);
  });
});

describe('an OAuthError', () => {
  test.each([
    ['invalid_request', 400],
    ['invalid_client', 401],
    ['invalid_grant', 400],
    ['unauthorized_client', 400],
    ['unsupported_grant_type', 400],
    ['invalid_scope', 400],
    ['server_error', 500],
    ['temporarily_unavailable', 503],
  ] as const)('%s is %d', (code, status) => {
    expect(new errors.OAuthError(code, 'x').code).toBe(status);
    expect('WWW-Authenticate' in new errors.OAuthError(code, 'x').headers).toBe(status === 401);
  });
});
