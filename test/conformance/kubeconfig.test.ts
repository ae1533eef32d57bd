/** `GET /kapis/config.platform.io/v1alpha2/kubeconfig` (docs/guides/kubectl.md). */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { X509Certificate } from 'node:crypto';
import { parse } from 'yaml';
import type { AppResponse } from '../fakes/request.ts';
import { login, startLab, type LabRequest, type Lab } from '../labs/conformance/lab.ts';
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

const send = (target: string, { headers, ...more }: LabRequest = {}): Promise<AppResponse> =>
  lab.gateway(target, { ...more, headers: { authorization: `Bearer ${token}`, ...headers } });

interface Kubeconfig {
  readonly clusters: readonly { cluster: { server: string; 'certificate-authority-data': string } }[];
}

describe('the kubeconfig', () => {
  test('the kubeconfig has the configured address, the CA and the credential plugin, and is not cacheable', async () => {
    const response = await send(path);
    expect(response.status).toBe(200);
    expect(response.headers).toMatchObject({ 'content-type': 'application/yaml', 'cache-control': 'no-store' });
    const config = parse(response.text) as Kubeconfig;
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
    expect(response.text).not.toContain(token);
  });

  test.each([
    { host: 'evil.example' },
    { 'x-forwarded-host': 'evil.example' },
    { forwarded: 'host=evil.example;proto=http' },
    { 'x-forwarded-proto': 'http' },
  ])('the kubeconfig does not depend on the request headers %j', async (headers) => {
    expect((await send(path, { headers })).text).toBe((await send(path)).text);
  });

  test("the kubeconfig contains the caller's token if requested, and is returned as JSON if requested", async () => {
    const response = await send(`${path}?token=embed`, { headers: { accept: 'application/json' } });
    expect(response.headers['content-type']).toBe('application/json');
    expect(response.json()).toMatchObject({ users: [{ user: { token } }] });
    expect(response.text).not.toContain('exec');
  });

  test.each([
    ['?token=', 400, 'BadRequest'],
    ['?token=mine', 400, 'BadRequest'],
    ['?token=embed&token=embed', 400, 'BadRequest'],
    ['?server=https://evil.example', 400, 'BadRequest'],
  ])('a request for the kubeconfig with %s gets %d', async (query, code, reason) =>
    expectFailure(await send(`${path}${query}`), code, reason),
  );

  test('an anonymous request for the kubeconfig gets 401', async () => {
    expectFailure(await lab.gateway(path), 401, 'Unauthorized');
  });

  test('discovery lists the kubeconfig', async () => {
    expect((await send('/kapis/config.platform.io/v1alpha2')).json()).toMatchObject({
      resources: [{ name: 'kubeconfig', kind: 'Config' }],
    });
  });
});
