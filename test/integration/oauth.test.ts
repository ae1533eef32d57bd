/** OAuth endpoints except the token endpoint, with two replicas and the real cluster (docs/guides/tokens.md). */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { configure } from '../labs/integration/configure.ts';
import { call, gateway, nodesPath, type HttpResponse } from '../labs/integration/http.ts';
import { decodeToken, publicKey, thumbprint, verifies } from '../labs/integration/jwt.ts';
import { eventually } from '../labs/integration/eventually.ts';
import {
  bind,
  createClusterRole,
  createServiceAccount,
  get,
  patch,
  releasePath,
  removeClusterRole,
  removeServiceAccount,
  serviceAccountToken,
  unbind,
  type KubeObject,
} from '../labs/integration/kube.ts';
import { encode, login, passwordForm, platform, postForm, refreshForm, tokens } from '../labs/integration/login.ts';

const [a, b] = [0, 1].map((replica) => gateway(replica as 0 | 1)) as [string, string];

type PublishedKey = JsonWebKey & { readonly kid: string; readonly alg: string };

const published = async (base: string): Promise<PublishedKey[]> =>
  ((await call(`${base}/oauth/keys`)).json as { keys: PublishedKey[] }).keys;

describe('the published keys', () => {
  test('the published keys of both replicas are the public keys of the Secret', async () => {
    const kids = await Promise.all((['ES256', 'RS256'] as const).map(async (alg) => thumbprint(await publicKey(alg))));
    for (const base of [a, b])
      expect((await published(base)).map(({ kid }) => kid).toSorted()).toEqual(kids.toSorted());
  });

  test('the published keys of one replica verify tokens of the other replica', async () => {
    const { access_token, id_token = '' } = await tokens({ ...passwordForm('alice'), scope: 'openid' }, a);
    for (const token of [access_token, id_token]) {
      const key = (await published(b)).find(({ kid }) => kid === decodeToken(token).header['kid']);
      expect(verifies(token, createPublicKey({ key: key ?? {}, format: 'jwk' }))).toBe(true);
    }
  });
});

test('the OAuth metadata has the issuer of the tokens, and endpoints below this issuer', async () => {
  const { access_token } = await tokens(passwordForm('alice'));
  const issuer = String(decodeToken(access_token).claims['iss']);
  const documents = await Promise.all(
    [a, b].map(async (base) => (await call(`${base}/.well-known/openid-configuration`)).json),
  );
  for (const document of documents)
    expect(document).toMatchObject({
      issuer,
      token_endpoint: `${issuer}/oauth/token`,
      jwks_uri: `${issuer}/oauth/keys`,
    });
});

const post = (base: string, path: string, form: Readonly<Record<string, string>>): Promise<HttpResponse> =>
  call(`${base}${path}`, {
    method: 'POST',
    body: encode(form),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });

describe('a session revoked at one replica', () => {
  // evidence: revocation-replicas
  test.each(['access_token', 'refresh_token'] as const)(
    'revoking the %s of a session at one replica revokes the session at the other',
    async (name) => {
      const given = await login('alice', a);
      const introspect = async (base: string): Promise<unknown> =>
        (
          (await post(base, '/oauth/introspect', { token: given.access_token, ...platform })).json as {
            active: boolean;
          }
        ).active;
      expect([await introspect(a), await introspect(b)]).toEqual([true, true]);
      expect((await post(a, '/oauth/revoke', { token: given[name], ...platform })).status).toBe(200);
      expect(await introspect(a)).toBe(false);
      await eventually('the other replica rejects the token', async () => expect(await introspect(b)).toBe(false));
      expect((await postForm(refreshForm(given.refresh_token), { base: b })).status).toBe(400);
    },
  );
});

test('userinfo returns the user at either replica', async () => {
  const { access_token: token, id_token = '' } = await tokens({ ...passwordForm('alice'), scope: 'openid email' }, a);
  for (const base of [a, b])
    expect((await call(`${base}/oauth/userinfo`, { token })).json).toEqual({
      sub: decodeToken(id_token).claims['sub'],
      email: 'alice@example.com',
      email_verified: true,
    });
});

const nodesWith = async (token: string, base: string): Promise<number> =>
  (await call(`${base}${nodesPath}?limit=1`, { token })).status;

