/**
 * Authentication by tokens of this server, ServiceAccount tokens, the aggregator's certificate, and nothing else
 * (docs/security.md).
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  aggregatorCertificate,
  clientAuthority,
  proxyAuthority,
  strangeAuthority,
} from '../labs/integration/certificates.ts';
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
  type Status,
} from '../labs/integration/http.ts';
import {
  bind,
  createServiceAccount,
  removeServiceAccount,
  serviceAccountToken,
  unbind,
} from '../labs/integration/kube.ts';
import { kubectl, succeed } from '../labs/integration/kubectl.ts';
import { adminToken, login, passwordForm, postForm } from '../labs/integration/login.ts';
import { remember } from '../labs/integration/secrets.ts';
import { expectStatus } from '../labs/integration/status.ts';

/** URLs of the node list on every listener of both replicas. */
const everywhere = (): string[] =>
  ([0, 1] as const).flatMap((replica) => [
    `${gateway(replica)}${nodesPath}?limit=1`,
    `${secureGateway(replica)}${nodesPath}?limit=1`,
    `${aggregated(replica)}${apisPath}/nodes?limit=1`,
  ]);
const aggregatedNodes = (): string => `${aggregated()}${apisPath}/nodes?limit=1`;
const listeners = (): string[] => everywhere().slice(0, 3);

const statuses = (options: Call, urls = everywhere()): Promise<number[]> =>
  Promise.all(urls.map(async (url) => (await call(url, options)).status));
const all = (status: number, urls = everywhere()): number[] => urls.map(() => status);

const challenge = 'Bearer realm="platform"';
const badToken = `${challenge}, error="invalid_token"`;

function expectChallenge(response: HttpResponse, expected: string): void {
  expect(expectStatus(response, 401, 'Unauthorized').message).toContain('POST /oauth/token');
  expect(response.headers['www-authenticate']).toBe(expected);
}

/** Returns the user whom a Forbidden response names. */
async function refusedUser(url: string, options: Call): Promise<string> {
  const { message } = expectStatus(await call(url, options), 403, 'Forbidden');
  return /User "(.*?)" cannot/.exec(message)?.[1] ?? '';
}

describe('an access token', () => {
  test('an access token is accepted on every listener of every replica', async () => {
    expect(await statuses({ token: await adminToken() })).toEqual(all(200));
    const { access_token: token } = await login('alice');
    for (const url of everywhere()) expect(await refusedUser(url, { token })).toBe('alice');
  });

  test.each(['bearer', 'BEARER', 'BeArEr'])(
    'an access token is accepted with the scheme in upper, lower or mixed case: %s',
    async (scheme) => {
      expect(await statuses({ headers: { authorization: `${scheme} ${await adminToken()}` } })).toEqual(all(200));
    },
  );
});

describe('a request without valid credentials', () => {
  test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])(
    'a %s request without credentials gets 401 with a challenge',
    async (method) => {
      for (const url of everywhere()) expectChallenge(await call(url, { method }), challenge);
    },
  );

  test('HEAD and OPTIONS requests without credentials get 401', async () => {
    expect(await statuses({ method: 'HEAD' })).toEqual(all(401));
    expect(await statuses({ method: 'OPTIONS' })).toEqual(all(401));
  });

  test.each(['/', '/kapis', '/apis', '/api', '/api/v1/nodes', '/metrics', '/openapi/v2', '/version/x', '/nothing'])(
    'a request for %s without credentials gets 401, whether the path exists or not',
    async (path) => {
      for (const base of [gateway(), secureGateway(), aggregated()])
        expectChallenge(await call(`${base}${path}`), challenge);
    },
  );

  test.each([
    ['the scheme Basic', 'Basic YWRtaW46YWRtaW4='],
    ['a token without a scheme', 'abc'],
    ['only a scheme', 'Bearer'],
    ['nothing', ''],
    ['the scheme Negotiate', 'Negotiate abc'],
  ])('a request whose Authorization header contains %s gets 401 with a challenge', async (_, authorization) => {
    for (const url of listeners()) expectChallenge(await call(url, { headers: { authorization } }), challenge);
  });

  test.each([
    ['garbage', 'Bearer garbage'],
    ['text in the form of a JWT', 'Bearer a.b.c'],
    ['an unsigned JWT', 'Bearer eyJhbGciOiJub25lIn0.eyJpc3MiOiJ4In0.eA'],
    ['a long text', `Bearer ${'x'.repeat(30_000)}`],
    [
      'a JWT of 20,000 letters',
      `Bearer eyJhbGciOiJFUzI1NiJ9.${Buffer.from(`{"iss":"x","a":"${'y'.repeat(15_000)}"}`).toString('base64url')}.eA`,
    ],
  ])('a request with %s as the token gets 401 invalid_token', async (_, authorization) => {
    for (const url of listeners()) expectChallenge(await call(url, { headers: { authorization } }), badToken);
  });

  test.each(['Bearer a b', 'Bearer \xff\xfe'])(
    'a request with the malformed Authorization header %j gets 401 with a description of the problem',
    async (authorization) => {
      const problem =
        'the token in the Authorization header is malformed; letters, digits and -._~+/ are allowed, with = at the end';
      for (const url of listeners())
        expectChallenge(await call(url, { headers: { authorization } }), `${badToken}, error_description="${problem}"`);
    },
  );
});

