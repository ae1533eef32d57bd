/** Metrics count what users and operators do, seen at /metrics. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { connect } from 'node:net';
import { FakeKubeApiserver } from '../fakes/upstream.ts';
import { login, startLab, type Lab } from '../labs/conformance/lab.ts';

const kube = new FakeKubeApiserver();

let lab: Lab;
let token: string;

beforeAll(async () => {
  lab = await startLab({ kubeApiserver: await kube.listen() });
  token = String((await lab.token(login)).json()['access_token']);
});
afterAll(async () => {
  await lab.stop();
  kube.close();
});
beforeEach(() => {
  kube.serve = (_, res) => void res.end('{}');
});

/** Returns the values of all time series by name and labels. */
async function series(): Promise<ReadonlyMap<string, number>> {
  const { text } = await lab.gateway('/metrics', { headers: { authorization: `Bearer ${token}` } });
  const lines = [...text.matchAll(/^platform_apiserver_(\S+?(?:\{.*\})?) (\S+)$/gm)];
  return new Map(lines.map(([, name = '', value]) => [name, Number(value)]));
}

/** Returns the increase of each of the time series during the work. */
async function growth(names: readonly string[], work: () => Promise<unknown>): Promise<number[]> {
  const before = await series();
  await work();
  const after = await series();
  return names.map((name) => (after.get(name) ?? 0) - (before.get(name) ?? 0));
}

const platform = 'client="platform"';

const grant = 'grant="password"';
const issued = `tokens_issued_total{${grant},${platform}}`;
const refusal = (error: string): string => `token_requests_refused_total{${grant},error="${error}",${platform}}`;

/** Returns the increase of each time series of logins. */
async function loginGrowth(work: () => Promise<unknown>): Promise<Readonly<Record<string, number>>> {
  const before = await series();
  await work();
  const after = [...(await series())].filter(([name]) => name.startsWith('logins_total'));
  const grown = after.map(
    ([name, value]) => [name.slice('logins_total'.length), value - (before.get(name) ?? 0)] as const,
  );
  return Object.fromEntries(grown.filter(([, count]) => count > 0));
}

test('a login is counted by outcome, and the issued token by grant', async () => {
  const names = [
    `logins_total{outcome="LoggedIn",${grant},${platform}}`,
    issued,
    'password_hash_duration_seconds_count',
  ];
  expect(await growth(names, () => lab.token(login))).toEqual([1, 1, 1]);
});

test('a login with a wrong password is counted as a refused login and a refused token request', async () => {
  const names = [`logins_total{outcome="WrongPassword",${grant},${platform}}`, refusal('invalid_grant'), issued];
  expect(await growth(names, () => lab.token({ ...login, password: 'wrong horse' }))).toEqual([1, 1, 0]);
});

test('a login with an unknown username is counted once, as an unknown user', async () => {
  expect(await loginGrowth(() => lab.token({ ...login, username: 'nobody' }))).toEqual({
    [`{outcome="UnknownUser",${grant},${platform}}`]: 1,
  });
});

test('logins that exceed the login limit are counted as limited', async () => {
  const guess = { ...login, username: 'guessed', password: 'wrong horse' };
  let status = 0;
  const names = [
    `logins_total{outcome="Limited",${grant},${platform}}`,
    'login_attempts_limited_total{guesses="password"}',
    refusal('invalid_grant'),
  ];
  const [limited, attempts, refused] = await growth(names, async () => {
    for (let count = 0; status !== 429 && count < 50; count += 1) ({ status } = await lab.token(guess));
  });
  expect(status).toBe(429);
  expect([limited, attempts]).toEqual([1, 1]);
  expect(refused).toBeGreaterThan(1);
});

test('a token request with a wrong client secret is counted as refused, and the metric omits the client name', async () => {
  const names = ['token_requests_refused_total{grant="",error="invalid_client",client=""}', issued];
  expect(await growth(names, () => lab.token({ ...login, client_secret: 'wrong' }))).toEqual([1, 0]);
});

