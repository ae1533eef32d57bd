/** Audit log of the whole server: audit.k8s.io/v1 events of every request, on both listeners. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AuditEvent } from '../fakes/audit-event.ts';
import { talkOver } from '../fakes/talk.ts';
import { FakeKubeApiserver } from '../fakes/upstream.ts';
import { asClient, login, nodes, startLab, type Lab } from '../labs/conformance/lab.ts';

const dir = mkdtempSync(join(tmpdir(), 'audit-'));
const path = join(dir, 'audit.log');
const kapisNodes = '/kapis/resources.platform.io/v1alpha3/nodes';
const kube = new FakeKubeApiserver();
let lab: Lab;
beforeAll(async () => {
  const rules = [
    { level: 'None', nonResourceURLs: ['/livez*'] },
    { level: 'RequestResponse', omitStages: ['RequestReceived'], omitManagedFields: true },
  ];
  lab = await startLab({
    kubeApiserver: await kube.listen(),
    sections: { audit: { policy: { rules }, log: { path } }, gateway: { externalURL: 'https://platform.example' } },
  });
});
afterAll(async () => {
  await lab.stop();
  kube.close();
  rmSync(dir, { recursive: true });
});

/** Returns the complete events; the last line may still be incomplete. */
const events = (): AuditEvent[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as AuditEvent);

/** Waits for the last event of a request and returns all its events. */
async function eventsOf(auditID: unknown): Promise<AuditEvent[]> {
  for (;;) {
    const found = events().filter((event) => event.auditID === auditID);
    if (found.at(-1)?.stage === 'ResponseComplete') return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function aliceToken(): Promise<string> {
  return (await lab.token(login)).json()['access_token'] as string;
}

describe('the audit log', () => {
  test('the audit log records the user and the response of a read request at the gateway', async () => {
    const headers = { authorization: `Bearer ${await aliceToken()}`, 'user-agent': 'console/1' };
    const response = await lab.gateway(`${kapisNodes}/n1`, { headers });
    const [event, ...more] = await eventsOf(response.headers['audit-id']);
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      level: 'RequestResponse',
      stage: 'ResponseComplete',
      requestURI: `${kapisNodes}/n1`,
      verb: 'get',
      user: { username: 'alice', groups: ['readers', 'system:authenticated'] },
      sourceIPs: ['127.0.0.1'],
      userAgent: 'console/1',
      objectRef: { resource: 'nodes', name: 'n1', apiGroup: 'resources.platform.io', apiVersion: 'v1alpha3' },
      responseStatus: { code: 200 },
      responseObject: { kind: 'Node', metadata: { name: 'n1' } },
    });
  });

  test('the audit log names the user of a request that comes through the aggregator', async () => {
    const response = await lab.aggregated(nodes);
    const [event] = await eventsOf(response.headers['audit-id']);
    expect(event).toMatchObject({ verb: 'list', user: { username: 'alice' }, responseObject: { kind: 'NodeList' } });
  });

  test.each([
    ['without a token', {}, 401, 'Unauthorized'],
    ['with an invalid token', { authorization: 'Bearer bad' }, 401, 'Unauthorized'],
  ])('the audit log gives the reason why a request %s was rejected', async (_, headers, code, reason) => {
    const response = await lab.gateway(kapisNodes, { headers });
    const [event] = await eventsOf(response.headers['audit-id']);
    expect(event).toMatchObject({
      user: { username: 'system:anonymous' },
      responseStatus: { code, reason, status: 'Failure', message: expect.stringMatching(/./) },
    });
  });

  test('the audit log has an event for a request with an ambiguous path', async () => {
    const response = await lab.gateway('/kapis/../x');
    const [event] = await eventsOf(response.headers['audit-id']);
    expect(event).toMatchObject({ requestURI: '/kapis/../x', responseStatus: { code: 400, reason: 'BadRequest' } });
  });

  test.each([
    ['HTTPS', 'secureGateway' as const, '/', 303],
    ['HTTP', 'gateway' as const, '/oauth/account', 307],
  ])('the audit log has an event when the %s port redirects a browser', async (_, listener, url, code) => {
    const response = await lab[listener](url, { headers: { accept: 'text/html' } });
    const [event] = await eventsOf(response.headers['audit-id']);
    expect(event).toMatchObject({
      verb: 'get',
      requestURI: url,
      user: { username: 'system:anonymous' },
      responseStatus: { code },
    });
  });

  test('the audit log truncates long URLs of anonymous requests', async () => {
    const url = `${kapisNodes}?name=${'a'.repeat(40_000)}`;
    const uriFor = async (headers: Readonly<Record<string, string>>): Promise<string | undefined> => {
      const [event] = await eventsOf((await lab.gateway(url, { headers })).headers['audit-id']);
      return event?.requestURI;
    };
    expect(await uriFor({})).toBe(`${url.slice(0, 2_048)}…`);
    expect(await uriFor({ authorization: `Bearer ${await aliceToken()}` })).toBe(url);
  });

  test('the audit log has events for the start and the end of a watch', async () => {
    const headers = { authorization: `Bearer ${await aliceToken()}` };
    const response = await lab.gateway(`${kapisNodes}?watch=true&timeoutSeconds=1`, { headers });
    const stages = (await eventsOf(response.headers['audit-id'])).map(({ stage, verb }) => [stage, verb]);
    expect(stages).toEqual([
      ['ResponseStarted', 'watch'],
      ['ResponseComplete', 'watch'],
    ]);
  });

  test('the audit log omits requests that the policy excludes', async () => {
    const probe = await lab.gateway('/livez');
    await eventsOf((await lab.gateway('/kapis/version')).headers['audit-id']);
    expect(events().filter(({ auditID }) => auditID === probe.headers['audit-id'])).toEqual([]);
  });
});

