/** `GET /kapis/config.platform.io/v1alpha2/kubeconfig` (docs/kubectl.md). */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { X509Certificate } from 'node:crypto';
import { parse } from 'yaml';
import type { Answer } from '../fakes/ask.ts';
import { login, startLab, type Ask, type Lab } from '../labs/conformance/lab.ts';
import { expectFailure } from '../labs/conformance/status.ts';

const path = '/kapis/config.platform.io/v1alpha2/kubeconfig';
const externalURL = 'https://platform.example:8443';

let lab: Lab;
let token: string;
beforeAll(async () => {
  lab = await startLab({ sections: { audit: { log: null }, gateway: { externalURL } } });
  token = String((await lab.token(login)).json()['access_token']);
});
afterAll(async () => {
  await lab.stop();
});

const ask = (target: string, { headers, ...more }: Ask = {}): Promise<Answer> =>
  lab.gateway(target, { ...more, headers: { authorization: `Bearer ${token}`, ...headers } });

interface Kubeconfig {
  readonly clusters: readonly { cluster: { server: string; 'certificate-authority-data': string } }[];
}

describe('the kubeconfig', () => {
  test('leads to the configured address, with our CA and the credential plugin, and is never stored', async () => {
    const answer = await ask(path);
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({ 'content-type': 'application/yaml', 'cache-control': 'no-store' });
    const config = parse(answer.text) as Kubeconfig;
    expect(config).toEqual({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'platform.example:8443',
          cluster: { server: externalURL, 'certificate-authority-data': expect.stringMatching(/./) },
        },
      ],
      users: [
        {
          name: 'alice@platform.example:8443',
          user: {
            exec: expect.objectContaining({
              apiVersion: 'client.authentication.k8s.io/v1',
              command: 'platform-apiserver',
              args: ['credential'],
              provideClusterInfo: true,
            }),
          },
        },
      ],
      contexts: [
        {
          name: 'platform.example:8443',
          context: { cluster: 'platform.example:8443', user: 'alice@platform.example:8443' },
        },
      ],
      'current-context': 'platform.example:8443',
    });
    const pem = Buffer.from(config.clusters[0]?.cluster['certificate-authority-data'] ?? '', 'base64');
    expect(new X509Certificate(pem).ca).toBe(true);
    expect(answer.text).not.toContain(token);
  });

  test.each([
    { host: 'evil.example' },
    { 'x-forwarded-host': 'evil.example' },
    { forwarded: 'host=evil.example;proto=http' },
    { 'x-forwarded-proto': 'http' },
  ])('does not depend on %j', async (headers) => {
    expect((await ask(path, { headers })).text).toBe((await ask(path)).text);
  });

  test('has the token of who asks for it, and in JSON for who wants that', async () => {
    const answer = await ask(`${path}?token=embed`, { headers: { accept: 'application/json' } });
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.json()).toMatchObject({ users: [{ user: { token } }] });
    expect(answer.text).not.toContain('exec');
  });

  test.each([
    ['?token=', 400, 'BadRequest'],
    ['?token=mine', 400, 'BadRequest'],
    ['?token=embed&token=embed', 400, 'BadRequest'],
    ['?server=https://evil.example', 400, 'BadRequest'],
  ])('%s is %d', async (query, code, reason) => expectFailure(await ask(`${path}${query}`), code, reason));

  test('is for those who have an identity', async () => {
    expectFailure(await lab.gateway(path), 401, 'Unauthorized');
  });

  test('is found by discovery', async () => {
    expect((await ask('/kapis/config.platform.io/v1alpha2')).json()).toMatchObject({
      resources: [{ name: 'kubeconfig', kind: 'Config' }],
    });
  });
});