test('a token request with an unsupported grant_type is counted as refused', async () => {
  const names = [`token_requests_refused_total{grant="",error="unsupported_grant_type",${platform}}`];
  expect(await growth(names, () => lab.token({ ...login, grant_type: 'other' }))).toEqual([1]);
});

test('a login is counted with its outcome even if the client disconnects before the response', async () => {
  const body = new URLSearchParams({ ...login, password: 'wrong horse' }).toString();
  const name = `logins_total{outcome="WrongPassword",${grant},${platform}}`;
  const before = (await series()).get(name) ?? 0;
  const client = connect(lab.ports.http, '127.0.0.1');
  client.end(
    `POST /oauth/token HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}`,
    () => client.destroy(),
  );
  while (((await series()).get(name) ?? 0) === before) await new Promise((resolve) => setTimeout(resolve, 20));
  expect((await series()).get(name)).toBe(before + 1);
});

const tokenSeries = async (): Promise<unknown[]> => [...(await series())].filter(([name]) => name.startsWith('token'));

test.each([
  ['GET', '/oauth/token'],
  ['OPTIONS', '/oauth/token'],
])('the request %s %s is not counted as a token request', async (method, target) => {
  const before = await tokenSeries();
  await lab.gateway(target, { method });
  expect(await tokenSeries()).toEqual(before);
});

test('a token request whose path ends with a slash is counted', async () => {
  const body = new URLSearchParams(login).toString();
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const post = () => lab.gateway('/oauth/token/', { method: 'POST', headers, body });
  expect(await growth([issued], post)).toEqual([1]);
});

test('the watch delay metric does not grow if the only watch ends before a change is sent', async () => {
  const name = 'watch_fan_out_delay_seconds_sum';
  const watch = await lab.open('http', '/kapis/resources.platform.io/v1alpha3/nodes?watch=true', {
    headers: { authorization: `Bearer ${token}` },
  });
  const [grown = 0] = await growth([name], async () => {
    watch.destroy();
    lab.putNode('late', 10);
    await new Promise((resolve) => setTimeout(resolve, 50));
  });
  expect(grown).toBeLessThan(0.5);
});

const path = '/api/v1/namespaces';
const results = (verb: string): string[] =>
  ['ok', 'error', 'aborted'].map((result) => `upstream_duration_seconds_count{verb="${verb}",result="${result}"}`);

const list = () => lab.gateway(path, { headers: { authorization: `Bearer ${token}` } });

async function disconnect(): Promise<void> {
  const client = connect(lab.ports.http, '127.0.0.1');
  const seen = new Promise<void>((resolve) => {
    kube.serve = (req) => {
      client.destroy();
      req.socket.once('close', () => resolve());
    };
  });
  client.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  await seen;
}