describe('anonymous callers can read', () => {
  test.each(['/healthz', '/livez', '/readyz', '/readyz/configuration', '/livez/ping'])(
    'anonymous callers can read %s',
    async (path) => {
      for (const base of [gateway(), secureGateway(), aggregated()]) {
        const { status, text } = await call(`${base}${path}`);
        expect({ status, text }).toEqual({ status: 200, text: 'ok' });
      }
    },
  );

  test('only responses to authenticated requests contain the names of the health checks', async () => {
    for (const base of [gateway(), aggregated()]) {
      expect((await call(`${base}/readyz?verbose`)).text).toBe('ok');
      expect((await call(`${base}/readyz?verbose`, { token: 'garbage' })).text).toBe('ok');
      const response = await call(`${base}/readyz?verbose`, { token: (await login('alice')).access_token });
      expect(response.text).toContain('[+]configuration ok');
    }
  });

  test('anonymous callers can read the versions of the server and of Kubernetes', async () => {
    expect((await call(`${gateway()}/kapis/version`)).json).toHaveProperty('gitVersion');
    expect((await call(`${aggregated()}/version`)).json).toHaveProperty('gitVersion');
    expectChallenge(await call(`${gateway()}/version`), challenge);
  });
});

describe('a ServiceAccount token', () => {
  const names = ['identity-member', 'identity-nobody', 'identity-deleted'];
  beforeAll(async () => {
    for (const name of names) await createServiceAccount(name);
    await bind('identity-member', 'platform-node-reader', {
      kind: 'ServiceAccount',
      name: 'identity-member',
      namespace: 'default',
    });
  });
  afterAll(async () => {
    await unbind('identity-member');
    for (const name of names) await removeServiceAccount(name);
  });

  test('a ServiceAccount token created by kubectl is accepted', async () => {
    const token = (await succeed(kubectl, 'create', 'token', 'identity-member')).trim();
    expect(await statuses({ token })).toEqual(all(200));
  });

  test('a ServiceAccount token identifies its ServiceAccount by name', async () => {
    const token = await serviceAccountToken('identity-nobody');
    for (const url of everywhere())
      expect(await refusedUser(url, { token })).toBe('system:serviceaccount:default:identity-nobody');
  });

  test('a ServiceAccount token has the groups of the ServiceAccount', async () => {
    const token = await serviceAccountToken('identity-nobody');
    await bind('identity-groups', 'platform-node-reader', { kind: 'Group', name: 'system:serviceaccounts:default' });
    await eventually('the group is allowed to read', async () => expectAll(await statuses({ token }), 200));
    await unbind('identity-groups');
  });

  test('a ServiceAccount token with the issuer as audience is accepted', async () => {
    const token = await serviceAccountToken('identity-member', ['https://platform-apiserver.platform-system.svc']);
    expect(await statuses({ token })).toEqual(all(200));
  });

  test.each([['https://elsewhere.example.com'], ['platform'], ['https://platform-apiserver.platform-system.svc/']])(
    'a ServiceAccount token with %s as audience gets 401',
    async (audience) => {
      const token = await serviceAccountToken('identity-member', [audience]);
      for (const url of listeners()) expectChallenge(await call(url, { token }), badToken);
    },
  );

  test('a ServiceAccount token with another signature gets 401', async () => {
    const token = await serviceAccountToken('identity-member');
    const [header, claims, signature = ''] = token.split('.');
    const forged = [
      `${header}.${claims}.${signature.split('').toReversed().join('')}`,
      `${header}.${Buffer.from('{"iss":"https://kubernetes.default.svc","sub":"system:admin"}').toString('base64url')}.${signature}`,
    ];
    for (const bad of forged) for (const url of listeners()) expectChallenge(await call(url, { token: bad }), badToken);
  });

  test('a ServiceAccount token of a deleted ServiceAccount gets 401, even after a ServiceAccount with the same name is created', async () => {
    const token = await serviceAccountToken('identity-deleted');
    expect(await refusedUser(`${gateway()}${nodesPath}`, { token })).toContain('identity-deleted');
    await removeServiceAccount('identity-deleted');
    await createServiceAccount('identity-deleted');
    await eventually('the token is refused', async () => expectAll(await statuses({ token }), 401));
  });
});

