import { describe, expect, test } from '@jest/globals';
import * as errors from '../../../../src/runtime/errors.ts';
import { createLogger } from '../../../../src/runtime/logger.ts';
import { KubeError, unreachable } from '../../../../src/cluster/client/kube-error.ts';
import { ask, type Answer } from '../../../fakes/ask.ts';
import { logOfLines } from '../../../fakes/log.ts';
import { doing, face } from '../../../labs/http.ts';

const silent = createLogger({ silent: true });

/** What a handler that throws this is answered with. */
const thrown = (error: unknown, path = '/kapis/version', method = 'GET', log = silent): Promise<Answer> => {
  const throws = (): never => {
    throw error;
  };
  return ask(face({ log, routes: [doing(throws, path)] }).app, path, { method });
};

const core = { group: '', resource: 'nodes' };

describe('on the API paths', () => {
  test.each([
    [errors.badRequest('no'), 400, 'BadRequest', undefined],
    [errors.forbidden(core, 'n1', 'why'), 403, 'Forbidden', { name: 'n1', kind: 'nodes' }],
    [errors.notFound({ group: 'g', resource: 'r' }, 'x'), 404, 'NotFound', { name: 'x', group: 'g', kind: 'r' }],
    [errors.noSuchPath(), 404, 'NotFound', undefined],
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
  ])('%s is a Status', async (error, code, reason, details) => {
    const answer = await thrown(error);
    expect(answer.status).toBe(code);
    expect(answer.json()).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: expect.any(String),
      reason,
      ...(details === undefined ? {} : { details }),
      code,
    });
    expect(answer.text.endsWith('}\n')).toBe(true);
    expect(answer.headers['content-type']).toBe('application/json');
    const seconds = (details as { retryAfterSeconds?: number } | undefined)?.retryAfterSeconds;
    expect(answer.headers['retry-after']).toBe(seconds?.toString());
  });

  test('one that can be continued carries the token with which', async () => {
    expect((await thrown(errors.expired('too old', 'token'))).json()['metadata']).toEqual({ continue: 'token' });
  });
});

describe('on the paths of OAuth', () => {
  test.each([
    [errors.badRequest('no'), 400, 'invalid_request'],
    [errors.forbiddenPath('no'), 403, 'access_denied'],
    [errors.tooManyRequests('slower', 7), 429, 'temporarily_unavailable'],
    [errors.serviceUnavailable('later'), 503, 'temporarily_unavailable'],
    [errors.badGateway('upstream'), 502, 'temporarily_unavailable'],
    [new Error('a bug'), 500, 'server_error'],
    [new errors.OAuthError('invalid_grant', 'slower', { status: 429 }), 429, 'invalid_grant'],
    [new errors.OAuthError('temporarily_unavailable', 'later'), 503, 'temporarily_unavailable'],
  ])('%s is an error of RFC 6749', async (error, status, code) => {
    for (const path of ['/oauth/x', '/.well-known/x']) {
      const answer = await thrown(error, path);
      expect(answer.status).toBe(status);
      expect(answer.json()).toEqual({ error: code, error_description: expect.any(String) });
      expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', pragma: 'no-cache' });
    }
  });

  // evidence: error-description-characters
  test('the description has no character that RFC 6749 forbids', async () => {
    const { json } = await thrown(new errors.OAuthError('invalid_request', 'a "b" \\ ä\n'), '/oauth/x');
    expect(json()['error_description']).toBe("a 'b' ? ??");
  });
});

describe('what nobody foresaw', () => {
  const secret = 'postgres://user:pass@db at /srv/app/dist/x.js:1';

  test.each([
    new Error(secret),
    new TypeError(secret),
    secret,
    { secret },
    Object.assign(new Error(secret), { status: 400 }),
  ])('is 500 that names the line of the log and nothing else: %s', async (error) => {
    const answer = await thrown(error);
    expect(answer.status).toBe(500);
    expect(answer.text).not.toMatch(/postgres|srv|\bat\b/);
    expect(answer.json()).toMatchObject({
      reason: 'InternalError',
      message: expect.stringContaining(String(answer.headers['audit-id'])),
    });
  });

  test('has its cause in the log, under the audit id, once', async () => {
    const { log, lines } = logOfLines();
    const answer = await thrown(new Error('the cause'), '/kapis/version', 'GET', log);
    const caused = lines().filter((line) => line.includes('the cause'));
    expect(caused).toHaveLength(1);
    expect(JSON.parse(caused[0] ?? '')).toMatchObject({
      level: 'error',
      auditID: answer.headers['audit-id'],
      error: { message: 'the cause', stack: expect.stringContaining('write-error.test.ts') },
    });
  });
});

test('to HEAD has the headers alone', async () => {
  const answer = await thrown(errors.badRequest('no'), '/kapis/version', 'HEAD');
  expect([answer.status, answer.text, Number(answer.headers['content-length']) > 0]).toEqual([400, '', true]);
});

test('replaces what a handler had said about another body', async () => {
  const route = doing((_, res) => {
    res.setHeader('Content-Encoding', 'gzip');
    res.setHeader('ETag', '"x"');
    res.setHeader('Content-Disposition', 'attachment');
    res.setHeader('Content-Type', 'text/html');
    throw errors.badRequest('no');
  });
  const { headers, json } = await ask(face({ routes: [route] }).app, '/kapis/version');
  expect(json()['code']).toBe(400);
  expect(headers['content-type']).toBe('application/json');
  for (const name of ['content-encoding', 'etag', 'content-disposition']) expect(headers).not.toHaveProperty(name);
});

test('a stream that is under way is cut, so that its reader knows', async () => {
  const route = doing((_, res) => {
    res.write('half');
    throw errors.badRequest('no');
  });
  await expect(ask(face({ routes: [route] }).app, '/kapis/version')).rejects.toThrow(/the connection ended/);
});

describe('after an answer that cannot be written', () => {
  const message = 'N\x01o';

  test('comes the error, and nothing of that answer', async () => {
    const route = doing((_, res) => {
      res.setHeader('Location', '/a');
      res.writeHead(403, message);
    });
    const answer = await ask(face({ routes: [route] }).app, '/kapis/version');
    expect([answer.status, answer.headers.location]).toEqual([500, undefined]);
    expect(answer.headers).toHaveProperty('audit-id');
  });

  test('comes the end if nothing can be, and the server goes on', async () => {
    const route = doing((_, res) => {
      res.writeHead = () => {
        throw new Error('never');
      };
      throw errors.badRequest('no');
    });
    await expect(ask(face({ routes: [route] }).app, '/kapis/version')).rejects.toThrow(/the connection ended/);
  });
});
