/** Rules of RFC 9110 for every version of HTTP, tested from outside. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { login, nodes, startLab, type Lab } from '../labs/conformance/lab.ts';
import { expectFailure } from '../labs/conformance/status.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

test.each(['/livez', '/kapis/version', '/nowhere', '/oauth/token', nodes])(
  'HTTP/2 returns the same response as HTTP/1.1, and HEAD returns the headers of GET without the body: %s',
  async (path) => {
    for (const method of ['GET', 'HEAD']) {
      const one = await lab.gateway(path, { method });
      const [headers, body] = await lab.http2(path, method);
      expect([headers[':status'], body]).toEqual([one.status, one.text]);
      expect(headers['content-type']).toBe(one.headers['content-type']);
      expect(body === '').toBe(method === 'HEAD');
    }
  },
);

test.each(['get', 'post', 'Put', 'constructor', 'toString', '__proto__', 'FOO'])(
  'the server rejects the method "%s" over HTTP/2, as over HTTP/1.1',
  async (method) => {
    const [headers, body] = await lab.http2(nodes, method);
    expect(headers[':status']).toBe(400);
    expect(JSON.parse(body)).toMatchObject({ reason: 'BadRequest', message: expect.stringContaining('method') });
  },
);

test('a request with an unsupported method gets 405 if the caller is allowed to read the path, and 403 otherwise', async () => {
  lab.cluster.respond('/apis/authorization.k8s.io/v1/subjectaccessreviews', ({ spec }) => {
    const { verb, path } = (spec as { nonResourceAttributes?: Record<string, string> }).nonResourceAttributes ?? {};
    return { status: { allowed: verb === 'get' && path === '/readyz' } };
  });
  const headers = { authorization: `Bearer ${String((await lab.token(login)).json()['access_token'])}` };
  for (const method of ['TRACE', 'POST', 'DELETE']) {
    expectFailure(await lab.gateway('/readyz', { method, headers }), 405, 'MethodNotAllowed');
    expectFailure(await lab.gateway('/metrics', { method, headers }), 403, 'Forbidden');
  }
});

test('a request for the kubeconfig gets 404 if gateway.externalURL is not configured', async () => {
  const token = String((await lab.token(login)).json()['access_token']);
  const headers = { authorization: `Bearer ${token}` };
  const response = await lab.gateway('/kapis/config.platform.io/v1alpha2/kubeconfig', { headers });
  expectFailure(response, 404, 'NotFound');
  expect(response.json()['message']).toContain('gateway.externalURL');
});