/** Throws unless each status is the expected one, for use in `eventually`. */
function expectAll(found: readonly number[], status: number): void {
  if (found.some((one) => one !== status)) throw new Error(found.join(' '));
}

const masters = { 'x-remote-user': 'admin', 'x-remote-group': ['system:masters', 'platform:admins'] };

describe('X-Remote-* headers', () => {
  test('X-Remote-* headers are ignored without a client certificate', async () => {
    expect(await statuses({ headers: masters })).toEqual(all(401));
    const underscores = { x_remote_user: 'admin', x_remote_group: 'system:masters' };
    expect(await statuses({ headers: underscores })).toEqual(all(401));
  });

  test('X-Remote-* headers are ignored in a request with a token', async () => {
    const { access_token: token } = await login('alice');
    for (const url of everywhere()) expect(await refusedUser(url, { token, headers: masters })).toBe('alice');
  });

  test.each<[string, () => Promise<NonNullable<Call['certificate']>>]>([
    [
      'a client of kube-apiserver, even an administrator',
      () => clientAuthority().issue({ commonName: 'kubernetes-admin', organization: 'system:masters' }),
    ],
    [
      "a client of kube-apiserver with the aggregator's name",
      () => clientAuthority().issue({ commonName: 'front-proxy-client' }),
    ],
    ['another CA of the same name', async () => (await strangeAuthority()).issue({ commonName: 'front-proxy-client' })],
    ['the proxy CA for a name that is not allowed', () => proxyAuthority().issue({ commonName: 'somebody' })],
    [
      'the proxy CA for an allowed name as organization',
      () => proxyAuthority().issue({ commonName: 'somebody', organization: 'front-proxy-client' }),
    ],
    [
      'the proxy CA for a server',
      () => proxyAuthority().issue({ commonName: 'front-proxy-client', server: ['localhost'] }),
    ],
    ['the proxy CA for itself', async () => proxyAuthority()],
  ])('X-Remote-* headers are ignored with a certificate of %s', async (_, issue) => {
    const certificate = await issue();
    expect(await statuses({ headers: masters, certificate })).toEqual(all(401));
    // The certificate alone does not authenticate, and has no effect on a valid token.
    expect(await statuses({ certificate })).toEqual(all(401));
    const { access_token: token } = await login('alice');
    expect(await refusedUser(aggregatedNodes(), { token, certificate, headers: masters })).toBe('alice');
  });
});

