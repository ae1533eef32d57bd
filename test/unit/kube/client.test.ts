import { afterEach, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKubeClient, type KubeClient } from '../../../src/kube/client.ts';
import { craftJWT } from '../../fakes/jwt.ts';

let client: KubeClient | undefined;
let directory = '';
afterEach(async () => {
  await client?.close();
  rmSync(directory, { recursive: true, force: true });
});

/** A client whose own token is this one; it is never sent anywhere. */
async function clientOf(token: string): Promise<KubeClient> {
  directory = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
  const file = join(directory, 'config');
  // JSON is YAML.
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    clusters: [{ name: 'here', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [{ name: 'me', user: token === '' ? {} : { token } }],
    contexts: [{ name: 'here', context: { cluster: 'here', user: 'me' } }],
  };
  writeFileSync(file, JSON.stringify(kubeconfig));
  client = await createKubeClient({ kubeconfig: file });
  return client;
}

const issuer = 'https://kubernetes.default.svc';

test.each<[string, string, { issuer: string | undefined; audiences: string[] }]>([
  ['a list', craftJWT({ alg: 'RS256' }, { iss: issuer, aud: [issuer, 'k3s'] }), { issuer, audiences: [issuer, 'k3s'] }],
  ['one text', craftJWT({ alg: 'RS256' }, { iss: issuer, aud: issuer }), { issuer, audiences: [issuer] }],
  ['none', craftJWT({ alg: 'RS256' }, {}), { issuer: undefined, audiences: [] }],
  ['null', craftJWT({ alg: 'RS256' }, { iss: null, aud: null }), { issuer: undefined, audiences: [] }],
  ['of no object', `e30.${Buffer.from('null').toString('base64url')}.e30`, { issuer: undefined, audiences: [] }],
  ['of an opaque token', 'opaque', { issuer: undefined, audiences: [] }],
  ['of an opaque token with dots', 'ya29.c.b0AXv0zTPl', { issuer: undefined, audiences: [] }],
  ['of no token', '', { issuer: undefined, audiences: [] }],
])('the audiences and the issuer of our own token: %s', async (_, token, expected) => {
  const own = await clientOf(token);
  expect({ issuer: await own.issuer(), audiences: await own.audiences() }).toEqual(expected);
});
