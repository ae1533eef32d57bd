/** Errors name the problem, its location, and the accepted input. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { connect as connectTCP } from 'node:net';
import { parse } from 'yaml';
import { connect, open } from '../client/http1.ts';
import { checked, type AppResponse } from '../fakes/request.ts';
import { resource, serveResources } from '../labs/conformance/logging-lab.ts';
import { login, startLab, type Lab } from '../labs/conformance/lab.ts';

const ref = (name: string): object => ({ $ref: `#/components/schemas/${name}` });
const kindOf = (kind: string): object => ({
  'x-kubernetes-group-version-kind': [{ group: '', version: 'v1', kind }],
});
/** The schema of a node in the form of kube-apiserver, with few fields. */
const coreSchemas = {
  Node: {
    type: 'object',
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { allOf: [ref('ObjectMeta')], default: {} },
      spec: { allOf: [ref('NodeSpec')], default: {} },
      status: { allOf: [ref('NodeStatus')], default: {} },
    },
    ...kindOf('Node'),
  },
  ObjectMeta: {
    type: 'object',
    properties: {
      name: { type: 'string' },
      namespace: { type: 'string' },
      labels: { type: 'object', additionalProperties: { type: 'string' } },
    },
  },
  NodeSpec: {
    type: 'object',
    properties: { unschedulable: { type: 'boolean' }, raw: { type: 'object' }, self: ref('NodeSpec') },
  },
  NodeStatus: {
    type: 'object',
    properties: {
      capacity: { type: 'object', additionalProperties: { oneOf: [{ type: 'string' }, { type: 'number' }] } },
      conditions: { type: 'array', items: { allOf: [ref('NodeCondition')], default: {} } },
    },
  },
  NodeCondition: { type: 'object', properties: { type: { type: 'string' } } },
};

const userSchemas = {
  User: {
    type: 'object',
    properties: { spec: { type: 'object', properties: { email: { type: 'string' } } } },
    'x-kubernetes-group-version-kind': [{ group: 'iam.platform.io', version: 'v1alpha2', kind: 'User' }],
  },
};

let lab: Lab;
let token: string;
beforeAll(async () => {
  lab = await startLab({
    prepare: (cluster) => {
      serveResources(cluster, { apps: [resource('deployments', 'Deployment', 'Namespaced')] });
      cluster.put('/openapi/v3/api', { metadata: { name: 'v1' }, components: { schemas: coreSchemas } });
      cluster.put('/openapi/v3/apis/iam.platform.io', {
        metadata: { name: 'v1alpha2' },
        components: { schemas: userSchemas },
      });
    },
  });
  token = String((await lab.token(login)).json()['access_token']);
});
afterAll(() => lab.stop());

/** Sends a request with the token of alice. */
const call = (method: string, path: string): Promise<AppResponse> =>
  lab.gateway(path, { method, headers: { authorization: `Bearer ${token}` } });

const resources = '/kapis/resources.platform.io/v1alpha3';
const nodes = `${resources}/nodes`;
const issuer = 'POST /oauth/token of this server issues access tokens';
const usage = `send "Authorization: Bearer <access token>"; ${issuer}`;
const noError = 'Bearer realm="platform"';
const withError = `${noError}, error="invalid_token"`;
const because = (problem: string): string => `${withError}, error_description="${problem}"`;
const malformed =
  'the token in the Authorization header is malformed; letters, digits and -._~+/ are allowed, with = at the end';

function expectUnauthorized(response: AppResponse, message: string, challenge: string): void {
  expect(response.json()).toMatchObject({ reason: 'Unauthorized', code: 401, message });
  expect(response.status).toBe(401);
  expect(response.headers['www-authenticate']).toBe(challenge);
}