describe("the aggregator's certificate", () => {
  test("a request with the aggregator's certificate is authenticated as the user and the groups in its headers", async () => {
    expect((await call(aggregatedNodes(), { certificate: aggregatorCertificate(), headers: masters })).status).toBe(
      200,
    );
    const stranger = { 'x-remote-user': 'a stranger', 'x-remote-group': 'strangers' };
    expect(await refusedUser(aggregatedNodes(), { certificate: aggregatorCertificate(), headers: stranger })).toBe(
      'a stranger',
    );
  });

  test("the identity from the aggregator's certificate takes precedence over a token", async () => {
    const headers = { 'x-remote-user': 'a stranger' };
    expect(
      await refusedUser(aggregatedNodes(), {
        certificate: aggregatorCertificate(),
        headers,
        token: await adminToken(),
      }),
    ).toBe('a stranger');
  });

  test("a request with the aggregator's certificate but no identity headers is authenticated only by a token", async () => {
    expectChallenge(await call(aggregatedNodes(), { certificate: aggregatorCertificate() }), challenge);
    const groups = { 'x-remote-group': 'system:masters' };
    expectChallenge(
      await call(aggregatedNodes(), { certificate: aggregatorCertificate(), headers: groups }),
      challenge,
    );
    expect(
      (await call(aggregatedNodes(), { certificate: aggregatorCertificate(), token: await adminToken() })).status,
    ).toBe(200);
  });

  test("the aggregator's certificate is ignored on the HTTPS listener of the gateway", async () => {
    expectChallenge(
      await call(`${secureGateway()}${nodesPath}`, { certificate: aggregatorCertificate(), headers: masters }),
      challenge,
    );
  });

  test("any certificate that the proxy CA signs for an allowed name is accepted as the aggregator's certificate", async () => {
    const another = await proxyAuthority().issue({ commonName: 'front-proxy-client' });
    expect((await call(aggregatedNodes(), { certificate: another, headers: masters })).status).toBe(200);
  });
});

describe('impersonation', () => {
  test('Impersonate-* headers are rejected on paths of this server', async () => {
    const { access_token: token } = await login('alice');
    const headers = { 'impersonate-user': 'admin', 'impersonate-group': 'system:masters' };
    for (const response of await Promise.all(everywhere().map((url) => call(url, { token, headers })))) {
      const { message } = expectStatus(response, 403, 'Forbidden');
      expect(message).toContain('User "alice" cannot impersonate');
    }
    for (const url of everywhere())
      expectStatus(await call(url, { token: await adminToken(), headers }), 403, 'Forbidden');
  });
});

describe('a token outside the Authorization header', () => {
  let token = '';
  beforeAll(async () => {
    token = await adminToken();
  });

  // evidence: bearer-in-query
  test('a token in the query gets 400, even if the Authorization header has a valid token', async () => {
    for (const url of everywhere()) {
      for (const options of [{}, { token }]) {
        const status: Status = expectStatus(await call(`${url}&access_token=${token}`, options), 400, 'BadRequest');
        expect(status.message).toContain('Authorization');
        expect(status.message).not.toContain(token);
      }
    }
  });

  test('a request to the token endpoint with an access_token in its form gets 400', async () => {
    remember(token);
    const response = await postForm({ ...passwordForm('alice'), access_token: token });
    expect({ status: response.status, ...(response.json as object) }).toMatchObject({
      status: 400,
      error: 'invalid_request',
    });
  });

  // evidence: bearer-in-cookie
  test.each(['token', 'access_token', 'Authorization', '__Secure-session'])(
    'a token in the cookie "%s" is ignored: the request gets 401',
    async (name) => {
      expect(await statuses({ headers: { cookie: `${name}=${token}` } })).toEqual(all(401));
      expect(await statuses({ headers: { cookie: `${name}=Bearer ${token}` } })).toEqual(all(401));
    },
  );

  test.each(['proxy-authorization', 'x-auth-token', 'x-access-token', 'sec-websocket-protocol'])(
    'a token in the header "%s" is ignored: the request gets 401',
    async (name) => {
      expect(await statuses({ headers: { [name]: `Bearer ${token}` } })).toEqual(all(401));
    },
  );

  test('a token in the request body is ignored: the request gets 401', async () => {
    const options = { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' } };
    expect(await statuses({ ...options, body: `access_token=${token}` })).toEqual(all(401));
  });
});
