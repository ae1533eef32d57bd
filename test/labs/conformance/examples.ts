/**
 * A session that uses every described operation of the platform with an in-memory cluster. Its requests and responses
 * are recorded in api/examples/platform.json, with fixed replacements for values that differ between runs.
 */
import { createHash } from 'node:crypto';
import { parse } from 'yaml';
import type { Example } from '../../../src/docs/openapi/examples.ts';
import type { AppResponse, AppRequest } from '../../fakes/request.ts';
import { Browser, formIn } from '../../fakes/browser.ts';
import { clientID, OpenIDServer } from '../../fakes/openid-server.ts';
import { asClient, asConsole, consoleCallback, issuer, login, startLab, type Lab } from './lab.ts';
import { line, resource, serveResources } from './logging-lab.ts';
import type { MemoryCluster } from '../../fakes/cluster.ts';

interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>;
}

type Request = (path: string, more?: AppRequest) => Promise<AppResponse>;
type Exchange = AppRequest & { readonly path: string; readonly response: AppResponse };

const resources = '/kapis/resources.platform.io/v1alpha3';
const iam = '/kapis/iam.platform.io/v1alpha2';
const asResourceServer = { client_id: 'resource-server', client_secret: 'of-the-resource-server' };
const formType = 'application/x-www-form-urlencoded';
const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWOEjXk';
const created = '2026-01-15T09:00:00Z';
const namespace = 'shop';
const pod = 'web-7d4b9c6f5-x2x8q';

