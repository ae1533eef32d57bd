/**
 * One identity everywhere: however a user authenticates, kube-apiserver behind the gateway, whoami, audit events,
 * access reviews, Session and TokenReview name the same user. A login is rejected if Kubernetes cannot represent the
 * name of the user or of a group.
 */
// evidence: one-identity
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { createHash, createPrivateKey, randomUUID, webcrypto } from 'node:crypto';
import { release } from '../../hack/run/chart.ts';
import { nativeHashFunctions } from '../../src/accounts/passwords/passwords.ts';
import { sessionsPath } from '../../src/config/names.ts';
import type { AuditEvent } from '../fakes/audit-event.ts';
import { Browser, formIn } from '../fakes/browser.ts';
import { chainSpecs, goodAuthority, makeChain } from '../fakes/certificate-chains.ts';
import { readJWT } from '../fakes/jwt.ts';
import { aggregatorCertificate, proxyAuthority } from '../labs/integration/certificates.ts';
import { configure } from '../labs/integration/configure.ts';
import { readAudit } from '../labs/integration/log.ts';
import { kubeAPIServer } from '../labs/integration/direct.ts';
import { eventually } from '../labs/integration/eventually.ts';
import {
  aggregated,
  apisPath,
  call,
  gateway,
  nodesPath,
  secureGateway,
  type HttpResponse,
  type Call,
} from '../labs/integration/http.ts';
import {
  bind,
  create,
  createClusterRole,
  createServiceAccount,
  get,
  releasePath,
  remove,
  removeClusterRole,
  removeServiceAccount,
  serviceAccountToken,
  unbind,
} from '../labs/integration/kube.ts';
import { passwordForm, postForm, tokens, type OAuthProblem, type Tokens } from '../labs/integration/login.ts';
import { startOpenIDProvider, type OpenIDProvider } from '../labs/integration/openid-provider.ts';
import { remember } from '../labs/integration/secrets.ts';
import { replicaLogs } from '../labs/integration/servers.ts';
import { createSlapd, ldapProvider, service, suffix, type Slapd } from '../labs/integration/slapd.ts';
import { removeUser } from '../labs/integration/user-objects.ts';