describe('a 401 error', () => {
  test.each([nodes, '/metrics', '/nowhere'])(
    'the 401 error for a request without credentials explains how to send and get a token: %s',
    async (path) => {
      expectUnauthorized(await lab.gateway(path), `the request has no credentials: ${usage}`, noError);
    },
  );

  test.each([
    ['Basic YWxpY2U6c2VjcmV0', 'the scheme of the Authorization header is not supported', noError],
    ['secret-token', 'the Authorization header has no scheme', noError],
    ['Bearer', 'the Authorization header has no token after "Bearer"', noError],
    ['Bearer secret token', malformed, because(malformed)],
    ['Bearer "secret"', malformed, because(malformed)],
  ])(
    'the 401 error for the Authorization header %j names the problem and does not quote the header',
    async (authorization, problem, challenge) => {
      for (const path of [nodes, '/api/v1/nodes']) {
        const response = await lab.gateway(path, { headers: { authorization } });
        const { message } = response.json();
        expect(String(message).startsWith(problem)).toBe(true);
        expect(message).toMatch(/: send "Authorization: Bearer <access token>"/);
        expectUnauthorized(response, String(message), challenge);
        expect(response.text).not.toMatch(/YWxp|secret/);
      }
    },
  );

  test.each(['http', 'https'] as const)(
    'the 401 error for two Authorization headers names the problem, even if both contain the same valid token: %s',
    async (way) => {
      for (const first of [`Bearer ${token}`, 'Basic x']) {
        const headers: Record<string, string[]> = { authorization: [first, `Bearer ${token}`] };
        const response = await checked(lab.open(way, nodes, { headers }));
        const problem = 'the request has more than one Authorization header';
        expectUnauthorized(response, `${problem}: ${usage}`, because(problem));
        const userinfo = await checked(lab.open(way, '/oauth/userinfo', { headers }));
        expect(userinfo.status).toBe(401);
        expect(userinfo.json()['error_description']).toContain(problem);
      }
    },
  );

  test('the 401 error for every well-formed token that the server did not sign has the same message', async () => {
    const parts = token.split('.');
    const foreign = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from('{"iss":"x"}').toString('base64url')}.x`;
    for (const bad of [`${parts[0]}.${parts[1]}.AAAA`, foreign, 'unknown', 'AA==', 'x'.repeat(20_000)]) {
      const response = await lab.gateway(nodes, { headers: { authorization: `Bearer ${bad}` } });
      expectUnauthorized(response, `the access token is not valid; ${issuer}`, withError);
    }
  });

  test('the 401 error for a revoked token states that the token was revoked', async () => {
    const revoked = String((await lab.token(login)).json()['access_token']);
    await lab.revoke(revoked);
    const response = await lab.gateway(nodes, { headers: { authorization: `Bearer ${revoked}` } });
    const problem = 'the token was revoked, or its user or client was removed';
    expectUnauthorized(response, `${problem}; ${issuer}`, because(problem));
  });

  test('the 401 error on the aggregated listener explains how to send a token', async () => {
    const target = { host: '127.0.0.1', port: lab.ports.aggregated, tls: { rejectUnauthorized: false } };
    const response = await checked(open(connect(target), { path: '/apis/resources.platform.io/v1alpha3/nodes' }));
    expectUnauthorized(response, `the request has no credentials: ${usage}`, noError);
  });
});

/** Returns all bytes that the server sends before it closes the connection. */
async function sendPlain(port: number, bytes: string): Promise<string> {
  const socket = connectTCP(port, '127.0.0.1');
  socket.write(bytes);
  const chunks = await socket.toArray().catch(() => []);
  return Buffer.concat(chunks as Buffer[]).toString();
}

describe('an error in YAML', () => {
  const yaml = 'application/yaml';
  const requests: readonly [string, string, string, string][] = [
    ['403', 'GET', '/nowhere', 'wrong'],
    ['400', 'GET', `${nodes}?limit=-1&${encodeURIComponent('a: "b"\n')}=`, ''],
    ['404', 'GET', `${nodes}/no-such`, ''],
    ['405', 'POST', nodes, ''],
  ];

  test.each(requests)('an error in YAML has the same values as in JSON: %s', async (_, method, path, wrong) => {
    const authorization = `Bearer ${wrong || token}`;
    for (const way of ['gateway', 'secureGateway', 'aggregated'] as const) {
      const expected = await lab[way](path, { method, headers: { authorization } });
      const response = await lab[way](path, { method, headers: { authorization, accept: yaml } });
      expect(response.headers['content-type']).toBe(yaml);
      expect(response.headers['content-length']).toBe(String(Buffer.byteLength(response.text)));
      expect(response.status).toBe(expected.status);
      expect(parse(response.text)).toEqual(expected.json());
    }
  });

  test.each([
    [yaml, yaml],
    ['Application/YAML', yaml],
    ['application/yaml;q=0.9, application/json;q=0.5', yaml],
    ['application/yaml, */*;q=0.1', yaml],
    ['text/html, application/yaml', yaml],
    ['application/json, application/yaml', 'application/json'],
    ['*/*, application/yaml;q=0.9', 'application/json'],
    ['application/yaml;q=0', 'application/json'],
    ['text/yaml', 'application/json'],
    ['application/*', 'application/json'],
  ])('an error in YAML is returned only if Accept prefers YAML: %s', async (accept, type) => {
    expect((await lab.gateway('/kapis/version/x', { headers: { accept } })).headers['content-type']).toBe(type);
  });

  test('an error response to HEAD has no body, even if Accept prefers YAML', async () => {
    const { status, headers, text } = await lab.gateway(nodes, { method: 'HEAD', headers: { accept: yaml } });
    expect([status, headers['content-type'], text]).toEqual([401, yaml, '']);
  });

  test('the OAuth endpoints return errors as JSON even if the request prefers YAML', async () => {
    const response = await lab.gateway('/oauth/token', { method: 'POST', headers: { accept: yaml } });
    expect(response.headers['content-type']).toBe('application/json');
    expect(response.json()).toMatchObject({ error: 'invalid_request' });
  });
});

describe('plain HTTP', () => {
  test.each([
    ['https', 'GET / HTTP/1.1\r\nHost: platform.example\r\n\r\n'],
    ['https', 'POST /oauth/token HTTP/1.1\r\nHost: platform.example\r\nContent-Length: 3\r\n\r\na=b'],
    ['aggregated', 'HEAD /apis HTTP/1.0\r\n\r\n'],
  ] as const)(
    'a plain HTTP request to the TLS port of the %s listener gets 400 with the advice to use https: %j',
    async (listener, bytes) => {
      const [head = '', body = ''] = (await sendPlain(lab.ports[listener], bytes)).split('\r\n\r\n');
      expect(head).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
      expect(head).toMatch(/\r\nConnection: close/);
      expect(JSON.parse(body)).toMatchObject({
        reason: 'BadRequest',
        code: 400,
        message: 'Client sent an HTTP request to an HTTPS server: use https://',
      });
    },
  );

  test.each(['authorize', 'login', 'device', 'account', 'logout', 'callback/sso'])(
    'a plain HTTP request for the page /oauth/%s returns neither a form nor a cookie',
    async (page) => {
      const form = { 'content-type': 'application/x-www-form-urlencoded' };
      const responses = [
        await lab.gateway(`/oauth/${page}`),
        await lab.gateway(`/oauth/${page}`, { method: 'POST', headers: form, body: 'username=alice&password=x' }),
      ];
      for (const { status, headers, text } of responses) {
        expect([404, 405]).toContain(status);
        expect(headers['set-cookie']).toBeUndefined();
        expect(text).not.toContain('<form');
      }
      expect(responses[0]?.status).toBe(404);
    },
  );

  test('the TLS port returns no HTTP response to bytes that are neither TLS nor HTTP', async () => {
    for (const bytes of ['SSH-2.0-x\r\n', '\0\0\0\0\0\0', '\x16\x03\x01\0\x02ab'])
      expect(await sendPlain(lab.ports.https, bytes)).not.toContain('HTTP');
  });
});

/** Returns the messages of the causes by field. */
async function causesOf(query: string): Promise<Record<string, string>> {
  const response = await call('GET', `${nodes}?${query}`);
  const { reason, code, details, message } = response.json() as {
    readonly reason: string;
    readonly code: number;
    readonly message: string;
    readonly details: { readonly causes: readonly { readonly field: string; readonly message: string }[] };
  };
  expect({ reason, code }).toEqual({ reason: 'BadRequest', code: 400 });
  expect(message).toBe(details.causes.map((cause) => `${cause.field}: ${cause.message}`).join('; '));
  return Object.fromEntries(details.causes.map((cause) => [cause.field, cause.message]));
}

describe('a 400 error below /kapis/resources', () => {
  test('the 400 error below /kapis/resources lists all problems of a query in details.causes', async () => {
    const query =
      'lmit=1&page=0&sortBy=age&fields=a[0]&fieldSelector=x&labelSelector=a==b==c&resourceVersion=new&limit=1&limit=2';
    expect(await causesOf(query)).toEqual({
      lmit: 'unknown parameter; did you mean limit?',
      page: expect.stringMatching(/^expected .*got "0"$/),
      sortBy: expect.stringMatching(/^expected .*got "age"$/),
      fields: expect.stringContaining('"a[0]"'),
      fieldSelector: expect.stringContaining('path=value'),
      labelSelector: expect.stringContaining("found '=='"),
      resourceVersion: 'invalid resource version: "new"',
      limit: 'is given more than once',
    });
  });

  test('the 400 error below /kapis/resources names six known parameters if none is similar to the unknown one', async () => {
    expect(await causesOf('colour=red')).toEqual({
      colour: 'unknown parameter; known parameters include page, limit, sortBy, ascending, name, names',
    });
  });

  test('the 400 error below /kapis/resources for resourceVersionMatch=Exact names the parameter and the alternatives', async () => {
    expect(await causesOf('resourceVersion=1&resourceVersionMatch=Exact')).toEqual({
      resourceVersionMatch: 'Exact is not supported on /kapis; use NotOlderThan, or use /apis',
    });
  });
});

describe('a path or method that is not served', () => {
  test.each([
    ['POST', `${resources}/nodes`, '/api/v1/nodes'],
    ['DELETE', `${resources}/nodes`, '/api/v1/nodes'],
    ['PUT', `${resources}/nodes/n1`, '/api/v1/nodes/n1'],
    ['PATCH', `${resources}/nodes/no-such`, '/api/v1/nodes/no-such'],
    ['POST', `${resources}/nodes/n1`, '/api/v1/nodes'],
    ['PUT', `${resources}/nodes`, '/api/v1/nodes/{name}'],
    ['POST', `${resources}/pods`, '/api/v1/namespaces/{namespace}/pods'],
    ['DELETE', `${resources}/pods`, '/api/v1/namespaces/{namespace}/pods'],
    ['DELETE', `${resources}/namespaces/shop/pods/web`, '/api/v1/namespaces/shop/pods/web'],
    ['PATCH', `${resources}/namespaces/shop/deployments.apps/web`, '/apis/apps/v1/namespaces/shop/deployments/web'],
    ['DELETE', `${resources}/namespaces/shop`, '/api/v1/namespaces/shop'],
  ])('the 405 error for %s %s names the path of kube-apiserver: %s', async (method, path, upstream) => {
    const response = await call(method, path);
    expect(response.headers['allow']).toBe('GET, HEAD');
    expect(response.json()).toMatchObject({
      reason: 'MethodNotAllowed',
      code: 405,
      message: `the server does not allow this method on the requested resource, only GET, HEAD; send ${method} to ${upstream}`,
    });
  });

  test.each([
    ['OPTIONS', `${resources}/nodes`, 'GET, HEAD'],
    ['POST', `${resources}/gizmos`, 'GET, HEAD'],
    ['POST', `${resources}/componenthealth`, 'GET, HEAD'],
    ['PUT', '/kapis/iam.platform.io/v1alpha2/users', 'GET, HEAD, POST'],
    ['GET', '/oauth/revoke', 'POST'],
  ])('the 405 error for %s %s lists only the allowed methods', async (method, path, allow) => {
    const response = await call(method, path);
    expect(response.status).toBe(405);
    expect(response.headers['allow']).toBe(allow);
    expect(response.text).not.toContain(' to /');
  });

  const notFound = 'the server could not find the requested resource';

  test.each([
    ['/kapis/iam.platform.io/v1alpha2/user', '; did you mean /kapis/iam.platform.io/v1alpha2/users?'],
    ['/kapis/iam.platform.io/v1alpha1/users/bob', '; did you mean /kapis/iam.platform.io/v1alpha2/users/bob?'],
    ['/kapis/resource.platform.io/v1alpha3/pods', '; did you mean /kapis/resources.platform.io/v1alpha3/pods?'],
    ['/LIVEZ', '; did you mean /livez?'],
    [
      '/kapis/iam.platform.io/v1alpha2/users/bob/nothing/x',
      '; the nearest path is /kapis/iam.platform.io/v1alpha2/users/bob',
    ],
    ['/kapis/iam.kubesphere.io/v1beta1/users', '; the nearest path is /kapis'],
    ['/kapis//nodes', '; the path has an empty segment'],
    [`${resources}/namespaces/shop/status`, '; subresources are served only at /api and /apis'],
    [`${resources}/watch/pods`, '; use watch=true, not /watch/'],
  ])('the 404 error for %s ends with the hint %j', async (path, hint) => {
    const response = await call('GET', path);
    expect(response.json()).toMatchObject({ reason: 'NotFound', code: 404, message: `${notFound}${hint}` });
  });

  test('the 404 error for a path that resembles no other has no hint', async () => {
    const response = await call('GET', '/nowhere');
    expect(response.json()).toMatchObject({ reason: 'NotFound', code: 404, message: notFound });
  });

  test('the error for a path or method that is not served suggests no path or method to anonymous callers', async () => {
    for (const [method, path] of [
      ['GET', '/kapis/iam.platform.io/v1alpha2/user'],
      ['POST', `${resources}/nodes`],
    ] as const) {
      const response = await lab.gateway(path, { method });
      expectUnauthorized(response, `the request has no credentials: ${usage}`, noError);
    }
  });
});

/** Returns the status and the Warning header. */
async function warningsFor(path: string, user = token): Promise<readonly [number, string | undefined]> {
  const { status, headers } = await lab.gateway(path, { headers: { authorization: `Bearer ${user}` } });
  return [status, headers['warning']];
}

describe('a Warning header', () => {
  test.each([
    [
      'fields=spec.unschedulabel',
      '299 - "fields: unknown field \\"spec.unschedulabel\\"; did you mean \\"spec.unschedulable\\"?"',
    ],
    ['fields=.nothing', '299 - "fields: unknown field \\"nothing\\""'],
    ['fields=spec.unschedulable.deeper.path', '299 - "fields: unknown field \\"spec.unschedulable.deeper\\""'],
    ['fields=status.capacity.cpu.x', '299 - "fields: unknown field \\"status.capacity.cpu.x\\""'],
    [
      'fields=status.conditions.0.typ',
      '299 - "fields: unknown field \\"status.conditions.0.typ\\"; did you mean \\"status.conditions.0.type\\"?"',
    ],
    [
      'fields=metadata.n\u00e4me',
      '299 - "fields: unknown field \\"metadata.n?me\\"; did you mean \\"metadata.name\\"?"',
    ],
    [
      'fieldSelector=spec.unschedulabel=true',
      '299 - "fieldSelector: unknown field \\"spec.unschedulabel\\"; did you mean \\"spec.unschedulable\\"?"',
    ],
    ['fieldSelector=status.conditions.type=Ready', '299 - "fieldSelector: unknown field \\"status.conditions.type\\""'],
    [
      'fields=a&fieldSelector=b=c',
      '299 - "fields: unknown field \\"a\\"", 299 - "fieldSelector: unknown field \\"b\\""',
    ],
  ])('a Warning header names a field that the schema does not have: %s', async (query, warning) => {
    for (const path of [nodes, `${nodes}/n1`].slice(0, query.includes('Selector') ? 1 : 2))
      expect(await warningsFor(`${path}?${encodeURI(query)}`)).toEqual([200, warning]);
  });

  test.each([
    'fields=spec.unschedulable,status.capacity.cpu,status.conditions.type,status.conditions.0.type',
    'fields=spec.self.self.raw.any.thing,metadata.labels.kubernetes\\.io/os,kind',
    'fieldSelector=status.conditions.0.type=Ready,metadata.name!=x',
    'labelSelector=nothing=x',
  ])('a Warning header is not sent for fields of the schema, even if no object has them: %s', async (query) => {
    expect(await warningsFor(`${nodes}?${query}`)).toEqual([200, undefined]);
  });

  test('a Warning header is not sent for a resource without a schema, or to callers without the right to read the resource', async () => {
    expect(await warningsFor(`${resources}/namespaces/shop/deployments?fields=nothing`)).toEqual([200, undefined]);
    expect(await warningsFor(`${nodes}?fields=nothing`, 'unknown')).toEqual([401, undefined]);
    lab.cluster.respond('/apis/authorization.k8s.io/v1/subjectaccessreviews', () => ({ status: { allowed: false } }));
    const { status, headers } = await call('GET', `${resources}/namespaces/bank/pods?fields=nothing`);
    expect([status, headers['warning']]).toEqual([403, undefined]);
  });

  test('a Warning header names unknown fields of users only to callers who are allowed to read users', async () => {
    lab.cluster.respond('/apis/authorization.k8s.io/v1/subjectaccessreviews', () => ({ status: { allowed: true } }));
    const users = '/kapis/iam.platform.io/v1alpha2/users';
    const warning = '299 - "fields: unknown field \\"spec.emial\\"; did you mean \\"spec.email\\"?"';
    for (const path of [users, `${users}/alice`]) {
      expect(await warningsFor(`${path}?fields=spec.emial`)).toEqual([200, warning]);
      expect(await warningsFor(`${path}?fields=spec.email`)).toEqual([200, undefined]);
      expect(await warningsFor(`${path}?fields=spec.emial`, 'unknown')).toEqual([401, undefined]);
    }
    lab.cluster.respond('/apis/authorization.k8s.io/v1/subjectaccessreviews', () => ({ status: { allowed: false } }));
    expect(await warningsFor(`${users}/bob?fields=spec.emial`)).toEqual([403, undefined]);
  });

  test('a Warning header has a maximum length and contains at most 8 warnings', async () => {
    lab.cluster.respond('/apis/authorization.k8s.io/v1/subjectaccessreviews', () => ({ status: { allowed: true } }));
    const paths = Array.from({ length: 60 }, (_, at) => `x${at}${'y'.repeat(400)}`);
    const [status, warning = ''] = await warningsFor(`${nodes}?fields=${paths.slice(0, 15).join(',')}`);
    expect(status).toBe(200);
    expect(warning.match(/299 - /g)).toHaveLength(8);
    expect(warning.length).toBeLessThan(8 * 320);
  });
});
