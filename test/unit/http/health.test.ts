import { describe, expect, test } from '@jest/globals';
import { Health } from '../../../src/http/health.ts';
import type { HealthCheck } from '../../../src/runtime/lifecycle.ts';
import { sendRequest, type AppResponse } from '../../fakes/request.ts';
import { as, face } from '../../labs/http.ts';

const check = (name: string, problem = '', warning = ''): HealthCheck => ({
  name,
  problem: () => problem,
  warning: () => warning,
});
const good = check('good');
const bad = check('bad', 'the reason');
const warns = check('warns', '', 'take care');

const probe = (checks: readonly HealthCheck[], path: string, username?: string): Promise<AppResponse> =>
  sendRequest(face({ routes: new Health(() => checks).routes }).app, path, username === undefined ? {} : as(username));

describe('a health probe', () => {
  test.each([
    ['/livez', [good], 200, 'ok'],
    ['/readyz', [good, warns], 200, 'ok'],
    ['/healthz', [good], 200, 'ok'],
    ['/livez', [bad], 200, 'ok'],
    ['/readyz', [good, bad], 503, 'readyz check failed\n'],
    ['/healthz', [bad], 503, 'healthz check failed\n'],
    ['/readyz/good', [good, bad], 200, 'ok'],
    ['/readyz/bad', [good, bad], 503, 'readyz check failed\n'],
    ['/livez/ping', [bad], 200, 'ok'],
    ['/readyz?exclude=bad', [good, bad], 200, 'ok'],
    ['/readyz?exclude=bad&exclude=other', [bad], 200, 'ok'],
    ['/readyz?exclude=good', [good, bad], 503, 'readyz check failed\n'],
  ])(
    'the response to an anonymous health probe of %s contains only the overall result',
    async (path, checks, status, text) => {
      const response = await probe(checks, path);
      expect([response.status, response.text]).toEqual([status, text]);
      expect(response.headers['retry-after']).toBe(status === 503 ? '1' : undefined);
      expect(response.headers['content-type']).toBe('text/plain; charset=utf-8');
    },
  );

  test('a health probe of an unknown check gets 404', async () => {
    for (const path of ['/readyz/other', '/livez/bad']) expect((await probe([bad], path)).status).toBe(404);
  });
});

describe('the names and reasons of health checks', () => {
  const all = '[+]good ok\n[+]warns ok (warning: take care)\n[-]bad failed: the reason\nreadyz check failed\n';

  test('the names and reasons of health checks are shown to an authenticated caller with ?verbose', async () => {
    expect((await probe([good, warns, bad], '/readyz?verbose', 'alice')).text).toBe(all);
    expect((await probe([good, bad], '/readyz/good?verbose', 'alice')).text).toBe('[+]good ok\nreadyz check passed\n');
  });

  test.each([
    ['/readyz?verbose', 'an anonymous caller', undefined],
    ['/readyz?verbose', 'a caller with an invalid token', 'bad'],
    ['/readyz', 'an authenticated caller', 'alice'],
  ])('the names and reasons of health checks are not shown at %s to %s', async (path, _, username) => {
    expect((await probe([good, warns, bad], path, username)).text).toBe('readyz check failed\n');
  });
});

test('a draining server fails its readiness probe and passes its liveness probe', async () => {
  const health: Health = new Health(() => [{ ...good, problem: () => health.problem() }]);
  const { app } = face({ routes: health.routes });
  expect((await sendRequest(app, '/readyz')).status).toBe(200);
  health.drain();
  expect((await sendRequest(app, '/readyz')).status).toBe(503);
  expect((await sendRequest(app, '/livez')).status).toBe(200);
});
