/**
 * Calls every route of every listener without a token, with a wrong token, as a user who must change the password, and
 * without rights. The `access` of the route alone determines the expected status.
 */
// evidence: route-access
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { needsIdentity, strictest, type Access } from '../../src/http/access.ts';
import * as chain from '../../src/http/chain.ts';
import type { Route } from '../../src/http/route.ts';
import { connect, open } from '../client/http1.ts';
import type { AuditEvent } from '../fakes/audit-event.ts';
import { checked } from '../fakes/request.ts';
import type { Lab } from '../labs/conformance/lab.ts';
import { serveResources } from '../labs/conformance/logging-lab.ts';
import { eventually } from '../labs/integration/eventually.ts';

/** Arguments of createHttpHandler, the gateway's first. */
const faces: Parameters<typeof chain.createHttpHandler>[] = [];
jest.unstable_mockModule('../../src/http/chain.ts', () => ({
  ...chain,
  createHttpHandler: (...given: Parameters<typeof chain.createHttpHandler>) => {
    faces.push(given);
    return chain.createHttpHandler(...given);
  },
}));
const { startLab, login, issuer, asClient } = await import('../labs/conformance/lab.ts');

const passwordHash = '$2b$04$PVYFFzvPKAZ5s.rDfx34..PB6WWeDAm4X5T0Fqize59IEWhtVe4tS';
const users = [
  { username: 'alice', passwordHash },
  { username: 'bob', passwordHash },
  { username: 'newcomer', passwordRef: { name: 'newcomer', key: 'passwordHash' }, passwordChangeRequired: true },
];
const clients = [{ name: asClient.client_id, secret: asClient.client_secret }];

type Caller = 'no token' | 'a wrong token' | 'a password-change token' | 'no rights';
const callers: readonly Caller[] = ['no token', 'a wrong token', 'a password-change token', 'no rights'];

const dir = mkdtempSync(join(tmpdir(), 'access-'));
const auditLog = join(dir, 'audit.log');
/** `Audit-Id` headers of the responses, except those of health checks. */
const auditIds = new Set<string>();

let lab: Lab;
const tokens = new Map<Caller, string>([['a wrong token', 'wrong']]);

beforeAll(async () => {
  lab = await startLab({
    sections: { authentication: { issuer, users, clients }, audit: { log: { path: auditLog } } },
    prepare: (cluster) => {
      serveResources(cluster);
      // Even unlimited rights do not help users who must change their password.
      cluster.respond('/apis/authorization.k8s.io/v1/subjectaccessreviews', ({ spec }) => ({
        status: { allowed: (spec as { user: string }).user !== 'bob' },
      }));
      cluster.put('/api/v1/namespaces/platform-system/secrets', {
        metadata: { name: 'newcomer' },
        data: { passwordHash: Buffer.from(passwordHash).toString('base64') },
      });
    },
  });
  for (const [caller, username] of [
    ['a password-change token', 'newcomer'],
    ['no rights', 'bob'],
  ] as const) {
    const response = await lab.token({ ...login, username });
    tokens.set(caller, String(response.json()['access_token']));
  }
});
afterAll(async () => {
  await lab.stop();
  rmSync(dir, { recursive: true });
});

type Listener = 'http' | 'https' | 'aggregated';
const listeners: readonly Listener[] = ['http', 'https', 'aggregated'];

const routesOf = (listener: Listener): readonly Route[] => faces[listener === 'aggregated' ? 1 : 0]?.[0] ?? [];

interface Sent {
  readonly query?: string;
  readonly accept?: string;
  readonly body?: string;
}

/** Sends a request to a listener and returns its status; `type` is the media type of the body. */
async function statusOf(
  listener: Listener,
  [method, path, type]: readonly [method: string, path: string, type?: string | undefined],
  caller: Caller,
  { query = '', accept, body = '{}' }: Sent = {},
): Promise<number> {
  const token = tokens.get(caller);
  const tls = listener === 'http' ? {} : { tls: { rejectUnauthorized: false } };
  const socket = connect({ host: '127.0.0.1', port: lab.ports[listener], ...tls });
  const headers = {
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(accept === undefined ? {} : { accept }),
    ...(type === undefined ? {} : { 'content-type': type, 'content-length': String(body.length) }),
  };
  const sent = { path: `${path}${query}`, method: method.toUpperCase(), headers };
  const request = { ...sent, body: type === undefined ? undefined : body };
  const response = await checked(open(socket, request));
  if (!/^\/(livez|readyz|healthz)/.test(path)) auditIds.add(String(response.headers['audit-id']));
  return response.status;
}

/**
 * Returns the media type of the request body. Only requests with client authentication have a body, because OAuth
 * endpoints check the media type before they authenticate the client.
 */