function prepare(cluster: MemoryCluster): void {
  serveResources(cluster, {
    core: [resource('services', 'Service', 'Namespaced'), resource('nodes', 'Node', 'Cluster')],
    apps: ['Deployment', 'StatefulSet', 'DaemonSet'].map((kind) =>
      resource(`${kind.toLowerCase()}s`, kind, 'Namespaced'),
    ),
  });
  for (const name of ['n1', 'n2', 'n3']) cluster.delete('/api/v1/nodes', name);
  const put = (collection: string, kind: string, name: string, more: object = {}): void =>
    cluster.put(collection, {
      kind,
      apiVersion: collection.startsWith('/apis/apps') ? 'apps/v1' : 'v1',
      metadata: { name, creationTimestamp: created, ...(kind === 'Node' || kind === 'Namespace' ? {} : { namespace }) },
      ...more,
    });
  put('/api/v1/nodes', 'Node', 'worker-1', {
    spec: { podCIDR: '10.244.1.0/24' },
    status: {
      capacity: { cpu: '4', memory: '16Gi', pods: '110' },
      conditions: [
        { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' },
      ],
      addresses: [{ type: 'InternalIP', address: '192.0.2.11' }],
      nodeInfo: { kubeletVersion: 'v1.34.1', osImage: 'Debian GNU/Linux 12', architecture: 'amd64' },
    },
  });
  put('/api/v1/namespaces', 'Namespace', namespace, { status: { phase: 'Active' } });
  put('/api/v1/pods', 'Pod', pod, {
    spec: { nodeName: 'worker-1', containers: [{ name: 'web', image: 'registry.example/web:1.4' }] },
    status: { phase: 'Running', containerStatuses: [{ name: 'web', ready: true, restartCount: 0 }] },
  });
  cluster.put('/apis/apps/v1/deployments', {
    kind: 'Deployment',
    apiVersion: 'apps/v1',
    metadata: {
      name: 'platform-apiserver',
      namespace: 'platform-system',
      creationTimestamp: created,
      labels: { 'app.kubernetes.io/part-of': 'platform' },
    },
    spec: { replicas: 2, selector: { matchLabels: { app: 'platform-apiserver' } } },
    status: { replicas: 2, readyReplicas: 2 },
  });
  cluster.put('/api/v1/namespaces/platform-system/secrets', {
    metadata: { name: 'sso' },
    data: { secret: Buffer.from('the secret of the platform').toString('base64') },
  });
  cluster.podLogs.put(`${namespace}/${pod}/web`, line(1, 'GET /cart 200'), line(2, 'GET /checkout 500'));
}

/** Runs the session, and returns an example for each described operation by operationId. */
export async function runExamples(): Promise<Readonly<Record<string, Example>>> {
  const provider = new OpenIDServer();
  await provider.start();
  const lab = await startLab({ sections: sectionsOf(provider), prepare });
  try {
    const exchanges: Exchange[] = [];
    const request: Request = async (path, more = {}) => {
      const response = await (more.secure === true ? lab.secureGateway(path, more) : lab.gateway(path, more));
      exchanges.push({ ...more, path, response });
      return response;
    };
    const token = String((await lab.token(login)).json()['access_token']);
    const session = new Session(request, token);
    await readServer(session);
    await useAccounts(session, lab);
    await useOAuth(session, request);
    const description = JSON.parse((await lab.gateway('/swagger/platform.v3.json')).text) as Description;
    await session.callRemoved(description);
    // Revokes the other sessions of the user.
    await usePages(lab, request, provider);
    return examplesOf(description, exchanges);
  } finally {
    await lab.stop();
    provider.stop();
  }
}

const sectionsOf = ({ issuer: providerIssuer, caCertificate }: OpenIDServer): object => ({
  gateway: { externalURL: issuer },
  authentication: {
    issuer,
    users: [
      {
        username: 'alice',
        displayName: 'Alice',
        groups: ['readers'],
        passwordHash: '$2b$04$PVYFFzvPKAZ5s.rDfx34..PB6WWeDAm4X5T0Fqize59IEWhtVe4tS',
      },
    ],
    clients: [
      { name: asClient.client_id, secret: asClient.client_secret },
      {
        name: asConsole.client_id,
        secret: asConsole.client_secret,
        grantTypes: ['authorization_code', 'refresh_token'],
        redirectURIs: [consoleCallback],
      },
      { name: asResourceServer.client_id, secret: asResourceServer.client_secret, introspection: true },
    ],
    identityProviders: [
      {
        name: 'sso',
        displayName: 'Single sign-on',
        type: 'OIDC',
        mapping: 'auto',
        oidc: { issuer: providerIssuer, clientID, clientSecretRef: { name: 'sso', key: 'secret' }, caCertificate },
      },
    ],
  },
});

class Session {
  readonly #request: Request;
  readonly #token: string;

  constructor(request: Request, token: string) {
    this.#request = request;
    this.#token = token;
  }

  /** Sends a request as alice; objects are sent as JSON. */
  call(method: string, path: string, body?: object, type = 'application/json'): Promise<AppResponse> {
    return this.#request(path, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, ...(body === undefined ? {} : { 'content-type': type }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  get(path: string): Promise<AppResponse> {
    return this.call('GET', path);
  }

  post(path: string, fields: Readonly<Record<string, string>>): Promise<AppResponse> {
    const body = new URLSearchParams(fields).toString();
    return this.#request(path, { method: 'POST', headers: { 'content-type': formType }, body });
  }

  async callRemoved({ paths }: Description): Promise<void> {
    for (const [path, item] of Object.entries(paths))
      for (const [method, operation] of Object.entries(item))
        if ('deprecated' in operation && operation.deprecated === true)
          await this.call(
            method.toUpperCase(),
            path
              .replace('{version}', 'v1alpha2')
              .replaceAll(/\{(\w+)\}/g, (_, name: string) => exampleNames[name] ?? name),
          );
  }
}

const exampleNames: Readonly<Record<string, string>> = { namespace, pod, workload: 'web', workspace: 'retail' };

async function readServer(session: Session): Promise<void> {
  for (const probe of ['livez', 'readyz', 'healthz']) {
    await session.get(`/${probe}?verbose`);
    await session.get(`/${probe}/${probe === 'livez' ? 'ping' : 'configuration'}`);
  }
  for (const path of [
    '/metrics',
    '/debug/profiles/cpu?seconds=1',
    '/debug/profiles/heap?seconds=1',
    '/kapis/version',
    '/kapis',
    '/swagger/custom-resources.json',
    '/swagger/custom-resources.v3.json',
  ])
    await session.get(path);
  for (const path of ['/swagger/platform.json', '/swagger/platform.v3.json']) await session.get(path);
  const { text } = await session.get('/docs');
  await session.get('/docs/callback?code=SplxlOBeZQQYbYS6WxSbIA&state=af0ifjsldkj');
  await session.get(`/docs/${/assets\/[\w-]+\/style\.css/.exec(text)?.[0] ?? ''}`);
  for (const group of ['resources', 'iam', 'logging', 'tenant', 'config']) {
    const version = group === 'resources' ? 'v1alpha3' : 'v1alpha2';
    await session.get(`/kapis/${group}.platform.io`);
    await session.get(`/kapis/${group}.platform.io/${version}`);
  }
  await session.get('/kapis/config.platform.io/v1alpha2/kubeconfig');
  await session.get(`${resources}/nodes?limit=1&sortBy=name`);
  await session.get(`${resources}/nodes/worker-1`);
  await session.get(`${resources}/components`);
  await session.get(`${resources}/components/platform-apiserver`);
  await session.get(`${resources}/componenthealth`);
  await session.get(`${resources}/namespaces?name=sho`);
  await session.get(`${resources}/namespaces/${namespace}`);
  await session.get(`${resources}/namespaces/${namespace}/pods?status=Running&limit=10`);
  await session.get(`${resources}/namespaces/${namespace}/pods/${pod}`);
  for (const group of ['logging', 'tenant'])
    await session.get(`/kapis/${group}.platform.io/v1alpha2/logs?namespaces=${namespace}&log_query=checkout`);
}

async function useAccounts(session: Session, lab: Lab): Promise<void> {
  const type = { kind: 'User', apiVersion: 'iam.platform.io/v1alpha2' };
  const password = 'nine lives of a cat';
  const spec = { displayName: 'Bob', email: 'bob@example.com', groups: ['developers'] };
  await session.call('POST', `${iam}/users`, { ...type, metadata: { name: 'bob' }, spec });
  await session.call('PUT', `${iam}/users/bob/password`, { password });
  const logIn = (): Promise<AppResponse> => lab.token({ ...login, username: 'bob', password });
  await logIn();
  await session.get(`${iam}/users?limit=10`);
  await session.get(`${iam}/users/bob`);
  await session.call('PUT', `${iam}/users/bob`, {
    ...type,
    metadata: { name: 'bob' },
    spec: { ...spec, displayName: 'Robert' },
  });
  const patch = { spec: { groups: ['developers', 'oncall'] } };
  await session.call('PATCH', `${iam}/users/bob`, patch, 'application/merge-patch+json');
  const sessions = (await session.get(`${iam}/users/bob/sessions`)).json()['items'] as { metadata: { name: string } }[];
  await session.get(`${iam}/users/bob/loginrecords?limit=10`);
  await session.call('POST', `${iam}/users/bob/unlock`);
  await session.call('DELETE', `${iam}/users/bob/sessions/${sessions[0]?.metadata.name ?? ''}`);
  await session.call('DELETE', `${iam}/users/bob/sessions`);
  await session.call('DELETE', `${iam}/users/bob`);
  await session.get(`${iam}/whoami`);
}

async function useOAuth(session: Session, request: Request): Promise<void> {
  const tokens = (await session.post('/oauth/token', { ...login, scope: 'openid profile' })).json();
  const access = String(tokens['access_token']);
  const own = new Session(request, access);
  await own.get('/oauth/userinfo');
  await own.call('POST', '/oauth/userinfo');
  await session.post('/oauth/device_authorization', { client_id: 'platform-cli', scope: 'openid' });
  await session.post('/oauth/introspect', { token: access, ...asResourceServer });
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: access } };
  const basic = Buffer.from(`${asResourceServer.client_id}:${asResourceServer.client_secret}`).toString('base64');
  await request('/oauth/authenticate', {
    method: 'POST',
    headers: { authorization: `Basic ${basic}`, 'content-type': 'application/json' },
    body: JSON.stringify(review),
  });
  await session.post('/oauth/revoke', { token: access, ...asClient });
  for (const path of [
    '/oauth/keys',
    ...documents,
    ...documents.map((one) => `/oauth${one}`),
    ...documents.map((one) => `${one}/oauth`),
  ])
    await session.get(path);
}