describe('a client and a ServiceAccount', () => {
  const exchange = 'urn:ietf:params:oauth:grant-type:token-exchange';
  const asClient = { client_id: 'program', client_secret: 'for as long as a test 9033' };
  const name = 'oauth-program';
  const role = 'oauth-program-nodes';
  let restore: () => Promise<void>;

  beforeAll(async () => {
    restore = await configure(({ authentication }) => {
      authentication.clients.push({
        name: asClient.client_id,
        secret: asClient.client_secret,
        grantTypes: ['client_credentials', exchange],
        groups: ['programs'],
      });
    });
    await createServiceAccount(name);
    await createClusterRole(role, [{ apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] }]);
    await bind(role, role, { kind: 'Group', name: 'programs' }, { kind: 'ServiceAccount', name, namespace: 'default' });
  });
  afterAll(async () => {
    await unbind(role);
    await removeClusterRole(role);
    await removeServiceAccount(name);
    await restore();
  });

  test('a client can get tokens with its own rights and with the rights of a ServiceAccount, and both replicas accept them', async () => {
    const own = await tokens({ grant_type: 'client_credentials', ...asClient }, a);
    const subject = await serviceAccountToken(name);
    const exchanged = await tokens(
      {
        grant_type: exchange,
        subject_token: subject,
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        ...asClient,
      },
      b,
    );
    for (const given of [own, exchanged]) expect(given).not.toHaveProperty('refresh_token');
    expect(decodeToken(exchanged.access_token).claims).toMatchObject({
      username: `system:serviceaccount:default:${name}`,
      sub: (decodeToken(subject).claims['kubernetes.io'] as { serviceaccount: { uid: string } }).serviceaccount.uid,
    });
    // The exchanged token expires no later than the subject token.
    const ends = [exchanged.access_token, subject].map((token) => Number(decodeToken(token).claims['exp']));
    expect(ends[0]).toBeLessThanOrEqual(ends[1] ?? 0);
    for (const base of [a, b])
      for (const { access_token: token } of [own, exchanged]) expect(await nodesWith(token, base)).toBe(200);
  });
});

const review = (token: string, caller: string): Promise<HttpResponse> =>
  call(`${b}/oauth/authenticate`, {
    method: 'POST',
    token: caller,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } }),
  });

describe('the token webhook', () => {
  const name = 'oauth-reviewer';

  beforeAll(async () => {
    await createServiceAccount(name);
    await bind(name, 'system:auth-delegator', { kind: 'ServiceAccount', name, namespace: 'default' });
  });
  afterAll(async () => {
    await unbind(name);
    await removeServiceAccount(name);
  });

  test('the token webhook requires the right to create tokenreviews, and rejects a token whose session is revoked', async () => {
    const caller = await serviceAccountToken(name);
    const { access_token: token } = await login('alice', a);
    expect((await review(token, caller)).json).toMatchObject({
      status: { authenticated: true, user: { username: 'alice', groups: ['keepers', 'staff'] } },
    });
    expect((await review(caller, caller)).json).toMatchObject({ status: { authenticated: false } });
    expect((await review(token, token)).status).toBe(403);
    await post(a, '/oauth/revoke', { token, ...platform });
    await eventually('the webhook rejects the token', async () =>
      expect((await review(token, caller)).json).toMatchObject({ status: { authenticated: false } }),
    );
  });
});

const kids = async (base: string): Promise<string[]> => (await published(base)).map(({ kid }) => kid).toSorted();

describe('a rotation of the signing keys', () => {
  const secretPath = `${releasePath}/secrets/platform-signing-keys`;
  type Secret = KubeObject & { readonly data: Readonly<Record<string, string>> };

  test('a rotation of the signing keys publishes the next keys before their first use, and no replica rejects a token', async () => {
    const before = await kids(a);
    const old = await login('alice', a);
    await patch(secretPath, { metadata: { annotations: { 'platform.io/rotate-keys': 'in a test' } } });
    const during = await eventually('both replicas publish the next keys', async () => {
      const both = await Promise.all([kids(a), kids(b)]);
      expect(both[0]).toHaveLength(4);
      expect(both[1]).toEqual(both[0]);
      return both[0] ?? [];
    });
    expect(before).toContain(decodeToken((await login('alice', b)).access_token).header['kid']);
    // Changes the plan as if the ten minutes before the first use of the next keys had passed.
    const { data } = await get<Secret>(secretPath);
    const plan = JSON.parse(Buffer.from(data['rotation.json'] ?? '', 'base64').toString('utf8')) as object;
    const aged = Buffer.from(JSON.stringify({ ...plan, nextFrom: new Date().toISOString() })).toString('base64');
    await patch(secretPath, { data: { 'rotation.json': aged } });
    for (const base of [a, b])
      await eventually('the next keys sign', async () => {
        const { kid } = decodeToken((await login('alice', base)).access_token).header;
        expect(during).toContain(kid);
        expect(before).not.toContain(kid);
      });
    const fresh = await login('alice', b);
    for (const base of [a, b]) {
      expect(await kids(base)).toEqual(during);
      for (const { access_token: token } of [old, fresh]) expect(await nodesWith(token, base)).toBe(403);
    }
  });

  test('the signing keys are rotated only by the replica that holds the Lease', async () => {
    const lease = await get(
      `${releasePath.replace('/api/v1', '/apis/coordination.k8s.io/v1')}/leases/platform-apiserver`,
    );
    expect(lease.spec).toMatchObject({ holderIdentity: expect.stringMatching(/./), leaseDurationSeconds: 15 });
  });
});
