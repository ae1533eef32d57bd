/**
 * TokenReviews that components with delegated authentication send through the gateway
 * (docs/reference/gateway.md#tokens). A real kube-apiserver authenticates the tokens in forwarded reviews.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { output } from '../../hack/cluster/exec.ts';
import { configure } from '../labs/integration/configure.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { call, secureGateway, type Call, type HttpResponse } from '../labs/integration/http.ts';
import { decodeToken } from '../labs/integration/jwt.ts';
import {
  bind,
  createClusterRole,
  createServiceAccount,
  removeClusterRole,
  removeServiceAccount,
  serviceAccountToken,
  unbind,
} from '../labs/integration/kube.ts';
import { lab } from '../labs/integration/lab.ts';
import { encode, login, passwordForm, platform, tokens, type Tokens } from '../labs/integration/login.ts';
import { passwords } from '../labs/integration/people.ts';
import { expectStatus } from '../labs/integration/status.ts';
import { createUserWithPassword, removeUser } from '../labs/integration/user-objects.ts';

const issuer = 'https://platform-apiserver.platform-system.svc';
const path = '/apis/authentication.k8s.io/v1/tokenreviews';
const json = 'application/json';
const protobuf = 'application/vnd.kubernetes.protobuf';
/** User who is allowed to create TokenReviews. */
const reviewer = 'token-reviewer';
/** User who is allowed to impersonate `reviewer` and alice, and has no other rights. */
const deputy = 'deputy-reviewer';
/** User who must change the password before anything else. */
const newcomer = 'reviewed-newcomer';
const account = 'reviewed';

let kubeconfig = '';
let reviewerToken = '';
let deputyToken = '';
let alice: Tokens;
let restore: () => Promise<void>;

beforeAll(async () => {
  // Makes the gateway accept id_tokens of this client as bearer tokens.
  restore = await configure((configuration) => {
    configuration['gateway'] = { ...(configuration['gateway'] as object), idTokenClients: [platform.client_id] };
  });
  await createServiceAccount(account);
  await createUserWithPassword(newcomer, { passwordChangeRequired: true });
  await Promise.all([createUserWithPassword(reviewer), createUserWithPassword(deputy)]);
  await bind(reviewer, 'system:auth-delegator', { kind: 'User', name: reviewer });
  const rule = { verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: [reviewer, 'alice'] };
  await createClusterRole(deputy, [rule]);
  await bind(deputy, deputy, { kind: 'User', name: deputy });
  [reviewerToken, deputyToken] = await Promise.all([tokenOf(reviewer), tokenOf(deputy)]);
  alice = await tokens({ ...passwordForm('alice'), scope: 'openid profile' });
  kubeconfig = join(lab().dir, `${reviewer}.kubeconfig`);
  const content = {
    clusters: [{ name: 'p', cluster: { server: secureGateway(), 'certificate-authority': lab().authorityFile } }],
    users: [{ name: 'p', user: { token: reviewerToken } }],
    contexts: [{ name: 'p', context: { cluster: 'p', user: 'p' } }],
    'current-context': 'p',
  };
  writeFileSync(kubeconfig, stringify(content), { mode: 0o600 });
  await eventually('the reviewer may create TokenReviews', async () => {
    const { status } = await post(alice.access_token);
    if (status !== 201) throw new Error(`the status is ${status}`);
  });
});
afterAll(async () => {
  for (const name of [reviewer, deputy]) await unbind(name);
  await removeClusterRole(deputy);
  for (const name of [reviewer, deputy, newcomer]) await removeUser(name);
  await removeServiceAccount(account);
  await restore();
});

/** Status of a TokenReview. */
interface Reviewed {
  readonly authenticated?: boolean;
  readonly user?: { readonly username?: string };
  readonly audiences?: readonly string[];
}

interface Seen {
  readonly contentType: string;
  readonly accept: string;
  readonly status: Reviewed;
}

/** Reviews a token with client-go as the reviewer. */
const review = async (token: string, audiences: readonly string[] = [], contentType = ''): Promise<Seen> =>
  JSON.parse(
    await output(lab().go.reviewer, [kubeconfig, ...audiences], { input: token, env: { CONTENT_TYPE: contentType } }),
  ) as Seen;

const tokenOf = async (name: string): Promise<string> =>
  (await login(name, secureGateway(), passwords.alice)).access_token;

const bodyOf = (token: string): string =>
  JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } });

const post = (token: string, options: Call = {}): Promise<HttpResponse> =>
  call(`${secureGateway()}${path}`, {
    method: 'POST',
    token: reviewerToken,
    body: bodyOf(token),
    ...options,
    headers: { 'content-type': json, ...options.headers },
  });

const userOf = ({ json: body }: HttpResponse): unknown => (body as { status: Reviewed }).status.user?.username;

const ofAlice = (): object => ({
  authenticated: true,
  user: {
    username: 'alice',
    uid: decodeToken(alice.access_token).claims['sub'],
    groups: ['keepers', 'staff', 'system:authenticated'],
  },
  audiences: [issuer],
});