const documents = ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server'];

async function usePages(lab: Lab, request: Request, provider: OpenIDServer): Promise<void> {
  const browser = new Browser(request);
  const authorize = `/oauth/authorize?${new URLSearchParams({
    response_type: 'code',
    client_id: asConsole.client_id,
    redirect_uri: consoleCallback,
    scope: 'openid',
    state: 'af0ifjsldkj',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }).toString()}`;
  await browser.open('/oauth/login');
  const page = await browser.open(authorize);
  const consent = await browser.submit(page, { username: 'alice', password: login.password });
  await browser.open('/oauth/consent');
  const back = await browser.submit(consent, { decision: 'allow' });
  const code = new URL(back.headers['location'] ?? '').searchParams.get('code') ?? '';
  const exchange = { grant_type: 'authorization_code', redirect_uri: consoleCallback, code_verifier: verifier };
  const { id_token: hint = '' } = (await lab.token({ ...exchange, code, ...asConsole })).json();
  await browser.send('/oauth/authorize', Object.fromEntries(new URLSearchParams(authorize.split('?')[1])));
  const device = (
    await lab.gateway('/oauth/device_authorization', {
      method: 'POST',
      headers: { 'content-type': formType },
      body: 'client_id=platform-cli',
    })
  ).json();
  const typed = await browser.submit(await browser.open('/oauth/device'), { user_code: String(device['user_code']) });
  await browser.submit(typed, { decision: 'allow' });
  await browser.submit(await browser.open('/oauth/account'), { end: 'others' });
  await browser.send('/oauth/logout', { id_token_hint: String(hint) });
  await logInElsewhere(browser, provider);
  await browser.open('/oauth/logout/confirm');
  await browser.submit(await browser.open('/oauth/logout'), {});
}