const bodyTypeOf = ({ access, body }: Route): string | undefined =>
  access.kind === 'client' ? Object.keys(body?.content ?? {})[0] : undefined;

interface Request {
  readonly path: string;
  /** Whether the request has the parameter for which the route requires authentication. */
  readonly isVerbose?: boolean;
  /** Whether the path names another user than the caller. */
  readonly isOther?: boolean;
}

/** Fills in the parameters of a path: another user, and resources that the cluster serves. */
const filled = (path: string): string =>
  path
    .replace('/users/:name', '/users/alice')
    .replace(/(?<=:namespace\/):resources/, 'pods')
    .replace(':resources', 'namespaces')
    .replaceAll(/[:*]\w+/g, 'x');

function requestsOf({ access, path }: Route): readonly Request[] {
  if (access.kind === 'optional')
    return [{ path: filled(path) }, { path: `${filled(path)}?${access.parameter}`, isVerbose: true }];
  if (access.kind === 'authenticated' && access.passwordChange === true && path.includes(':name'))
    return [{ path: path.replace(':name', '~') }, { path: filled(path), isOther: true }];
  return [{ path: filled(path) }];
}

const refused: readonly number[] = [400, 401, 403];

/** Reports whether the access level of the route permits this status for the caller, whatever the handler does. */
function isExpected(status: number, access: Access, caller: Caller, { isVerbose, isOther }: Request): boolean {
  const isServed = status !== 401 && status !== 403;
  const isUser = caller === 'a password-change token' || caller === 'no rights';
  switch (access.kind) {
    case 'anonymous':
      return isServed;
    case 'optional':
      return isVerbose === true && caller === 'no rights' ? status === 403 : isServed;
    case 'client':
      return refused.includes(status);
    case 'authenticated':
      if (!isUser) return status === 401;
      if (caller === 'no rights') {
        const isOwn = access.passwordChange === true && isOther !== true;
        if (access.rights === 'none' || isOwn) return isServed;
        return access.rights === 'authorize' ? status === 403 : status !== 401;
      }
      return access.passwordChange === true && isOther !== true ? isServed : status === 403;
    case 'authorized':
      break;
  }
  return status === (isUser ? 403 : 401);
}

describe.each(listeners)('at the %s listener', (listener) => {
  test.each(callers)(
    'each route returns the status that its access level requires for a caller with %s',
    async (caller) => {
      const routes = routesOf(listener);
      expect(routes.length).toBeGreaterThan(10);
      const unexpected: string[] = [];
      for (const route of routes)
        for (const request of requestsOf(route)) {
          const status = await statusOf(listener, [route.method, request.path, bodyTypeOf(route)], caller);
          if (!isExpected(status, route.access, caller, request))
            unexpected.push(`${route.method} ${request.path}: ${status}`);
        }
      expect(unexpected).toEqual([]);
    },
  );

  test.each<[what: string, sent: Sent & { readonly type?: string }]>([
    ['timeout', { query: '?timeout=bad' }],
    ['parameter', { query: '?limit=x&nonsense=1' }],
    ['parameter of a watch', { query: '?watch=1&nonsense=1' }],
    ['Accept header', { accept: 'image/png' }],
    ['Content-Type header', { type: 'text/xml', body: '{bad' }],
    ['body', { type: 'application/json', body: '{bad' }],
  ])(
    'a request with an invalid %s gets 401 without a token, and 403 without the required rights',
    async (_, { type, ...sent }) => {
      const unexpected: string[] = [];
      for (const { method, path, access } of routesOf(listener)) {
        if (!needsIdentity(access)) continue;
        const isReviewed = !('rights' in access) || !['none', 'handler'].includes(access.rights);
        for (const [caller, expected] of [
          ['no token', 401] as const,
          ...(isReviewed ? [['no rights', 403] as const] : []),
        ]) {
          const status = await statusOf(listener, [method, filled(path), type], caller, sent);
          if (status !== expected) unexpected.push(`${method} ${path} with ${caller}: ${status}`);
        }
      }
      expect(unexpected).toEqual([]);
    },
  );

  test('an invalid timeout is ignored by routes that declare no timeout parameter', async () => {
    expect(await statusOf(listener, ['get', '/healthz'], 'no token', { query: '?timeout=bad' })).toBe(200);
  });

  test('a request with an unsupported method gets 405 only if the caller has access to the most restricted route of the path', async () => {
    const unexpected: string[] = [];
    for (const [path, routes] of Map.groupBy(routesOf(listener), (route) => route.path)) {
      const access = strictest(routes.map((route) => route.access));
      for (const caller of ['no token', 'a password-change token'] as const) {
        const status = await statusOf(listener, ['propfind', filled(path)], caller);
        const isMet = needsIdentity(access) ? status === (caller === 'no token' ? 401 : 403) : status === 405;
        if (!isMet) unexpected.push(`${path} with ${caller}: ${status}`);
      }
    }
    expect(unexpected).toEqual([]);
  });
});

