import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileAccess, inClusterAccess } from '../../../../src/cluster/client/access.ts';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const put = (name: string, text: string): string => {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
};

interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: object;
}

/** Writes an exec plugin that prints this ExecCredential, and returns the path of the plugin. */
const plugin = (status: object): string => {
  const file = put('plugin', `#!/bin/sh\necho '${JSON.stringify({ kind: 'ExecCredential', status })}'\n`);
  chmodSync(file, 0o700);
  return file;
};

/** Writes a kubeconfig file as JSON, which is also valid YAML. */
const kubeconfig = ({ cluster = {}, user = {}, context = {} }: Parts = {}): string =>
  put(
    'config',
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'here',
      clusters: [
        { name: 'there', cluster: { server: 'https://192.0.2.1' } },
        { name: 'here', cluster: { server: 'https://192.0.2.2:6443/', ...cluster } },
      ],
      users: [{ name: 'me', user }],
      contexts: [{ name: 'here', context: { cluster: 'here', user: 'me', ...context } }],
    }),
  );

const base64 = (text: string): string => Buffer.from(text).toString('base64');

describe('a kubeconfig', () => {
  test('a kubeconfig names the server of its current context', () => {
    expect(fileAccess(kubeconfig()).server).toBe('https://192.0.2.2:6443');
  });

  test('a kubeconfig can be YAML', async () => {
    const file = put(
      'config',
      `apiVersion: v1
current-context: a
clusters: [{name: a, cluster: {server: "https://192.0.2.3"}}]
users:
- name: a
  user: {token: t}
contexts:
- context: {cluster: a, user: a}
  name: a
`,
    );
    expect(await fileAccess(file).headers()).toEqual({ Authorization: 'Bearer t' });
  });

  test('several kubeconfig files are merged, and the first file that sets a named entry or the current context takes precedence', async () => {
    for (const name of ['a', 'b']) {
      mkdirSync(join(directory, name));
      put(`${name}/token`, name);
    }
    const first = put(
      'a/config',
      JSON.stringify({
        'current-context': 'a',
        clusters: [{ name: 'c', cluster: { server: 'https://192.0.2.1' } }],
        contexts: [{ name: 'a', context: { cluster: 'c', user: 'u' } }],
      }),
    );
    const second = put(
      'b/config',
      JSON.stringify({
        'current-context': 'b',
        clusters: [
          { name: 'c', cluster: { server: 'https://192.0.2.2' } },
          { name: 'd', cluster: { server: 'https://192.0.2.3' } },
        ],
        users: [{ name: 'u', user: { tokenFile: 'token' } }],
        contexts: [{ name: 'b', context: { cluster: 'd', user: 'u' } }],
      }),
    );
    const merged = fileAccess([first, second]);
    expect(merged.server).toBe('https://192.0.2.1');
    expect(await merged.headers()).toEqual({ Authorization: 'Bearer b' });
    expect(fileAccess([first, second], 'b').server).toBe('https://192.0.2.3');
    expect(() => fileAccess([first, second], 'nowhere')).toThrow(/has no context "nowhere" with a cluster$/);
  });

  test('a kubeconfig can contain certificates', async () => {
    const file = kubeconfig({
      cluster: { 'certificate-authority-data': base64('ca'), 'tls-server-name': 'kubernetes' },
      user: { 'client-certificate-data': base64('cert'), 'client-key-data': base64('key') },
    });
    expect(await fileAccess(file).tls()).toEqual({
      ca: Buffer.from('ca'),
      cert: Buffer.from('cert'),
      key: Buffer.from('key'),
      servername: 'kubernetes',
      rejectUnauthorized: true,
    });
  });

  test('a kubeconfig can refer to certificate files', async () => {
    for (const name of ['ca', 'cert', 'key']) put(name, name);
    const file = kubeconfig({
      cluster: { 'certificate-authority': 'ca' },
      user: { 'client-certificate': 'cert', 'client-key': join(directory, 'key') },
    });
    expect(await fileAccess(file).tls()).toEqual({
      ca: Buffer.from('ca'),
      cert: Buffer.from('cert'),
      key: Buffer.from('key'),
      rejectUnauthorized: true,
    });
  });

  test('a kubeconfig disables certificate verification only if it sets insecure-skip-tls-verify', async () => {
    expect(await fileAccess(kubeconfig()).tls()).toEqual({ rejectUnauthorized: true });
    const file = kubeconfig({ cluster: { 'insecure-skip-tls-verify': true } });
    expect(await fileAccess(file).tls()).toEqual({ rejectUnauthorized: false });
  });

  test('a kubeconfig can contain a token, refer to a token file, or do neither', async () => {
    put('token', 'from-file');
    expect(await fileAccess(kubeconfig({ user: { token: 't' } })).headers()).toEqual({ Authorization: 'Bearer t' });
    expect(await fileAccess(kubeconfig({ user: { tokenFile: 'token' } })).headers()).toEqual({
      Authorization: 'Bearer from-file',
    });
    expect(await fileAccess(kubeconfig()).headers()).toEqual({});
  });

  test('a kubeconfig can name a plugin that returns a token or a certificate', async () => {
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: plugin({ token: 'from-plugin' }) };
    expect(await fileAccess(kubeconfig({ user: { exec } })).headers()).toEqual({ Authorization: 'Bearer from-plugin' });
    plugin({ clientCertificateData: 'cert', clientKeyData: 'key' });
    expect(await fileAccess(kubeconfig({ user: { exec } })).tls()).toMatchObject({ cert: 'cert', key: 'key' });
  });

  test('a kubeconfig whose plugin prints anything but JSON is rejected without quoting the output', async () => {
    const file = put('plugin', '#!/bin/sh\necho hunter2\n');
    chmodSync(file, 0o700);
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: file };
    await expect(fileAccess(kubeconfig({ user: { exec } })).headers()).rejects.toThrow(
      /^the exec plugin of the user "me" did not print JSON$/,
    );
  });

  test('a kubeconfig with an OpenID Connect user causes requests with the id_token as the bearer token', async () => {
    const token = `e30.${Buffer.from(JSON.stringify({ exp: 9e9 })).toString('base64url')}.c2ln`;
    const user = { 'auth-provider': { name: 'oidc', config: { 'id-token': token } } };
    expect(await fileAccess(kubeconfig({ user })).headers()).toEqual({ Authorization: `Bearer ${token}` });
  });

  test('a kubeconfig with an authentication method that is no longer supported is rejected, and the error gives the reason', async () => {
    const user = { 'auth-provider': { name: 'gcp', config: {} } };
    await expect(fileAccess(kubeconfig({ user })).headers()).rejects.toThrow(
      'the user "me" of the kubeconfig has the auth-provider "gcp"',
    );
  });

  test.each<[string, Parts, string]>([
    ['cluster', { context: { cluster: 'nowhere' } }, 'has no current cluster'],
    ['user', { context: { user: 'nobody' } }, 'has no current user'],
  ])('a kubeconfig without a current %s is rejected', (_, parts, message) => {
    expect(() => fileAccess(kubeconfig(parts))).toThrow(message);
  });

  test.each(['as', 'as-uid', 'as-groups', 'as-user-extra'])('a kubeconfig whose user has "%s" is rejected', (key) => {
    expect(() => fileAccess(kubeconfig({ user: { token: 't', [key]: 'jane' } }))).toThrow(
      `sets "${key}" for the user "me"`,
    );
  });

  test('a kubeconfig with a password in the URL of its server is rejected, and the error does not contain the password', () => {
    expect(() => fileAccess(kubeconfig({ cluster: { server: 'https://erin:hunter2@a.example' } }))).toThrow(
      /^the kubeconfig \S+ has a username or password in the server URL of the cluster "[^"]+"; move the credentials to "users"$/,
    );
  });

  test('a kubeconfig that is empty is rejected', () => {
    expect(() => fileAccess(put('config', ''))).toThrow('has no current cluster');
  });
});

describe("the pod's ServiceAccount", () => {
  const environment = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' };

  test("the pod's ServiceAccount has the token and the CA that Kubernetes mounts", async () => {
    put('ca.crt', 'ca');
    put('token', 'mounted');
    const access = inClusterAccess(environment, directory);
    expect(access.server).toBe('https://10.96.0.1:443');
    expect(await access.tls()).toEqual({ ca: Buffer.from('ca'), rejectUnauthorized: true });
    expect(await access.headers()).toEqual({ Authorization: 'Bearer mounted' });
  });

  test("the pod's ServiceAccount supports IPv6", () => {
    expect(inClusterAccess({ ...environment, KUBERNETES_SERVICE_HOST: 'fd00::1' }).server).toBe(
      'https://[fd00::1]:443',
    );
  });

  test("the pod's ServiceAccount is not available outside a pod", async () => {
    mkdirSync(join(directory, 'empty'));
    expect(() => inClusterAccess({})).toThrow('not running in a pod');
    const access = inClusterAccess(environment, join(directory, 'empty'));
    await expect(access.tls()).rejects.toThrow('ENOENT');
  });
});