/** Logs in at the OpenID provider. */
async function logInElsewhere(browser: Browser<AppResponse>, provider: OpenIDServer): Promise<void> {
  await browser.open('/oauth/login/sso');
  const { fields } = formIn((await browser.open('/oauth/account')).text);
  const away = await browser.send('/oauth/login/sso', { ...fields, next: '/oauth/account' });
  const [, address = ''] = /href="(https:[^"]+)"/.exec(away.text) ?? [];
  const { searchParams } = new URL(address.replaceAll('&amp;', '&'));
  provider.claims = { nonce: searchParams.get('nonce'), preferred_username: 'carol', name: 'Carol' };
  const query = new URLSearchParams({ code: 'SplxlOBeZQQYbYS6WxSbIA', state: searchParams.get('state') ?? '' });
  await browser.open(`/oauth/callback/sso?${query.toString()}`);
}

/** Returns the first successful exchange of each operation. For a removed operation, the exchange must fail. */
function examplesOf({ paths }: Description, exchanges: readonly Exchange[]): Readonly<Record<string, Example>> {
  const operations = Object.entries(paths)
    .flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId }]) => ({ path, method: method.toUpperCase(), operationId })),
    )
    // Paths with fewer parameters are matched first.
    .toSorted((a, b) => a.path.split('{').length - b.path.split('{').length || b.path.length - a.path.length)
    .map((operation) => ({ ...operation, pattern: patternOf(operation.path) }));
  const examples: Record<string, Example> = {};
  for (const exchange of exchanges) {
    const { method = 'GET', path, response } = exchange;
    const found = operations.find((one) => one.method === method && one.pattern.test(path.replace(/\?.*/, '')));
    if (found === undefined) throw new Error(`${method} ${path} is not described`);
    const before = examples[found.operationId]?.response.status ?? 500;
    if (before >= 400 && response.status < 500) examples[found.operationId] = exampleOf(exchange);
  }
  return Object.fromEntries(Object.entries(examples).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replaceAll(/[.]/g, String.raw`\.`).replaceAll(/\{\w+\}/g, '[^/]+')}$`);

function exampleOf({ path, headers = {}, body, response }: Exchange): Example {
  const sent = headers['content-type'];
  const type = response.headers['content-type']?.replace(/;.*/, '');
  const { location } = response.headers;
  return {
    request: {
      url: fixed(path),
      ...(body === undefined ? {} : { type: String(sent), body: bodyOf(String(sent), String(body)) }),
    },
    response: {
      status: response.status,
      ...(location === undefined ? {} : { location: fixed(location) }),
      ...(type === undefined || response.text === '' ? {} : { type, body: bodyOf(type, response.text) }),
    },
  };
}

function bodyOf(type: string, text: string): unknown {
  if (type.endsWith('json')) return fixedIn(abridged(JSON.parse(text) as Readonly<Record<string, unknown>>));
  if (type.endsWith('yaml')) return fixedIn(parse(text));
  if (type === formType) return fixedIn(Object.fromEntries(new URLSearchParams(text)));
  const title = /<title>.*<\/title>/.exec(text)?.[0];
  if (title !== undefined) return `<!doctype html>…${title}…`;
  const lines = fixed(text).split('\n');
  return [...lines.slice(0, maxLines), ...(lines.length > maxLines ? ['…'] : [])].join('\n');
}

const maxLines = 8;

const callFrame = { functionName: '(root)', scriptId: '0', url: '', lineNumber: -1, columnNumber: -1 };
const cpuProfile = { nodes: [{ id: 1, callFrame, hitCount: 0 }], startTime: 0, endTime: 1_000_000 };
const heapProfile = { head: { callFrame, selfSize: 0, id: 1, children: [] } };

/** Returns a profile of the same kind as `body`, without samples. */
const emptyProfile = (body: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  'head' in body ? { ...heapProfile, samples: [] } : { ...cpuProfile, samples: [], timeDeltas: [] };

// Only the heads of the descriptions are recorded.
const abridged = (body: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  'samples' in body
    ? emptyProfile(body)
    : 'paths' in body
      ? {
          ...body,
          ...Object.fromEntries(
            ['paths', 'components', 'definitions', 'responses', 'tags'].flatMap((key) =>
              key in body ? [[key, key === 'tags' ? [] : {}]] : [],
            ),
          ),
        }
      : body;

/** Values that differ between runs, and their replacements. */
const volatile: readonly (readonly [RegExp, string])[] = [
  [/eyJ[\w-]+\.[\w-]+\.[\w-]*/g, 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl'],
  [/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, '0f2b8f1c-6f0e-4c0a-9d53-7a1e2b9c4d10'],
  [/[\da-f]{32}\.[\w-]{43}\.[\w-]{22}/g, '7c0e5f2a9b4d41f6.c2VjcmV0.dGFn'],
  [/\b[\da-f]{32}\b/g, '7c0e5f2a9b4d41f68a3b1c2d3e4f5a6b'],
  [/assets\/[\w-]{22}\//g, 'assets/0aB1cD2eF3gH4iJ5kL6mN7/'],
  [/(?<=[":=])[\w-]{43}(?=$|["&])/g, 'mN7pQ9rS1tU3vW5xY7zA9bC1dE3fG5hI7jK9lM1nO3p'],
  [/\b[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}\b/g, 'WDJB-MJHT'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, created],
  [/https:\/\/127\.0\.0\.1:\d+/g, 'https://sso.example'],
  [/\bplatform\.example\b/g, 'platform-apiserver.platform-system.svc'],
  [/LS0tLS1CRUdJTi[\w+/=]+/g, 'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUI='],
  [/(?<=\} )\d+$/gm, '7'],
  [/\buid-\d+\b/g, '0f2b8f1c-6f0e-4c0a-9d53-7a1e2b9c4d10'],
];
/** JSON members whose values differ between runs. */
const volatileMembers: Readonly<Record<string, unknown>> = {
  resourceVersion: '1027',
  form_token: 'mN7pQ9rS1tU3vW5xY7zA9bC1dE3fG5hI7jK9lM1nO3p',
  iat: 1_768_467_600,
  exp: 1_768_474_800,
  kid: 'pQ9rS1tU3vW5xY7zA9bC1dE3fG5hI7jK9lM1nO3pQ5r',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
  n: '0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCi',
  platform: 'linux/x64',
};

const fixed = (text: string): string =>
  volatile.reduce((result, [pattern, by]) => result.replaceAll(pattern, by), text);

function fixedIn(value: unknown): unknown {
  if (typeof value === 'string') return fixed(value);
  if (Array.isArray(value)) return value.map(fixedIn);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, isVolatile(key, one) ? volatileMembers[key] : fixedIn(one)]),
  );
}

const isVolatile = (key: string, value: unknown): boolean =>
  Object.hasOwn(volatileMembers, key) && typeof value === typeof volatileMembers[key];