// evidence: every-request-audited
test('the audit log has an event for each request in this file, except health checks', async () => {
  expect(auditIds.size).toBeGreaterThan(1_000);
  await eventually('the last event is written', () => {
    const logged = new Set(
      readFileSync(auditLog, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => (JSON.parse(line) as AuditEvent).auditID),
    );
    expect([...auditIds].filter((id) => !logged.has(id))).toEqual([]);
  });
});

const linesOf = (routes: readonly Route[], kind: Access['kind']): readonly string[] =>
  [
    ...new Set(routes.filter(({ access }) => access.kind === kind).map(({ method, path }) => `${method} ${path}`)),
  ].toSorted();

const health = ['healthz', 'livez', 'readyz'].flatMap((path) => [`get /${path}`, `get /${path}/:check`]);

test('only the listed routes of the gateway accept anonymous requests or use OAuth client authentication', () => {
  const routes = routesOf('https');
  expect(linesOf(routes, 'anonymous')).toEqual([
    'get /.well-known/oauth-authorization-server',
    'get /.well-known/oauth-authorization-server/*path',
    'get /.well-known/openid-configuration',
    'get /.well-known/openid-configuration/*path',
    'get /docs',
    'get /docs/assets/:digest/:file',
    'get /docs/callback',
    'get /kapis/version',
    'get /oauth/.well-known/oauth-authorization-server',
    'get /oauth/.well-known/openid-configuration',
    'get /oauth/account',
    'get /oauth/authorize',
    'get /oauth/callback/:provider',
    'get /oauth/consent',
    'get /oauth/device',
    'get /oauth/keys',
    'get /oauth/login',
    'get /oauth/login/:provider',
    'get /oauth/logout',
    'get /oauth/logout/confirm',
    'get /swagger/platform.json',
    'get /swagger/platform.v3.json',
    'post /oauth/account',
    'post /oauth/authorize',
    'post /oauth/consent',
    'post /oauth/device',
    'post /oauth/login',
    'post /oauth/login/:provider',
    'post /oauth/logout',
    'post /oauth/logout/confirm',
  ]);
  expect(linesOf(routes, 'optional')).toEqual(health);
  expect(linesOf(routes, 'client')).toEqual([
    'get /oauth/userinfo',
    'post /oauth/authenticate',
    'post /oauth/device_authorization',
    'post /oauth/introspect',
    'post /oauth/revoke',
    'post /oauth/token',
    'post /oauth/userinfo',
  ]);
});

test('only the listed routes of the aggregated API server accept anonymous requests', () => {
  const routes = routesOf('aggregated');
  expect(linesOf(routes, 'anonymous')).toEqual(['get /version']);
  expect(linesOf(routes, 'optional')).toEqual(health);
  expect(linesOf(routes, 'client')).toEqual([]);
});

test.each<[Listener, string, number, number]>([
  ['https', '/', 401, 404],
  ['https', '/nothing', 401, 403],
  ['https', '/oauth', 404, 404],
  ['https', '/oauth/nothing', 404, 404],
  ['https', '/.well-known/nothing', 404, 404],
  ['https', '/livez/a/b', 404, 404],
  ['https', '/livez/a/b?verbose', 404, 403],
  ['https', '/docs/nothing', 404, 404],
  ['https', '/docs/assets/nothing', 404, 404],
  ['https', '/swagger/nothing', 401, 404],
  ['https', '/kapis/nothing', 401, 404],
  ['https', '/kapis/nothing/v1/things', 401, 404],
  ['https', '/version', 401, 503],
  ['aggregated', '/nothing', 401, 403],
  ['aggregated', '/oauth/token', 401, 403],
  ['aggregated', '/kapis/version', 401, 403],
  ['aggregated', '/docs', 401, 403],
  ['aggregated', '/swagger/platform.json', 401, 403],
  ['aggregated', '/version/x', 401, 403],
  ['aggregated', '/openapi', 401, 404],
  ['aggregated', '/openapi/nothing', 401, 404],
  ['aggregated', '/apis/nothing/v1/things', 401, 403],
  ['aggregated', '/api/v1/nodes', 401, 403],
])(
  'at the %s listener, a request for the unrouted path %s gets %d without a token and %d without rights',
  async (listener, path, anonymous, user) => {
    const statuses = await Promise.all(
      (['no token', 'no rights'] as const).map((caller) => statusOf(listener, ['get', path], caller)),
    );
    expect(statuses).toEqual([anonymous, user]);
  },
);
