import { describe, expect, test } from '@jest/globals';
import * as errors from '../../../../src/runtime/errors.ts';
import { createLogger } from '../../../../src/runtime/logger.ts';
import { KubeError, unreachable } from '../../../../src/cluster/client/kube-error.ts';
import { sendRequest, type AppResponse } from '../../../fakes/request.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { doing, face } from '../../../labs/http.ts';

const silent = createLogger({ silent: true });

/** Returns the response to a request whose handler throws this error. */
const thrown = (error: unknown, path = '/kapis/version', method = 'GET', log = silent): Promise<AppResponse> => {
  const throws = (): never => {
    throw error;
  };
  return sendRequest(face({ log, routes: [doing(throws, path)] }).app, path, { method });
};

const core = { group: '', resource: 'nodes' };

describe('an error on the API paths', () => {
  test.each([
    [errors.badRequest('no'), 400, 'BadRequest', undefined],
    [errors.forbidden(core, 'n1', 'why'), 403, 'Forbidden', { name: 'n1', kind: 'nodes' }],
    [errors.notFound({ group: 'g', resource: 'r' }, 'x'), 404, 'NotFound', { name: 'x', group: 'g', kind: 'r' }],
    [errors.pathNotFound(), 404, 'NotFound', undefined],
    [errors.notAcceptable(['application/json']), 406, 'NotAcceptable', undefined],
    [errors.expired('too old'), 410, 'Expired', undefined],
    [errors.tooLarge('too large'), 413, 'RequestEntityTooLarge', undefined],
    [errors.unsupportedMediaType(['application/json']), 415, 'UnsupportedMediaType', undefined],
    [
      errors.invalid({ group: 'g', kind: 'K' }, 'x', [{ field: 'f', message: 'm' }]),
      422,
      'Invalid',
      { name: 'x', group: 'g', kind: 'K', causes: [{ field: 'f', message: 'm' }] },
    ],
    [errors.tooManyRequests('slower', 7), 429, 'TooManyRequests', { retryAfterSeconds: 7 }],
    [errors.badGateway('upstream'), 502, 'BadGateway', undefined],
    [errors.serviceUnavailable('later'), 503, 'ServiceUnavailable', { retryAfterSeconds: 1 }],
    [errors.timeout('late'), 504, 'Timeout', {}],
    [unreachable(new Error('reset')), 503, 'ServiceUnavailable', { retryAfterSeconds: 1 }],
    [new KubeError(401, {}), 503, 'ServiceUnavailable', { retryAfterSeconds: 5 }],
    [new KubeError(403, { reason: 'Forbidden', message: 'x' }), 503, 'ServiceUnavailable', { retryAfterSeconds: 1 }],
    [new KubeError(404, { reason: 'NotFound', message: 'x' }), 404, 'NotFound', undefined],
    [new KubeError(418, { message: 'x' }), 418, 'BadRequest', undefined],
    [new KubeError(500, {}), 502, 'BadGateway', undefined],
  ])('the error %p on the API paths is returned as a Status', async (error, code, reason, details) => {
    const response = await thrown(error);
    expect(response.status).toBe(code);
    expect(response.json()).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: expect.any(String),
      reason,
      ...(details === undefined ? {} : { details }),
      code,
    });
    expect(response.text.endsWith('}\n')).toBe(true);
    expect(response.headers['content-type']).toBe('application/json');
    const seconds = (details as { retryAfterSeconds?: number } | undefined)?.retryAfterSeconds;
    expect(response.headers['retry-after']).toBe(seconds?.toString());
  });

  test('an error for an expired list on the API paths contains the token to continue the list', async () => {
    expect((await thrown(errors.expired('too old', 'token'))).json()['metadata']).toEqual({ continue: 'token' });
  });
});