describe('the audit log of requests forwarded to kube-apiserver', () => {
  const pods = '/api/v1/namespaces/default/pods';
  const pod = { kind: 'Pod', metadata: { name: 'p', managedFields: [{}] } };

  test('the audit log of requests forwarded to kube-apiserver has the request and response objects', async () => {
    const responseBody = JSON.stringify({ ...pod, status: {} });
    kube.serve = (_, res) => void res.writeHead(201, { 'content-type': 'application/json' }).end(responseBody);
    const headers = { authorization: `Bearer ${await aliceToken()}`, 'content-type': 'application/json' };
    kube.taken();
    const response = await lab.gateway(pods, { method: 'POST', headers, body: JSON.stringify(pod) });
    expect(response.text).toBe(responseBody);
    expect(await kube.taken()[0]?.body).toBe(JSON.stringify(pod));
    const [event] = await eventsOf(response.headers['audit-id']);
    expect(event).toMatchObject({
      verb: 'create',
      objectRef: { resource: 'pods', namespace: 'default', apiVersion: 'v1' },
      responseStatus: { code: 201 },
      requestObject: { kind: 'Pod', metadata: { name: 'p' } },
      responseObject: { kind: 'Pod', metadata: { name: 'p' }, status: {} },
    });
    expect(JSON.stringify(event)).not.toContain('managedFields');
  });

  test.each<[string, string, number]>([
    [pods, 'PodList', 200],
    [`${pods}/none`, 'Status', 404],
    [`${kapisNodes}/n1`, 'Node', 200],
    [kapisNodes, 'NodeList', 200],
    [`${kapisNodes}/none`, 'Status', 404],
  ])(
    'the audit log of requests forwarded to kube-apiserver has the response object of a request over HTTP/2: %s',
    async (url, kind, status) => {
      kube.serve = (_, res) =>
        void res.writeHead(status, { 'content-type': 'application/json' }).end(`{"kind":"${kind}"}`);
      const [headers] = await lab.http2(url, 'GET', { authorization: `Bearer ${await aliceToken()}` });
      const [event] = await eventsOf(headers['audit-id']);
      expect(event).toMatchObject({ responseStatus: { code: status }, responseObject: { kind } });
    },
  );

  test('the audit log of requests forwarded to kube-apiserver names the impersonated user', async () => {
    kube.serve = (_, res) => void res.end('{}');
    const headers = { authorization: `Bearer ${await aliceToken()}`, 'impersonate-user': 'bob' };
    const [event] = await eventsOf((await lab.gateway(pods, { headers })).headers['audit-id']);
    expect(event).toMatchObject({ user: { username: 'alice' }, impersonatedUser: { username: 'bob' } });
  });

  test('the audit log of requests forwarded to kube-apiserver has events for the start and end of an exec session', async () => {
    kube.grant = (req, socket) => {
      socket.end(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${req.headers.upgrade}\r\n\r\nbye`,
      );
    };
    const auditID = 'a-shell-of-alice';
    const exec =
      `POST ${pods}/p/exec?command=sh HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${await aliceToken()}\r\n` +
      `Audit-Id: ${auditID}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n`;
    talkOver(net.connect(lab.ports.http, '127.0.0.1'), exec);
    const shellEvents = await eventsOf(auditID);
    expect(shellEvents.map(({ stage, responseStatus }) => [stage, responseStatus?.code])).toEqual([
      ['ResponseStarted', 101],
      ['ResponseComplete', 101],
    ]);
    expect(shellEvents[0]).toMatchObject({
      verb: 'create',
      objectRef: { resource: 'pods', subresource: 'exec', name: 'p', namespace: 'default' },
    });
  });
});

describe('the audit log of logins', () => {
  test('the audit log of logins names the user, the client and the session', async () => {
    const response = await lab.token(login);
    const [event] = await eventsOf(response.headers['audit-id']);
    expect(event).toMatchObject({
      level: 'Metadata',
      requestURI: '/oauth/token',
      user: { username: 'alice', groups: ['readers'] },
      responseStatus: { code: 200 },
      annotations: {
        'oauth.platform.io/client': 'platform',
        'oauth.platform.io/grant-type': 'password',
        'oauth.platform.io/login': 'LoggedIn',
        'oauth.platform.io/username': 'alice',
        'oauth.platform.io/session': expect.stringMatching(/./),
      },
    });
    const refresh = {
      grant_type: 'refresh_token',
      refresh_token: response.json()['refresh_token'] as string,
      ...asClient,
    };
    const [refreshed] = await eventsOf((await lab.token(refresh)).headers['audit-id']);
    expect(refreshed).toMatchObject({
      user: { username: 'alice' },
      annotations: {
        'oauth.platform.io/grant-type': 'refresh_token',
        'oauth.platform.io/session': event?.annotations?.['oauth.platform.io/session'],
      },
    });
  });

  test('the audit log of logins records a failed login as anonymous, with the username', async () => {
    const [event] = await eventsOf((await lab.token({ ...login, password: 'wrong horse' })).headers['audit-id']);
    expect(event).toMatchObject({
      user: { username: 'system:anonymous' },
      responseStatus: { code: 400, reason: 'invalid_grant' },
      annotations: { 'oauth.platform.io/login': 'WrongPassword', 'oauth.platform.io/username': 'alice' },
    });
  });

  test('the audit log of logins omits usernames that do not exist, since they may be passwords', async () => {
    const [event] = await eventsOf((await lab.token({ ...login, username: 'hunter2' })).headers['audit-id']);
    expect(event?.annotations).not.toHaveProperty('oauth.platform.io/username');
  });

  test('the audit log of logins contains no passwords or tokens', async () => {
    const response = await lab.token(login);
    const token = response.json()['access_token'] as string;
    await lab.gateway(`${kapisNodes}?access_token=${token}`);
    await lab.gateway(kapisNodes, { headers: { authorization: `Bearer ${token}` } });
    await eventsOf((await lab.gateway('/kapis/version')).headers['audit-id']);
    const text = readFileSync(path, 'utf8');
    for (const secret of [login.password, 'wrong horse', 'hunter2', token, response.json()['refresh_token'] as string])
      expect(text).not.toContain(secret);
  });
});
