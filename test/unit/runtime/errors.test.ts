import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import * as errors from '../../../src/runtime/errors.ts';

describe('a StatusError', () => {
  test('a StatusError does not reveal its cause to the caller', () => {
    const cause = new Error('the cause');
    const error = errors.serviceUnavailable('later', 3, cause);
    expect(error.cause).toBe(cause);
    expect(JSON.stringify(error.toStatus())).not.toContain('the cause');
    expect(error.headers).toEqual({ 'Retry-After': '3' });
  });

  test.each([
    [errors.unauthorized(), 'Bearer realm="platform"'],
    [errors.invalidToken(), 'Bearer realm="platform", error="invalid_token"'],
  ])('a StatusError of 401 contains the challenge of RFC 6750: %p', (error, challenge) => {
    expect(error).toMatchObject({ code: 401, headers: { 'WWW-Authenticate': challenge } });
  });

  test('a StatusError of 405 lists the allowed methods', () => {
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
  ])('a StatusError has the wording of kube-apiserver: %p', (error, message) => {
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
  ] as const)('an OAuthError with the code %s has the status %d', (code, status) => {
    expect(new errors.OAuthError(code, 'x').code).toBe(status);
    expect('WWW-Authenticate' in new errors.OAuthError(code, 'x').headers).toBe(status === 401);
  });
});

describe('docs/reference/errors.md', () => {
  const text = readFileSync(new URL('../../../docs/reference/errors.md', import.meta.url), 'utf8');
  /** Returns for each table row of a section the first two cells, joined, and the remaining cells. */
  const rows = (section: string): { readonly is: string; readonly remainingCells: readonly string[] }[] => {
    const [, part = ''] = text.split(`\n## ${section}\n`);
    const lines = part.split('\n## ')[0]?.match(/^\| `.*$/gm) ?? [];
    return lines.map((line) => {
      const [name = '', code = '', ...remainingCells] = line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim());
      return { is: `${name.replaceAll('`', '')} ${code}`, remainingCells };
    });
  };
  const all = [...rows('Status'), ...rows('OAuth')];

  const resource = { group: '', resource: 'nodes' };
  /** Calls each function that creates a StatusError, by name. */
  const made: Readonly<Record<string, () => errors.StatusError>> = {
    badRequest: () => errors.badRequest('x'),
    unauthorized: () => errors.unauthorized(),
    invalidToken: () => errors.invalidToken(),
    malformedCredentials: () => errors.malformedCredentials('x'),
    forbidden: () => errors.forbidden(resource, 'x', 'x'),
    alreadyExists: () => errors.alreadyExists(resource, 'x'),
    forbiddenPath: () => errors.forbiddenPath('x'),
    notFound: () => errors.notFound(resource, 'x'),
    noSuchPath: () => errors.noSuchPath('x'),
    pathNotFound: () => errors.pathNotFound(),
    methodNotAllowed: () => errors.methodNotAllowed([]),
    notAcceptable: () => errors.notAcceptable([]),
    expired: () => errors.expired('x'),
    tooLarge: () => errors.tooLarge('x'),
    unsupportedEncoding: () => errors.unsupportedEncoding('x'),
    unsupportedMediaType: () => errors.unsupportedMediaType([]),
    invalid: () => errors.invalid({ group: '', kind: 'Node' }, 'x', []),
    tooManyRequests: () => errors.tooManyRequests('x', 1),
    headersTooLarge: () => errors.headersTooLarge(),
    internalError: () => errors.internalError('x', undefined),
    badGateway: () => errors.badGateway('x'),
    serviceUnavailable: () => errors.serviceUnavailable('x'),
    timeout: () => errors.timeout('x'),
  };
  /** The exports that do not create a StatusError. */
  const others = ['StatusError', 'OAuthError', 'describable', 'isReportable', 'oauthErrorCodes'];
  /** Errors that only Node's HTTP parser creates, or that the server forwards from kube-apiserver. */
  const from = ['Timeout 408', 'Conflict 409'];

  test('docs/reference/errors.md lists exactly the errors of the server', () => {
    expect(Object.keys(errors).toSorted()).toEqual([...Object.keys(made), ...others].toSorted());
    const statuses = Object.values(made).map((make) => `${make().reason} ${make().code}`);
    const codes = errors.oauthErrorCodes.map((code) => `${code} ${new errors.OAuthError(code, 'x').code}`);
    expect(all.map(({ is }) => is).toSorted()).toEqual([...new Set([...statuses, ...from, ...codes])].toSorted());
  });

  test('docs/reference/errors.md explains the cause of each error and the fix', () => {
    for (const { is, remainingCells } of all)
      expect({ is, remainingCells }).toEqual({
        is,
        remainingCells: [expect.stringMatching(/.{20}/), expect.stringMatching(/\w{4}/)],
      });
  });
});