async function upgrade(): Promise<void> {
  kube.grant = (req, socket) =>
    void socket.end(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${req.headers.upgrade}\r\n\r\n`,
    );
  const client = connect(lab.ports.http, '127.0.0.1');
  client.write(
    `GET ${path}/default/pods/p/exec?command=sh HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n` +
      'Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n',
  );
  client.resume();
  await once(client, 'close');
}

/** Returns the names of the time series of requests that grow during the work. */
async function requestGrowth(work: () => Promise<unknown>): Promise<string[]> {
  const before = await series();
  await work();
  const after = await series();
  const grown = [...after].filter(([name, value]) => name.startsWith('request') && value > (before.get(name) ?? 0));
  // Excludes the buckets of histograms, and the requests for the metrics themselves.
  return grown
    .map(([name]) => name)
    .filter((name) => !/_(?:bucket|sum)\{|verb="get",resource="",backend="platform/.test(name));
}

test.each(['/healthz', '/livez', '/readyz'])('the probe %s is not counted as a request', async (probe) => {
  const name = 'request_duration_seconds_count{verb="get",resource="",backend="platform-apiserver"}';
  // The first request for the metrics is counted, too.
  expect(await growth([name], () => lab.gateway(probe))).toEqual([1]);
});

const nodes = '/kapis/resources.platform.io/v1alpha3/nodes';
const nodeLabels = 'verb="list",resource="nodes",backend="platform-apiserver"';

test.each([
  ['no token', {}],
  ['an invalid token', { authorization: 'Bearer a.b.c' }],
])('a request with %s is counted without its resource', async (_, headers) => {
  expect(await requestGrowth(() => lab.gateway(nodes, { headers }))).toEqual([
    'requests_total{verb="list",resource="",backend="platform-apiserver",code="401"}',
    'request_duration_seconds_count{verb="list",resource="",backend="platform-apiserver"}',
  ]);
});

test('a request of a user is counted with its resource', async () => {
  const headers = { authorization: `Bearer ${token}` };
  expect(await requestGrowth(() => lab.gateway(nodes, { headers }))).toEqual([
    `requests_total{${nodeLabels},code="200"}`,
    `request_duration_seconds_count{${nodeLabels}}`,
  ]);
});

test('a stream is counted as a request, and its duration is not observed', async () => {
  expect(await requestGrowth(upgrade)).toEqual([
    'requests_total{verb="get",resource="other",backend="kube-apiserver",code="101"}',
  ]);
});

test('a counter of rare events is 0 before the first event', async () => {
  const all = await series();
  expect(['log', 'webhook'].map((sink) => all.get(`audit_events_dropped_total{sink="${sink}"}`))).toEqual([0, 0]);
});

describe('a request that the gateway forwards', () => {
  test('a request to which kube-apiserver responds is counted once', async () => {
    expect(await growth(results('list'), list)).toEqual([1, 0, 0]);
  });

  test('a request is counted once, as an error, if kube-apiserver closes the connection before its response', async () => {
    kube.serve = (req) => void req.socket.destroy();
    expect(await growth(results('list'), list)).toEqual([0, 1, 0]);
  });

  test('a request is counted once, as aborted, if the client disconnects before the response', async () => {
    expect(await growth(results('list'), disconnect)).toEqual([0, 0, 1]);
  });

  test('an upgraded connection is counted once', async () => {
    expect(await growth(results('get'), upgrade)).toEqual([1, 0, 0]);
  });
});

test('a refresh token that is used again after the grace period is counted as reused', async () => {
  const refresh = (refresh_token: unknown): ReturnType<Lab['token']> =>
    lab.token({
      grant_type: 'refresh_token',
      refresh_token: String(refresh_token),
      client_id: 'platform',
      client_secret: 'platform',
    });
  const { refresh_token: first } = (await lab.token(login)).json();
  const { refresh_token: second } = (await refresh(first)).json();
  await refresh(second);
  const names = [
    'token_reuses_total{token="refresh token"}',
    `token_requests_refused_total{grant="refresh_token",error="invalid_grant",${platform}}`,
  ];
  expect(await growth(names, () => refresh(first))).toEqual([1, 1]);
});

test('the metrics report sessions, connections, sent bytes, lists, and the expiry of the certificate', async () => {
  const all = await series();
  const versions = [...all].filter(([name]) => name.startsWith('build_info{'));
  expect(versions).toEqual([[expect.stringMatching(/version="\d+\.\d+\.\d+",nodejs="24\./), 1]]);
  expect(all.get('sessions')).toBeGreaterThan(0);
  expect(all.get('connections{listener="http"}')).toBeGreaterThan(0);
  expect(all.get('sent_bytes_total{listener="http"}')).toBeGreaterThan(0);
  expect(all.get('serving_certificate_expiry_timestamp_seconds')).toBeGreaterThan(Date.now() / 1_000);
  expect(all.get('cache_lists_total{resource="sessions"}')).toBeGreaterThan(0);
});
