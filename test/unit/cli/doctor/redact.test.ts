import { describe, expect, test } from '@jest/globals';
import { redactObject } from '../../../../src/cli/doctor/redact.ts';

const head = 'apiVersion: config.platform.io/v1alpha1\nkind: PlatformConfiguration\n';
const hash = '$2b$12$abcdefghijklmnopqrstuuPbdzBqVBbmDS8FkMCqBQW8N6YFqQX3K';

describe('objects in the support bundle', () => {
  test.each([
    ['a Secret', { kind: 'Secret', data: { password: 'aHVudGVyMg==' }, stringData: { password: 'hunter2' } }],
    ['a list of Secrets', { kind: 'SecretList', items: [{ data: { password: 'aHVudGVyMg==' } }] }],
    [
      'an object applied with kubectl',
      { metadata: { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"a":"hunter2"}}' } } },
    ],
    ['an environment variable', { spec: { containers: [{ env: [{ name: 'ANY', value: 'hunter2' }] }] } }],
    ['a bearer token in an Event', { kind: 'Event', message: 'sent Authorization: Bearer hunter2' }],
    [
      'the configuration',
      {
        kind: 'ConfigMap',
        data: {
          'platform.yaml': `${head}authentication: {issuer: "https://a.example", clients: [{name: c, secret: hunter2}]}\n`,
        },
      },
    ],
    ['an invalid configuration', { kind: 'ConfigMap', data: { 'platform.yaml': `${head}secert: hunter2\n` } }],
    [
      'an invalid configuration with a number',
      { kind: 'ConfigMap', data: { 'platform.yaml': `${head}clients: [{secret: 12345678}]\n` } },
    ],
    [
      'an invalid configuration with a boolean',
      { kind: 'ConfigMap', data: { 'platform.yaml': `${head}password: true\n` } },
    ],
    [
      'an object applied with another tool',
      {
        kind: 'Secret',
        metadata: { annotations: { 'kapp.k14s.io/original': '{"data":{"password":"aHVudGVyMg=="}}' } },
      },
    ],
    [
      'a copy of the configuration under another key',
      { kind: 'ConfigMap', data: { 'platform.yaml': head, 'backup.yaml': 'clients: [{secret: hunter2}]' } },
    ],
    [
      'a URL of an audit webhook',
      {
        kind: 'ConfigMap',
        data: {
          'platform.yaml': `${head}authentication: {issuer: "https://a.example"}\naudit: {webhook: {url: "https://hooks.example/T0/hunter2?sig=hunter2"}}\n`,
        },
      },
    ],
    ['a header of a probe', { httpGet: { httpHeaders: [{ name: 'X-Api-Key', value: 'hunter2' }] } }],
    ['an argument of a container', { containers: [{ args: ['--admin-password=hunter2'] }] }],
    ['an argument after a flag', { containers: [{ args: ['--token', 'hunter2', '--x=1'] }] }],
    ['a script of a container', { containers: [{ command: ['sh', '-c', 'KEY=hunter2 exec node'] }] }],
    [
      'a header in a hook',
      { preStop: { exec: { command: ['curl', '-H', 'X-Api-Key: hunter2', '--header=K: hunter2'] } } },
    ],
    [
      'the attributes of a volume',
      { volumes: [{ csi: { driver: 'd', volumeAttributes: { share: '//u:hunter2@nas' } } }] },
    ],
    ['the options of a volume', { volumes: [{ flexVolume: { driver: 'd', options: { password: 'hunter2' } } }] }],
    ['a field whose name ends with Password', { iscsi: { chapPassword: 'hunter2' } }],
    ['a configuration that is not YAML', { kind: 'ConfigMap', data: { 'platform.yaml': '{secret: hunter2' } }],
  ])('the support bundle contains no secret from %s', (_, object) => {
    const text = JSON.stringify(redactObject(object));
    expect(text).not.toMatch(/hunter2|aHVudGVyMg|12345678|true/);
  });

  test('the URL of an LDAP server in the support bundle keeps its scheme, host and port', () => {
    const ldap = '{url: "ldaps://ldap.example:1636", userSearch: {base: "dc=a", filter: "(uid={username})"}}';
    const providers = `[{name: corp, type: LDAP, ldap: ${ldap}}]`;
    const configuration = `${head}authentication: {issuer: "https://a.example", identityProviders: ${providers}}\n`;
    expect(JSON.stringify(redactObject({ 'platform.yaml': configuration }))).toContain('ldaps://ldap.example:1636');
  });

  test('the support bundle keeps the names of keys and variables, references to Secrets, and settings that are not secret', () => {
    expect(redactObject({ kind: 'Secret', metadata: { name: 'a' }, data: { password: 'eA==' } })).toEqual({
      kind: 'Secret',
      metadata: { name: 'a' },
      data: { password: '[redacted]' },
    });
    expect(redactObject({ env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] })).toEqual({
      env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }],
    });
    const pod = {
      metadata: { labels: { 'pod-template-hash': '5d4f' } },
      spec: {
        automountServiceAccountToken: true,
        dnsConfig: { options: [{ name: 'ndots', value: '2' }] },
        containers: [{ args: ['--http-port=9090', '--help'] }],
        volumes: [{ name: 'tls', secret: { secretName: 'platform-tls' } }],
      },
    };
    expect(redactObject(pod)).toEqual(pod);
    const configuration = `${head}authentication:
  issuer: https://a.example
  users:
    - username: erin
      passwordHash: ${hash}
    - username: frank
      passwordRef: {name: frank, key: hash}
`;
    expect(redactObject({ 'platform.yaml': configuration })).toEqual({
      'platform.yaml': `${head}authentication:
  issuer: https://a.example
  users:
    - username: erin
      passwordHash: "[redacted]"
    - username: frank
      passwordRef:
        name: frank
        key: hash
`,
    });
  });
});
