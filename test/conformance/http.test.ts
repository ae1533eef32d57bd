/** What RFC 9110 says of every version of HTTP, asked from outside. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { login, nodes, startLab, type Lab } from '../labs/conformance/lab.ts';
import { expectFailure } from '../labs/conformance/status.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

test.each(['/livez', '/kapis/version', '/nowhere', '/oauth/token', nodes])(
  'HTTP/2 answers as HTTP/1.1 does, and HEAD as GET without the body: %s',
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
  'HTTP/2 refuses the method %s as HTTP/1.1 does, whose parser knows upper-case methods only',
  async (method) => {
    const [headers, body] = await lab.http2(nodes, method);
    expect(headers[':status']).toBe(400);
    expect(JSON.parse(body)).toMatchObject({ reason: 'BadRequest', message: expect.stringContaining('method') });
  },
);

test('who may read a path is told that it has no other method, and who may not is told nothing', async () => {
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

test('there is no kubeconfig where nobody has said where clients reach the server', async () => {
  const token = String((await lab.token(login)).json()['access_token']);
  const headers = { authorization: `Bearer ${token}` };
  const answer = await lab.gateway('/kapis/config.platform.io/v1alpha2/kubeconfig', { headers });
  expectFailure(answer, 404, 'NotFound');
  expect(answer.json()['message']).toContain('gateway.externalURL');
});