describe('an error on the OAuth paths', () => {
  test.each([
    [errors.badRequest('no'), 400, 'invalid_request'],
    [errors.forbiddenPath('no'), 403, 'access_denied'],
    [errors.tooManyRequests('slower', 7), 429, 'temporarily_unavailable'],
    [errors.serviceUnavailable('later'), 503, 'temporarily_unavailable'],
    [errors.badGateway('upstream'), 502, 'temporarily_unavailable'],
    [new Error('a bug'), 500, 'server_error'],
    [new errors.OAuthError('invalid_grant', 'slower', { status: 429 }), 429, 'invalid_grant'],
    [new errors.OAuthError('temporarily_unavailable', 'later'), 503, 'temporarily_unavailable'],
  ])('the error %p on the OAuth paths is returned in the format of RFC 6749', async (error, status, code) => {
    for (const path of ['/oauth/x', '/.well-known/x']) {
      const response = await thrown(error, path);
      expect(response.status).toBe(status);
      expect(response.json()).toEqual({ error: code, error_description: expect.any(String) });
      expect(response.headers).toMatchObject({ 'cache-control': 'no-store', pragma: 'no-cache' });
    }
  });

  // evidence: error-description-characters
  test('the description of an error on the OAuth paths has no character that RFC 6749 forbids', async () => {
    const { json } = await thrown(new errors.OAuthError('invalid_request', 'a "b" \\ ä\n'), '/oauth/x');
    expect(json()['error_description']).toBe("a 'b' ? ??");
  });
});

describe('an unexpected error', () => {
  const secret = 'postgres://user:pass@db at /srv/app/dist/x.js:1';

  test.each([
    new Error(secret),
    new TypeError(secret),
    secret,
    { secret },
    Object.assign(new Error(secret), { status: 400 }),
  ])(
    'an unexpected error causes 500, and the response contains only the audit ID of the log line: %p',
    async (error) => {
      const response = await thrown(error);
      expect(response.status).toBe(500);
      expect(response.text).not.toMatch(/postgres|srv|\bat\b/);
      expect(response.json()).toMatchObject({
        reason: 'InternalError',
        message: expect.stringContaining(String(response.headers['audit-id'])),
      });
    },
  );

  test('an unexpected error is logged once with its cause and the audit ID', async () => {
    const { log, lines } = logOfLines();
    const response = await thrown(new Error('the cause'), '/kapis/version', 'GET', log);
    const caused = lines().filter((line) => line.includes('the cause'));
    expect(caused).toHaveLength(1);
    expect(JSON.parse(caused[0] ?? '')).toMatchObject({
      level: 'error',
      auditID: response.headers['audit-id'],
      error: { message: 'the cause', stack: expect.stringContaining('write-error.test.ts') },
    });
  });
});

test('the error response to a HEAD request has no body', async () => {
  const response = await thrown(errors.badRequest('no'), '/kapis/version', 'HEAD');
  expect([response.status, response.text, Number(response.headers['content-length']) > 0]).toEqual([400, '', true]);
});

test('an error response replaces headers that a handler had set for another body', async () => {
  const route = doing((_, res) => {
    res.setHeader('Content-Encoding', 'gzip');
    res.setHeader('ETag', '"x"');
    res.setHeader('Content-Disposition', 'attachment');
    res.setHeader('Content-Type', 'text/html');
    throw errors.badRequest('no');
  });
  const { headers, json } = await sendRequest(face({ routes: [route] }).app, '/kapis/version');
  expect(json()['code']).toBe(400);
  expect(headers['content-type']).toBe('application/json');
  for (const name of ['content-encoding', 'etag', 'content-disposition']) expect(headers).not.toHaveProperty(name);
});

test('an error after the first bytes of a response ends the connection, so that the client notices the error', async () => {
  const route = doing((_, res) => {
    res.write('half');
    throw errors.badRequest('no');
  });
  await expect(sendRequest(face({ routes: [route] }).app, '/kapis/version')).rejects.toThrow(/the connection ended/);
});

describe('a response that cannot be written', () => {
  const message = 'N\x01o';

  test('a response that cannot be written is replaced by an error that has none of its headers', async () => {
    const route = doing((_, res) => {
      res.setHeader('Location', '/a');
      res.writeHead(403, message);
    });
    const response = await sendRequest(face({ routes: [route] }).app, '/kapis/version');
    expect([response.status, response.headers.location]).toEqual([500, undefined]);
    expect(response.headers).toHaveProperty('audit-id');
  });

  test('the connection ends if neither the response nor an error can be written, and the server continues', async () => {
    const route = doing((_, res) => {
      res.writeHead = () => {
        throw new Error('never');
      };
      throw errors.badRequest('no');
    });
    await expect(sendRequest(face({ routes: [route] }).app, '/kapis/version')).rejects.toThrow(/the connection ended/);
  });
});