describe('a TokenReview of client-go returns the user of an access token', () => {
  // evidence: gateway-token-review-replicas
  test.each<[string, string, string, readonly string[]]>([
    ['in protobuf by default', '', protobuf, []],
    ['in JSON', json, json, []],
    ['with the issuer as audience, in protobuf', '', protobuf, [issuer]],
    ['with the issuer and another audience, in JSON', json, json, ['https://other.example', issuer]],
  ])('a TokenReview of client-go returns the user of an access token %s', async (_, contentType, sent, audiences) => {
    const seen = await review(alice.access_token, audiences, contentType);
    expect(seen).toEqual({ contentType: sent, accept: expect.stringContaining(json), status: ofAlice() });
  });
});

describe('kube-apiserver does not authenticate', () => {
  const cases: Readonly<Record<string, () => Promise<readonly [token: string, ...audiences: string[]]>>> = {
    'an access token reviewed for another audience only': async () => [alice.access_token, 'https://other.example'],
    'an id_token, although the gateway accepts it as a bearer token': async () => [alice.id_token ?? ''],
    'a refresh token': async () => [alice.refresh_token],
    'the token of a user who must change the password': async () => [await tokenOf(newcomer)],
    'a token for a kube-apiserver that does not trust this server': async () => {
      const { access_token: token } = await tokens({ ...passwordForm('alice'), audience: 'kubernetes' });
      return [token];
    },
    'a token whose session was revoked a second ago': async () => {
      const { access_token: token } = await login('alice');
      expect((await review(token)).status.authenticated).toBe(true);
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const body = encode({ token, ...platform });
      await call(`${secureGateway(1)}/oauth/revoke`, { method: 'POST', body, headers });
      await eventually('the replica knows the revocation', async () =>
        expect((await call(`${secureGateway()}/version`, { token })).status).toBe(401),
      );
      return [token];
    },
  };

  test.each(Object.keys(cases))('kube-apiserver does not authenticate %s', async (name) => {
    const [token, ...audiences] = (await cases[name]?.()) ?? [''];
    for (const contentType of ['', json]) {
      const { status } = await review(token, audiences, contentType);
      expect(status).toEqual({ error: expect.any(String) as unknown, user: {} });
    }
  });

  test('an access token in a TokenReview of more than 64 KiB is not authenticated', async () => {
    const response = await post(alice.access_token, { body: bodyOf(alice.access_token).padEnd(64 * 1024 + 1) });
    expect(response.json).toMatchObject({ status: { error: expect.any(String) as unknown, user: {} } });
  });
});

test('the gateway accepts the access token and the id_token of a user as bearer tokens', async () => {
  for (const token of [alice.access_token, alice.id_token ?? ''])
    expect((await call(`${secureGateway()}/version`, { token })).status).toBe(200);
});

test('kube-apiserver authenticates the token of a ServiceAccount, in protobuf and in JSON', async () => {
  const token = await serviceAccountToken(account);
  for (const contentType of ['', json]) {
    const { status } = await review(token, [], contentType);
    expect(status).toMatchObject({
      authenticated: true,
      user: { username: `system:serviceaccount:default:${account}` },
    });
    expect(status.audiences).not.toContain(issuer);
  }
});

test('a chunked TokenReview of more than 64 KiB gets 413', async () => {
  const headers = { 'transfer-encoding': 'chunked' };
  const response = await post('', { headers, body: bodyOf(alice.access_token).padEnd(64 * 1024 + 1) });
  expectStatus(response, 413, 'RequestEntityTooLarge');
});

describe('the right to create TokenReviews', () => {
  // evidence: gateway-token-review-right-replicas
  test.each([
    ['a valid body', bodyOf('any')],
    ['a body of more than 64 KiB', 'x'.repeat(64 * 1024 + 1)],
    ['a body of invalid JSON', '{'],
  ])(
    'the right to create TokenReviews is required before the server reads %s that is sent in chunks',
    async (_, body) => {
      const { access_token: token } = await login('alice');
      const response = await post('', { token, body, headers: { 'transfer-encoding': 'chunked' } });
      expect(response.status).toBe(403);
      expect(response.text).toContain('User \\"alice\\" cannot create resource \\"tokenreviews\\"');
    },
  );

  test('a TokenReview on behalf of an impersonated user requires the right of the impersonated user, not of the caller', async () => {
    const asReviewer = await post(alice.access_token, {
      token: deputyToken,
      headers: { 'impersonate-user': reviewer },
    });
    expect([asReviewer.status, userOf(asReviewer)]).toEqual([201, 'alice']);
    const asAlice = await post(alice.access_token, { token: deputyToken, headers: { 'impersonate-user': 'alice' } });
    expect(asAlice.status).toBe(403);
    expect(asAlice.text).toContain('User \\"alice\\" cannot create resource \\"tokenreviews\\"');
    // An administrator has the right, but impersonates a user who does not have it.
    const { access_token: admin } = await login('admin');
    expect((await post(alice.access_token, { token: admin })).status).toBe(201);
    const asBob = await post(alice.access_token, { token: admin, headers: { 'impersonate-user': 'bob' } });
    expect([asBob.status, asBob.text]).toEqual([403, expect.stringContaining('User \\"bob\\"')]);
  });
});