interface Identity {
  readonly username: string;
  readonly uid?: string | undefined;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

/** Names that could be confused with others or truncated. */
const odd = [
  'grüße',
  'gru\u0308ße',
  'grÃ¼Ã\u00a0e',
  'рayments',
  'two  spaces',
  '100%25 %zz %41',
  'a,b;c="d"\\e',
  'with 😀 and 名',
  '\uFEFFmark',
  'zero\u200Bwidth',
  'Basic YWRtaW4=',
  'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl',
  'System:masters',
  'ѕystem:masters',
  'é'.repeat(126),
  'x'.repeat(253),
];
/** Look-alikes of names with rights. */
const twins = ['grüsse', 'Grüße', 'payments', 'two spaces', '100% %zz A', 'mark', 'zerowidth', 'sуstem:masters'];

const authenticated = 'system:authenticated';
const role = 'one-identity-nodes';
const password = 'one and the same 7720';
const clientSecret = 'odd clients keep 8813';
const secretName = 'one-identity';
const webhook = { client_id: 'one-identity-webhook', client_secret: 'asks about tokens 2204' };

const sorted = ({ username, uid = '', groups, extra = {} }: Identity): Required<Identity> => ({
  username,
  uid,
  groups: [...groups].toSorted(),
  extra,
});

const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
const reviewPath = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
const json = { 'content-type': 'application/json' };
function userInfoIn(response: HttpResponse): Identity {
  if (response.status > 299) throw new Error(`${response.status} ${response.text}`);
  return (response.json as { status: { userInfo: Identity } }).status.userInfo;
}

/** Returns the user in the audit event of the first replica for the request. */
async function auditedUser(response: HttpResponse): Promise<Identity> {
  const event = await eventually('the request is in the audit log', () => {
    const events: AuditEvent[] = readAudit(replicaLogs()[0] ?? '');
    const found = events.find(({ auditID }) => auditID === response.headers['audit-id']);
    if (found === undefined) throw new Error('not yet');
    return found;
  });
  return event.user;
}

const kapisNodes = `${nodesPath}?limit=1`;
const nodesStatus = async (url: string, options: Call): Promise<number> => (await call(url, options)).status;

/**
 * Compares the user of a token in whoami, a SelfSubjectReview, audit events and access reviews. `isBound` states
 * whether the user's name or a group has the right to list nodes.
 */
async function expectOneIdentity(token: string, expected: Partial<Identity>, isBound: boolean): Promise<void> {
  const reviewed = await call(`${gateway()}${reviewPath}`, {
    method: 'POST',
    token,
    headers: json,
    body: JSON.stringify(review),
  });
  const whoami = await call(`${gateway()}/kapis/iam.platform.io/v1alpha2/whoami`, { token });
  const identity = sorted(userInfoIn(reviewed));
  expect(identity).toMatchObject(expected);
  expect(sorted(userInfoIn(whoami))).toEqual(identity);
  for (const response of [reviewed, whoami]) expect(sorted(await auditedUser(response))).toEqual(identity);
  for (const path of [kapisNodes, '/api/v1/nodes?limit=1', '/kapis/resources.platform.io/v1alpha3/nodes?limit=1'])
    for (const base of [gateway(), secureGateway()])
      expect(await nodesStatus(`${base}${path}`, { token })).toBe(isBound ? 200 : 403);
}

/** Calls `expectOneIdentity`, and compares the user with the Session and the introspection of the access token. */
async function expectOneOwnIdentity(token: string, expected: Partial<Identity>, isBound: boolean): Promise<void> {
  await expectOneIdentity(token, expected, isBound);
  const { sid, sub, username, groups } = readJWT(token).claims as Record<string, string> & { groups: string[] };
  const { spec } = await get(`${sessionsPath(release.namespace)}/${sid}`);
  expect(spec).toMatchObject({ userName: username, userUID: sub });
  const own = { username, uid: sub, groups: groups.toSorted() };
  expect({ ...own, groups: [...own.groups, authenticated].toSorted() }).toMatchObject(expected);
  const introspected = await postFormTo('/oauth/introspect', { token, ...webhook });
  expect(introspected).toMatchObject({ active: true, username, sub });
  expect((introspected['groups'] as string[]).toSorted()).toEqual(own.groups);
  const { client_id: id, client_secret: secret } = webhook;
  const tokenReview = await call(`${gateway()}/oauth/authenticate`, {
    method: 'POST',
    headers: {
      ...json,
      authorization: `Basic ${Buffer.from(`${id}:${encodeURIComponent(secret)}`).toString('base64')}`,
    },
    body: JSON.stringify({ apiVersion: review.apiVersion, kind: 'TokenReview', spec: { token } }),
  });
  const { user } = (tokenReview.json as { status: { user: Identity } }).status;
  expect({ ...user, groups: [...user.groups].toSorted() }).toEqual(own);
}

async function postFormTo(path: string, form: Readonly<Record<string, string>>): Promise<Record<string, unknown>> {
  const response = await call(`${gateway()}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(form).toString(),
  });
  return response.json as Record<string, unknown>;
}

const encoded = (attribute: string, value: string): string => `${attribute}:: ${Buffer.from(value).toString('base64')}`;
const person = (uid: string): string =>
  [
    encoded('dn', `uid=${uid},ou=people,${suffix}`),
    'objectClass: inetOrgPerson',
    encoded('uid', uid),
    'cn: a person',
    'sn: person',
    `userPassword: ${password}`,
    '',
  ].join('\n');
const group = (name: string, uid: string): string =>
  [
    encoded('dn', `cn=${name.replaceAll(/[,;="\\+<>]/g, '\\$&')},ou=groups,${suffix}`),
    'objectClass: groupOfNames',
    encoded('cn', name),
    encoded('member', `uid=${uid},ou=people,${suffix}`),
    '',
  ].join('\n');
const unit = (name: string): string => `dn: ou=${name},${suffix}\nobjectClass: organizationalUnit\nou: ${name}\n`;

/** Names that LDAP compares as different (RFC 4518), and that Kubernetes does not reserve. */
const inDirectory = ['grüße', 'рayments', '100%25 %zz %41', 'with 😀 and 名', 'ѕystem:masters'];
const inToken = odd.filter((name) => name !== 'System:masters' && name.trim() === name && name.length < 240);

let restore = (): Promise<void> => Promise.resolve();
let slapd: Slapd;
let openid: OpenIDProvider;

beforeAll(async () => {
  remember(password, clientSecret, webhook.client_secret, service.password);
  const { issuer } = (await call(`${gateway()}/.well-known/openid-configuration`)).json as { issuer: string };
  [slapd, openid] = await Promise.all([
    createSlapd(
      [
        unit('people'),
        unit('groups'),
        person('Jürgen Müller'),
        person('mallory'),
        ...inDirectory.map((name) => group(name, 'Jürgen Müller')),
        group('System:masters', 'mallory'),
      ].join('\n'),
    ),
    startOpenIDProvider([`${issuer}/oauth/callback/sso`]),
  ]);
  await slapd.start();
  openid.people.set('zoe', { preferred_username: 'Zoë Ångström', groups: inToken });
  openid.people.set('spaces', { preferred_username: 'spaces', groups: ['trailing\u00a0'] });
  openid.people.set('mark', { preferred_username: 'mark', groups: ['\uFEFFmark'] });
  openid.people.set('control', { preferred_username: 'control', groups: ['a\u0085b'] });
  openid.people.set('system', { preferred_username: 'system', groups: ['SYSTEM:masters'] });
  await create(`${releasePath}/secrets`, {
    metadata: { name: secretName },
    stringData: { bind: service.password, client: openid.clientSecret },
  });
  const passwordHash = await nativeHashFunctions.hash(password, 'bcrypt:4');
  restore = await configure(({ authentication }) => {
    authentication.users.push(
      { username: 'odd', passwordHash, groups: odd },
      { username: 'twin', passwordHash, groups: twins },
      { username: 'n'.repeat(253), passwordHash },
    );
    authentication.clients.push(
      { name: 'Odd.Client_1', secret: clientSecret, grantTypes: ['client_credentials'], groups: ['gru\u0308ße'] },
      { name: 'odd-client-1', secret: clientSecret, grantTypes: ['client_credentials'], groups: ['Grüße'] },
      { name: webhook.client_id, secret: webhook.client_secret, grantTypes: [], introspection: true },
    );
    authentication['identityProviders'] = [
      ldapProvider(slapd, { name: secretName, key: 'bind' }),
      {
        name: 'sso',
        type: 'OIDC',
        displayName: 'Single Sign-On',
        mapping: 'auto',
        oidc: {
          issuer: openid.issuer,
          clientID: 'platform',
          clientSecretRef: { name: secretName, key: 'client' },
          caCertificate: openid.caCertificate,
          scopes: ['openid', 'profile', 'groups'],
          claims: { groups: 'groups' },
        },
      },
    ];
  });
  await createServiceAccount('one-identity');
  await createClusterRole(role, [
    { apiGroups: [''], resources: ['nodes'], verbs: ['list'] },
    { apiGroups: ['resources.platform.io'], resources: ['nodes'], verbs: ['list'] },
  ]);
  await bind(
    role,
    role,
    ...odd.map((name) => ({ kind: 'Group', name }) as const),
    ...odd.map((name) => ({ kind: 'User', name: `user ${name}` }) as const),
    { kind: 'User', name: 'n'.repeat(253) },
    { kind: 'Group', name: 'corp:grüße' },
    { kind: 'Group', name: 'sso:gru\u0308ße' },
    { kind: 'ServiceAccount', name: 'one-identity', namespace: 'default' },
  );
});
afterAll(async () => {
  await restore();
  await Promise.all([slapd.stop(), openid.stop()]);
  await unbind(role);
  await removeClusterRole(role);
  await removeServiceAccount('one-identity');
  await remove(`${releasePath}/secrets/${secretName}`);
  for (const name of ['jurgen-muller', 'zoe-angstrom']) await removeUser(name);
});

const withAuthenticated = (...groups: string[]): string[] => [...groups, authenticated].toSorted();

describe('an access token identifies the same user in whoami, the audit log and kube-apiserver', () => {
  test('an access token with unusual groups identifies the same user in whoami, the audit log and kube-apiserver', async () => {
    const { access_token: token } = await tokens(passwordForm('odd', password));
    const groups = withAuthenticated(...odd);
    await expectOneOwnIdentity(token, { username: 'odd', groups }, true);
  });

  test('an access token with groups that resemble groups with rights identifies the same user in whoami, the audit log and kube-apiserver', async () => {
    const { access_token: token } = await tokens(passwordForm('twin', password));
    await expectOneOwnIdentity(token, { username: 'twin', groups: withAuthenticated(...twins) }, false);
  });

  test('an access token with a name of 253 characters identifies the same user in whoami, the audit log and kube-apiserver', async () => {
    const username = 'n'.repeat(253);
    const { access_token: token } = await tokens(passwordForm(username, password));
    await expectOneOwnIdentity(token, { username, groups: [authenticated] }, true);
  });

  test.each([
    ['Odd.Client_1', 'gru\u0308ße', true],
    ['odd-client-1', 'Grüße', false],
  ])(
    'an access token of the client %s identifies the same user in whoami, the audit log and kube-apiserver',
    async (name, own, isBound) => {
      const form = { grant_type: 'client_credentials', client_id: name, client_secret: clientSecret };
      const { access_token: token } = await tokens(form);
      const expected = { username: `platform:client:${name}`, groups: withAuthenticated(own) };
      await expectOneOwnIdentity(token, expected, isBound);
    },
  );
});

test('a ServiceAccount token identifies the same user in whoami, the audit log and kube-apiserver', async () => {
  const token = await serviceAccountToken('one-identity');
  const { server, authority } = kubeAPIServer();
  const options = { method: 'POST', token, headers: json, body: JSON.stringify(review), authority };
  const direct = sorted(userInfoIn(await call(`${server}${reviewPath}`, options)));
  expect(Object.keys(direct.extra ?? {})).not.toEqual([]);
  await expectOneIdentity(token, direct, true);
});

describe('an LDAP login', () => {
  test('a token from an LDAP login identifies the same user in whoami, the audit log and kube-apiserver', async () => {
    const response = await eventually('the directory responds', async () => {
      const given = await postForm(passwordForm('Jürgen Müller', password));
      expect(given.status).toBe(200);
      return given.json as Tokens;
    });
    const groups = withAuthenticated(...inDirectory.map((name) => `corp:${name}`));
    await expectOneOwnIdentity(response.access_token, { username: 'jurgen-muller', groups }, true);
  });

  test('an LDAP login with a group that Kubernetes reserves is rejected, whatever the case of the group', async () => {
    const response = await postForm(passwordForm('mallory', password));
    expect({ status: response.status, ...(response.json as OAuthProblem) }).toMatchObject({
      status: 400,
      error: 'invalid_grant',
      error_description: expect.stringContaining("begins with 'system:'") as unknown,
    });
  });
});

const authorize = (challenge: string): string =>
  `/oauth/authorize?${new URLSearchParams({
    response_type: 'code',
    client_id: 'platform-cli',
    redirect_uri: 'http://127.0.0.1:1/callback',
    code_challenge: challenge,
    code_challenge_method: 'S256',
  }).toString()}`;

async function logIn(
  subject: string,
  challenge: string,
): Promise<{ readonly browser: Browser<HttpResponse>; readonly page: HttpResponse }> {
  const browser = new Browser<HttpResponse>(async (path, { method = 'GET', headers = {}, body }) => {
    const given = headers as Record<string, string>;
    return await call(`${secureGateway()}${path}`, {
      method,
      headers: given,
      ...(body === undefined ? {} : { body }),
    });
  });
  const { form_token = '', next = '' } = formIn((await browser.open(authorize(challenge))).text).fields;
  const left = await eventually('the provider is available', async () => {
    const response = await browser.send('/oauth/login/sso', { form_token, next });
    expect(response.status).toBe(200);
    return response;
  });
  const query = await openid.login(String(left.headers['refresh']).replace('0; url=', ''), subject);
  return { browser, page: await browser.open(`/oauth/callback/sso?${query.toString()}`) };
}

describe('a login at an OpenID provider', () => {
  test('a login at an OpenID provider identifies the same user in whoami, the audit log and kube-apiserver', async () => {
    const verifier = randomUUID() + randomUUID();
    const challenge = createHash('sha256').update(verifier).digest('base64url');
    const { browser, page } = await logIn('zoe', challenge);
    expect(page.text).toContain('name="decision"');
    const { headers } = await browser.submit(page, { decision: 'allow' });
    const { access_token: token } = await tokens({
      grant_type: 'authorization_code',
      client_id: 'platform-cli',
      redirect_uri: 'http://127.0.0.1:1/callback',
      code: new URL(headers.location ?? '').searchParams.get('code') ?? '',
      code_verifier: verifier,
    });
    const groups = withAuthenticated(...inToken.map((name) => `sso:${name}`));
    await expectOneOwnIdentity(token, { username: 'zoe-angstrom', groups }, true);
  });

  test.each([
    ['spaces', 'a group name is invalid'],
    ['mark', 'a group name is invalid'],
    ['control', 'a group name is invalid'],
    ['system', 'a name begins with &quot;system:&quot;'],
  ])(
    'a login at an OpenID provider as "%s" is rejected, since Kubernetes does not accept a name: %s',
    async (subject, reason) => {
      const { page } = await logIn(subject, 'a'.repeat(43));
      expect(page.status).toBe(403);
      expect(page.text).toContain(reason);
    },
  );
});

/** Returns a header value of the text in UTF-8. */
const bytes = (text: string): string => Buffer.from(text).toString('latin1');

describe('the front proxy', () => {
  const certificate = aggregatorCertificate;

  /** Returns the identities that kube-apiserver and this server read from the same headers. */
  async function send(
    headers: NonNullable<Call['headers']>,
  ): Promise<{ readonly kube: HttpResponse; readonly own: HttpResponse }> {
    const { server, authority } = kubeAPIServer();
    // Given a string, Node would encode the header as UTF-8 a second time.
    const body = Buffer.from(JSON.stringify(review));
    const options = { method: 'POST', body, authority, certificate: certificate(), headers: { ...json, ...headers } };
    return {
      kube: await call(`${server}${reviewPath}`, options),
      own: await call(`${aggregated()}${apisPath}/nodes?limit=1`, { certificate: certificate(), headers }),
    };
  }

  test.each(odd.map((name, at) => [at, name]))(
    'the server and kube-apiserver read the same identity from the headers of the front proxy: name %d',
    async (_, name) => {
      const user = `user ${String(name)}`;
      const { kube, own } = await send({
        'x-remote-user': bytes(user),
        'x-remote-uid': bytes(`uid ${String(name)}`),
        'x-remote-group': [bytes(`one ${String(name)}`), bytes(`two ${String(name)}`), ''],
        [`x-remote-extra-${encodeURIComponent(`Key ${String(name)}`)}`]: [bytes(String(name)), 'b'],
        'x-remote-extra-50%': 'malformed',
        'x-remote-extra-password': 'of nobody',
      });
      const identity = sorted(userInfoIn(kube));
      expect(identity.username).toBe(user);
      expect(sorted(await auditedUser(own))).toEqual(identity);
      expect(own.status).toBe(200);
    },
  );

  test.each(twins)('the front proxy gives no rights to the look-alike name %s', async (name) => {
    const { own } = await send({ 'x-remote-user': bytes(`user ${name}`), 'x-remote-group': bytes(name) });
    expect(own.status).toBe(403);
  });

  test('a front proxy request with a name that is not valid UTF-8 gets 400, although kube-apiserver replaces the invalid byte', async () => {
    const { kube, own } = await send({ 'x-remote-user': 'sec-\xe9' });
    expect(userInfoIn(kube).username).toBe('sec-\uFFFD');
    expect({ status: own.status, text: own.text }).toEqual({
      status: 400,
      text: expect.stringContaining('the header x-remote-user is not valid UTF-8') as unknown,
    });
  });

  test('the server and kube-apiserver trust the same certificate chains of the front proxy', async () => {
    const { certificate: root, key } = proxyAuthority();
    const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
    const pkcs8 = createPrivateKey(key).export({ type: 'pkcs8', format: 'der' });
    const signing = await webcrypto.subtle.importKey('pkcs8', pkcs8, algorithm, true, ['sign']);
    const specs = fc.sample(chainSpecs, { numRuns: 60, seed: 20 }).map((spec) => ({
      ...spec,
      links: [...spec.links.slice(0, -1), goodAuthority],
      trusted: spec.links.map(() => false),
    }));
    const { server, authority } = kubeAPIServer();
    const headers = { 'x-remote-user': 'front proxy' };
    const verdicts: { readonly kube: boolean; readonly own: boolean; readonly isCA: boolean | undefined }[] = [];
    for (const spec of specs) {
      const { presented, key: leafKey } = await makeChain(spec, {
        root: { name: 'CN=front-proxy-ca', key: signing, certificate: root },
      });
      const shown = { certificate: presented.join(''), key: leafKey };
      const kube = await call(`${server}/api/v1/nodes`, { authority, certificate: shown, headers });
      const own = await call(`${aggregated()}${apisPath}/nodes`, { certificate: shown, headers });
      verdicts.push({ kube: kube.status !== 401, own: own.status !== 401, isCA: spec.links[0]?.isCA });
    }
    for (const { kube, own, isCA } of verdicts) expect(own).toBe(kube && isCA === false);
    expect(new Set(verdicts.map(({ own }) => own))).toEqual(new Set([true, false]));
  });
});
