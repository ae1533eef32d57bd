import { describe, expect, test } from '@jest/globals';
import { createPublicKey, verify, type JsonWebKey } from 'node:crypto';
import { sendRequest } from '../../../fakes/request.ts';
import { issuer } from '../../../fakes/configuration.ts';
import { readJWT } from '../../../fakes/jwt.ts';
import { createLab, login, routesOf } from '../../../labs/oauth.ts';

const documents = ['', '/oauth'].flatMap((base) =>
  ['openid-configuration', 'oauth-authorization-server'].map((name) => `${base}/.well-known/${name}`),
);
type Key = JsonWebKey & { readonly kid: string; readonly alg: string };

describe('the server metadata', () => {
  // evidence: metadata-paths
  test.each(documents)('the server metadata is served at %s', async (path) => {
    const response = await sendRequest((await createLab()).app, path, { headers: { host: 'evil.example' } });
    expect(response.status).toBe(200);
    expect(response.headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'public, max-age=300',
      'content-length': String(Buffer.byteLength(response.text)),
    });
    expect(response.json()).toMatchObject({
      issuer,
      token_endpoint: `${issuer}/oauth/token`,
      jwks_uri: `${issuer}/oauth/keys`,
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
      id_token_signing_alg_values_supported: ['RS256', 'ES256'],
      subject_types_supported: ['public'],
      response_types_supported: ['code'],
    });
    expect(response.text).not.toContain('evil.example');
  });

  // evidence: metadata-endpoints-served
  test('the server metadata contains only endpoints that exist', async () => {
    const lab = await createLab();
    const members = Object.entries((await sendRequest(lab.app, documents[0] ?? '')).json());
    const addresses = members.flatMap(([name, value]) => (/_(endpoint|uri)$/.test(name) ? [String(value)] : []));
    expect(addresses.length).toBeGreaterThan(1);
    for (const address of addresses) expect(routesOf(lab).map(({ path }) => issuer + path)).toContain(address);
  });

  test('the server metadata lists exactly the grants of the token endpoint', async () => {
    const { app, token } = await createLab();
    const named = (await sendRequest(app, documents[0] ?? '')).json()['grant_types_supported'];
    const refusal = (await token({ ...login, grant_type: 'magic' })).json()['error_description'];
    expect(refusal).toBe(`grant_type: must be one of ${(named as string[]).join(', ')}`);
  });

  // evidence: metadata-issuer-config
  test('the server metadata contains the new issuer after the configuration changes', async () => {
    const { app, configure } = await createLab();
    configure({ issuer: 'https://other.example/base' });
    expect((await sendRequest(app, documents[0] ?? '')).json()).toMatchObject({
      issuer: 'https://other.example/base',
      token_endpoint: 'https://other.example/base/oauth/token',
    });
  });

  // evidence: metadata-issuer-path
  test('the server metadata of an issuer with a path is served only at the location of RFC 8414 section 3.1', async () => {
    const { app, configure } = await createLab();
    const names = ['openid-configuration', 'oauth-authorization-server'];
    const ofPath = (path: string) => Promise.all(names.map((name) => sendRequest(app, `/.well-known/${name}${path}`)));
    for (const response of await ofPath('/a/base')) expect(response.status).toBe(404);
    configure({ issuer: 'https://other.example/a/base' });
    for (const response of await ofPath('/a/base'))
      expect(response.json()).toMatchObject({ issuer: 'https://other.example/a/base' });
    for (const path of ['/a', '/a/base/', '/a/base/x', '/A/base'])
      for (const response of await ofPath(path)) expect(response.status).toBe(404);
  });

  // evidence: metadata-members
  test('the server metadata contains the fields that clients need for security, and no empty list', async () => {
    const metadata = (await sendRequest((await createLab()).app, documents[0] ?? '')).json();
    const withSecret = ['client_secret_basic', 'client_secret_post'];
    expect(metadata).toMatchObject({
      authorization_endpoint: `${issuer}/oauth/authorize`,
      authorization_response_iss_parameter_supported: true,
      claims_parameter_supported: false,
      code_challenge_methods_supported: ['S256'],
      device_authorization_endpoint: `${issuer}/oauth/device_authorization`,
      end_session_endpoint: `${issuer}/oauth/logout`,
      introspection_endpoint: `${issuer}/oauth/introspect`,
      introspection_endpoint_auth_methods_supported: withSecret,
      prompt_values_supported: ['none', 'login', 'consent', 'select_account'],
      request_parameter_supported: false,
      request_uri_parameter_supported: false,
      response_modes_supported: ['query'],
      revocation_endpoint: `${issuer}/oauth/revoke`,
      revocation_endpoint_auth_methods_supported: [...withSecret, 'none'],
      scopes_supported: ['openid', 'profile', 'email', 'groups', 'offline_access'],
      userinfo_endpoint: `${issuer}/oauth/userinfo`,
    });
    const members = Object.entries(metadata);
    expect(members.filter(([, value]) => Array.isArray(value) && value.length === 0)).toEqual([]);
    const addresses = members.filter(([name]) => /_(endpoint|uri)$/.test(name)).map(([, value]) => String(value));
    expect(addresses.filter((address) => !address.startsWith('https://'))).toEqual([]);
  });

  test('a POST request for the server metadata gets 405', async () => {
    const response = await sendRequest((await createLab()).app, documents[0] ?? '', { method: 'POST' });
    expect(response).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
  });
});

describe('the key set', () => {
  test('the key set contains only public keys, one for each algorithm', async () => {
    const response = await sendRequest((await createLab()).app, '/oauth/keys');
    expect(response.status).toBe(200);
    expect(response.headers).toMatchObject({
      'content-type': 'application/jwk-set+json',
      'cache-control': 'public, max-age=300',
    });
    const { keys } = response.json() as { keys: Key[] };
    expect(keys.map(({ alg }) => alg).toSorted()).toEqual(['ES256', 'RS256']);
    for (const key of keys) {
      const members = key.alg === 'ES256' ? ['crv', 'x', 'y'] : ['e', 'n'];
      expect(Object.keys(key).toSorted()).toEqual(['alg', 'kid', 'kty', 'use', ...members].toSorted());
    }
  });

  // evidence: jwks-verification
  test.each(['access_token', 'id_token'])('the signature of the %s can be verified with the key set', async (name) => {
    const { app, token } = await createLab();
    const text = String((await token({ ...login, scope: 'openid' })).json()[name]);
    const { header } = readJWT(text);
    const { keys } = (await sendRequest(app, '/oauth/keys')).json() as { keys: Key[] };
    const key = createPublicKey({ key: keys.find(({ kid }) => kid === header['kid']) ?? {}, format: 'jwk' });
    const [content, signature] = [text.slice(0, text.lastIndexOf('.')), text.slice(text.lastIndexOf('.') + 1)];
    const isRight = verify(
      'sha256',
      Buffer.from(content),
      { key, dsaEncoding: 'ieee-p1363' },
      Buffer.from(signature, 'base64url'),
    );
    expect(isRight).toBe(true);
  });

  test('the key set has no body in a response to HEAD', async () => {
    const response = await sendRequest((await createLab()).app, '/oauth/keys', { method: 'HEAD' });
    expect(response).toMatchObject({ status: 200, text: '' });
    expect(Number(response.headers['content-length'])).toBeGreaterThan(100);
  });
});
