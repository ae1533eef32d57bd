/** The audit log of the whole server: audit.k8s.io/v1 events of every request, on every face. */
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
    sections: { audit: { policy: { rules }, log: { path } } },
  });
});
afterAll(async () => {
  await lab.stop();
  kube.close();
  rmSync(dir, { recursive: true });
});

/** What follows the last end of a line is being written. */
const written = (): AuditEvent[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as AuditEvent);

/** The events of one request, the last of which says that it is over. */
async function eventsOf(auditID: unknown): Promise<AuditEvent[]> {
  for (;;) {
    const found = written().filter((event) => event.auditID === auditID);
    if (found.at(-1)?.stage === 'ResponseComplete') return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function aliceToken(): Promise<string> {
  return (await lab.token(login)).json()['access_token'] as string;
}

describe('every request is written down', () => {
  test('a read at the gateway, by whom and with what was answered', async () => {
    const headers = { authorization: `Bearer ${await aliceToken()}`, 'user-agent': 'console/1' };
    const answer = await lab.gateway(`${kapisNodes}/n1`, { headers });
    const [event, ...more] = await eventsOf(answer.headers['audit-id']);
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

  test('one through the aggregator, as the person who asked it', async () => {
    const answer = await lab.aggregated(nodes);
    const [event] = await eventsOf(answer.headers['audit-id']);
    expect(event).toMatchObject({ verb: 'list', user: { username: 'alice' }, responseObject: { kind: 'NodeList' } });
  });

  test.each([
    ['nobody', {}, 401, 'Unauthorized'],
    ['a bad token', { authorization: 'Bearer bad' }, 401, 'Unauthorized'],
  ])('of %s, with the reason of the refusal', async (_, headers, code, reason) => {
    const answer = await lab.gateway(kapisNodes, { headers });
    const [event] = await eventsOf(answer.headers['audit-id']);
    expect(event).toMatchObject({
      user: { username: 'system:anonymous' },
      responseStatus: { code, reason, status: 'Failure', message: expect.stringMatching(/./) },
    });
  });

  test('what is refused before it is looked at', async () => {
    const answer = await lab.gateway('/kapis/../x');
    const [event] = await eventsOf(answer.headers['audit-id']);
    expect(event).toMatchObject({ requestURI: '/kapis/../x', responseStatus: { code: 400, reason: 'BadRequest' } });
  });

  test('the start of a long URL, unless the caller is authenticated', async () => {
    const url = `${kapisNodes}?name=${'a'.repeat(40_000)}`;
    const uriFor = async (headers: Readonly<Record<string, string>>): Promise<string | undefined> => {
      const [event] = await eventsOf((await lab.gateway(url, { headers })).headers['audit-id']);
      return event?.requestURI;
    };
    expect(await uriFor({})).toBe(`${url.slice(0, 2_048)}…`);
    expect(await uriFor({ authorization: `Bearer ${await aliceToken()}` })).toBe(url);
  });

  test('a watch when it begins and when it ends', async () => {
    const headers = { authorization: `Bearer ${await aliceToken()}` };
    const answer = await lab.gateway(`${kapisNodes}?watch=true&timeoutSeconds=1`, { headers });
    const stages = (await eventsOf(answer.headers['audit-id'])).map(({ stage, verb }) => [stage, verb]);
    expect(stages).toEqual([
      ['ResponseStarted', 'watch'],
      ['ResponseComplete', 'watch'],
    ]);
  });

  test('but what the policy leaves out', async () => {
    const probe = await lab.gateway('/livez');
    await eventsOf((await lab.gateway('/kapis/version')).headers['audit-id']);
    expect(written().filter(({ auditID }) => auditID === probe.headers['audit-id'])).toEqual([]);
  });
});

describe('what is passed on to kube-apiserver is written down', () => {
  const pods = '/api/v1/namespaces/default/pods';
  const pod = { kind: 'Pod', metadata: { name: 'p', managedFields: [{}] } };

  test('with what was sent and answered, both as they were', async () => {
    const answered = JSON.stringify({ ...pod, status: {} });
    kube.answer = (_, res) => void res.writeHead(201, { 'content-type': 'application/json' }).end(answered);
    const headers = { authorization: `Bearer ${await aliceToken()}`, 'content-type': 'application/json' };
    kube.taken();
    const answer = await lab.gateway(pods, { method: 'POST', headers, body: JSON.stringify(pod) });
    expect(answer.text).toBe(answered);
    expect(await kube.taken()[0]?.body).toBe(JSON.stringify(pod));
    const [event] = await eventsOf(answer.headers['audit-id']);
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
  ])('over HTTP/2 too: %s', async (url, kind, status) => {
    kube.answer = (_, res) =>
      void res.writeHead(status, { 'content-type': 'application/json' }).end(`{"kind":"${kind}"}`);
    const [headers] = await lab.http2(url, 'GET', { authorization: `Bearer ${await aliceToken()}` });
    const [event] = await eventsOf(headers['audit-id']);
    expect(event).toMatchObject({ responseStatus: { code: status }, responseObject: { kind } });
  });

  test('with whom the caller acts as', async () => {
    kube.answer = (_, res) => void res.end('{}');
    const headers = { authorization: `Bearer ${await aliceToken()}`, 'impersonate-user': 'bob' };
    const [event] = await eventsOf((await lab.gateway(pods, { headers })).headers['audit-id']);
    expect(event).toMatchObject({ user: { username: 'alice' }, impersonatedUser: { username: 'bob' } });
  });

  test('a shell when it opens and when it is closed', async () => {
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
    const events = await eventsOf(auditID);
    expect(events.map(({ stage, responseStatus }) => [stage, responseStatus?.code])).toEqual([
      ['ResponseStarted', 101],
      ['ResponseComplete', 101],
    ]);
    expect(events[0]).toMatchObject({
      verb: 'create',
      objectRef: { resource: 'pods', subresource: 'exec', name: 'p', namespace: 'default' },
    });
  });
});

describe('a login is written down', () => {
  test('with who it was, by which client and which session began', async () => {
    const answer = await lab.token(login);
    const [event] = await eventsOf(answer.headers['audit-id']);
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
      refresh_token: answer.json()['refresh_token'] as string,
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

  test('also one that fails, as nobody', async () => {
    const [event] = await eventsOf((await lab.token({ ...login, password: 'wrong horse' })).headers['audit-id']);
    expect(event).toMatchObject({
      user: { username: 'system:anonymous' },
      responseStatus: { code: 400, reason: 'invalid_grant' },
      annotations: { 'oauth.platform.io/login': 'WrongPassword', 'oauth.platform.io/username': 'alice' },
    });
  });

  test('but a name that is nobody is not: it may be a password', async () => {
    const [event] = await eventsOf((await lab.token({ ...login, username: 'hunter2' })).headers['audit-id']);
    expect(event?.annotations).not.toHaveProperty('oauth.platform.io/username');
  });

  test('and nothing that is secret ever is', async () => {
    const answer = await lab.token(login);
    const token = answer.json()['access_token'] as string;
    await lab.gateway(`${kapisNodes}?access_token=${token}`);
    await lab.gateway(kapisNodes, { headers: { authorization: `Bearer ${token}` } });
    await eventsOf((await lab.gateway('/kapis/version')).headers['audit-id']);
    const text = readFileSync(path, 'utf8');
    for (const secret of [login.password, 'wrong horse', 'hunter2', token, answer.json()['refresh_token'] as string])
      expect(text).not.toContain(secret);
  });
});
