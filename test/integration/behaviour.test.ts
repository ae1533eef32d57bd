/** Operation of the server: health, metrics, logs, limits, TLS and a graceful shutdown (docs/guides/operations.md). */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID, X509Certificate } from 'node:crypto';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import tls, { type SecureVersion } from 'node:tls';
import { newMaterial } from '../../src/tls/authority.ts';
import { connectHTTP2, openHTTP2 } from '../client/http2.ts';
import { whole } from '../client/message.ts';
import { configure } from '../labs/integration/configure.ts';
import { readAudit, readLog } from '../labs/integration/log.ts';
import { eventually } from '../labs/integration/eventually.ts';
import {
  aggregated,
  call,
  gateway,
  nodesPath,
  open,
  read,
  secureGateway,
  type HttpResponse,
} from '../labs/integration/http.ts';
import { get, merge, kube, patch, releasePath, type KubeObject } from '../labs/integration/kube.ts';
import { lab } from '../labs/integration/lab.ts';
import { adminToken, login, passwordForm, postForm } from '../labs/integration/login.ts';
import { responsesIn, connect, drain } from '../labs/integration/raw.ts';
import { replicaLogs, startExtra, type Extra } from '../labs/integration/servers.ts';
import { expectStatus } from '../labs/integration/status.ts';

const faces = [
  ['the gateway', gateway],
  ['the gateway over TLS', secureGateway],
  ['the aggregated API server', aggregated],
] as const;

const asAdmin = async (url: string): Promise<HttpResponse> => call(url, { token: await adminToken() });

describe.each(faces)('health on %s', (_, base) => {
  test.each(['livez', 'readyz', 'healthz'])('/%s returns only "ok" to anonymous callers', async (probe) => {
    for (const query of ['', '?verbose'])
      expect(await call(`${base()}/${probe}${query}`)).toMatchObject({ status: 200, text: 'ok' });
    expect(await call(`${base()}/${probe}?verbose`, { token: 'nonsense' })).toMatchObject({ status: 200, text: 'ok' });
  });

  test('a health check with ?verbose lists the checks for authenticated callers, except the checks in ?exclude', async () => {
    const { text } = await asAdmin(`${base()}/readyz?verbose`);
    for (const check of ['configuration', 'sessions', 'request-header-ca']) expect(text).toContain(`[+]${check} ok\n`);
    expect(text).toMatch(/\nreadyz check passed\n$/);
    const less = await asAdmin(`${base()}/readyz?verbose&exclude=sessions&exclude=configuration`);
    expect(less.text).not.toContain('sessions');
    expect(less.text).not.toContain('configuration');
    expect(less.text).toContain('request-header-ca');
  });

  test('each health check has its own path', async () => {
    for (const path of ['livez/ping', 'readyz/sessions', 'healthz/configuration'])
      expect(await call(`${base()}/${path}`)).toMatchObject({ status: 200, text: 'ok' });
    expectStatus(await call(`${base()}/readyz/nothing`), 404, 'NotFound');
  });
});

describe.each(faces)('metrics on %s', (_, base) => {
  test('access to metrics requires the right to get /metrics', async () => {
    expectStatus(await call(`${base()}/metrics`), 401, 'Unauthorized');
    const { access_token: token } = await login('alice');
    expectStatus(await call(`${base()}/metrics`, { token }), 403, 'Forbidden');
    const response = await asAdmin(`${base()}/metrics`);
    expect(response.status).toBe(200);
    expect(response.headers['content-type']).toMatch(/^text\/plain; version=/);
  });
});

test('metrics count requests by verb, resource and code, and describe the cache and the process', async () => {
  await asAdmin(`${gateway()}${nodesPath}`);
  await asAdmin(`${gateway()}${nodesPath}/nobody`);
  const { text } = await asAdmin(`${gateway()}/metrics`);
  for (const line of [
    'requests_total{verb="list",resource="nodes",backend="platform-apiserver",code="200"} [1-9]',
    'requests_total{verb="get",resource="nodes",backend="platform-apiserver",code="404"} [1-9]',
    'request_duration_seconds_count{verb="list",resource="nodes",backend="platform-apiserver"} [1-9]',
    `store_objects{resource="nodes"} ${(await get<{ items: unknown[] }>('/api/v1/nodes')).items.length}\n`,
    'store_bytes{resource="nodes"} [1-9]\\d{3,}',
    'store_age_seconds{resource="nodes"} \\d',
    'open_watches \\d',
    'requests_in_flight{kind="read"} [1-9]',
    'configuration_problems 0',
  ])
    expect(text).toMatch(new RegExp(`^platform_apiserver_${line}`, 'm'));
  for (const name of ['nodejs_eventloop_lag_p99_seconds', 'process_resident_memory_bytes', 'process_cpu_seconds_total'])
    expect(text).toMatch(new RegExp(`^${name} \\d`, 'm'));
});

describe('a request', () => {
  const id = randomUUID();

  test('a response has the Audit-Id of the request, or a new one if the Audit-Id is invalid', async () => {
    const given = await call(`${gateway()}/kapis/version`, { headers: { 'audit-id': id } });
    expect(given.headers['audit-id']).toBe(id);
    for (const bad of ['short', 'x'.repeat(100), 'white space 1234', '<script>alert</script>']) {
      const made = await call(`${gateway()}/kapis/version`, { headers: { 'audit-id': bad } });
      expect(made.headers['audit-id']).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  test('a request is logged in one line with user, path, duration and status', async () => {
    const own = randomUUID();
    await call(`${gateway()}${nodesPath}?limit=1`, {
      token: await adminToken(),
      headers: { 'audit-id': own, 'user-agent': 'a test' },
    });
    const lines = await eventually('the line is written', () => {
      const found = readLog(replicaLogs()[0] ?? '').filter((line) => line['auditID'] === own);
      if (found.length === 0) throw new Error('no line');
      return found;
    });
    expect(lines).toEqual([
      {
        time: expect.stringMatching(/^\d{4}-.*Z$/),
        level: 'info',
        message: 'request',
        auditID: own,
        method: 'GET',
        path: `${nodesPath}?limit=1`,
        verb: 'list',
        status: 200,
        seconds: expect.any(Number),
        sourceIP: '127.0.0.1',
        userAgent: 'a test',
        user: 'admin',
        via: expect.any(String),
      },
    ]);
    const events = readAudit(replicaLogs()[0] ?? '').filter(({ auditID }) => auditID === own);
    expect(events).toEqual([
      expect.objectContaining({
        level: 'Metadata',
        stage: 'ResponseComplete',
        requestURI: `${nodesPath}?limit=1`,
        user: expect.objectContaining({ username: 'admin' }),
        responseStatus: { metadata: {}, code: 200 },
      }),
    ]);
  });

  test('a request with a token in its query is rejected, and logged without the token', async () => {
    const token = await adminToken();
    const own = randomUUID();
    const response = await call(`${gateway()}${nodesPath}?access_token=${token}`, { headers: { 'audit-id': own } });
    expectStatus(response, 400, 'BadRequest');
    const line = await eventually('the line is written', () => {
      const found = readLog(replicaLogs()[0] ?? '').find(({ auditID }) => auditID === own);
      if (found === undefined) throw new Error('no line');
      return found;
    });
    expect(line['path']).toBe(`${nodesPath}?access_token=redacted`);
  });
});

describe('the limit on concurrent logins', () => {
  let restore: () => Promise<void>;
  beforeAll(async () => {
    restore = await configure((configuration) => {
      configuration.requests = { ...configuration.requests, maxInFlight: 2 };
    });
  });
  afterAll(() => restore());

  test('the limit on concurrent logins rejects a third incomplete login with 429, but no complete logins or reads', async () => {
    const token = await adminToken();
    const half = [0, 1, 2].map(() => {
      const socket = connect(gateway());
      const response = drain(socket);
      const head = `POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n`;
      socket.write(`${head}Content-Length: 3\r\nConnection: close\r\n\r\n`);
      return { socket, response };
    });
    const [refused] = responsesIn(await Promise.race(half.map(({ response }) => response)));
    expect(refused?.status).toBe(429);
    expect(refused?.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    for (const path of ['/readyz', nodesPath]) expect((await call(`${gateway()}${path}`, { token })).status).toBe(200);
    await eventually('complete logins still get slots', async () => {
      expect((await postForm(passwordForm('alice'))).status).toBe(200);
    });
    for (const { socket } of half) socket.end('a=b');
    const statuses = await Promise.all(half.map(async ({ response }) => responsesIn(await response)[0]?.status));
    expect(statuses.filter((status) => status === 401)).toHaveLength(2);
  });
});

/** Returns the result of a TLS handshake: the negotiated protocols, or the error. */
function shake(url: string, options: tls.ConnectionOptions): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = tls.connect({ host: hostname, port: Number(port), ca: lab().authority, ...options }, () => {
      resolve(`${socket.getProtocol()} ${String(socket.alpnProtocol)}`);
      socket.destroy();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

describe.each(faces.slice(1))('TLS on %s', (_, base) => {
  const service = 'platform-apiserver.platform-system';

  test.each([`${service}.svc`, `${service}.svc.cluster.local`, service, 'platform-apiserver', 'localhost'])(
    'the TLS certificate is valid for %s and issued by the published CA',
    async (servername) => {
      expect(await shake(base(), { servername })).toMatch(/^TLSv1\.3/);
    },
  );

  test('the TLS certificate is not valid for another name', async () => {
    expect(await shake(base(), { servername: 'elsewhere.example.com' })).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
  });

  test.each([
    ['TLSv1', 'DEFAULT@SECLEVEL=0', /^(ERR_SSL|ECONNRESET)/],
    ['TLSv1.1', 'DEFAULT@SECLEVEL=0', /^(ERR_SSL|ECONNRESET)/],
    ['TLSv1.2', undefined, /^TLSv1\.2/],
    ['TLSv1.3', undefined, /^TLSv1\.3/],
  ])('a TLS handshake succeeds only with TLS 1.2 or later: %s', async (version, ciphers, expected) => {
    const only = { minVersion: version as SecureVersion, maxVersion: version as SecureVersion };
    expect(
      await shake(base(), { ...only, servername: 'localhost', ...(ciphers === undefined ? {} : { ciphers }) }),
    ).toMatch(expected);
  });

  test('the TLS listener supports HTTP/2 and HTTP/1.1', async () => {
    for (const protocol of ['h2', 'http/1.1'])
      expect(await shake(base(), { servername: 'localhost', ALPNProtocols: [protocol] })).toBe(`TLSv1.3 ${protocol}`);
    const session = connectHTTP2(base(), { ca: lab().authority });
    try {
      expect((await whole(await openHTTP2(session, { path: '/readyz' }))).status).toBe(200);
    } finally {
      session.destroy();
    }
  });
});

test('the caBundle of the APIService contains the published CA, and the server restores a deleted caBundle', async () => {
  const path = '/apis/apiregistration.k8s.io/v1/apiservices/v1alpha3.resources.platform.io';
  type Service = KubeObject & { spec: { caBundle?: string } };
  const bundle = async (): Promise<string> =>
    Buffer.from((await get<Service>(path)).spec.caBundle ?? '', 'base64').toString('utf8');
  const published = await get<KubeObject & { data: Record<string, string> }>(
    `${releasePath}/configmaps/platform-apiserver-ca`,
  );
  expect(await bundle()).toBe(published.data['ca.crt']);
  await patch(path, { spec: { caBundle: null, insecureSkipTLSVerify: true } });
  await eventually('the caBundle is back', async () => expect(await bundle()).toBe(lab().authority));
  await eventually('kube-apiserver reaches us', async () =>
    kube().json('/apis/resources.platform.io/v1alpha3/nodes', { contentType: merge }),
  );
});

/**
 * A server with certificate files, which the server reads every 30 seconds. The files are replaced before the first
 * test of this file.
 */
class GivenCertificate {
  readonly #cert = join(lab().dir, 'given', 'tls.crt');
  readonly #key = join(lab().dir, 'given', 'tls.key');
  #extra: Extra | undefined;
  /** Fingerprints of the first and second certificate in the files, and of the certificate presented at the start. */
  files: { readonly first: string; readonly shown: string; readonly second: string } | undefined;

  async start(): Promise<void> {
    mkdirSync(join(lab().dir, 'given'));
    const first = await this.#write('first.example.com');
    this.#extra = await startExtra([`--tls-cert-file=${this.#cert}`, `--tls-private-key-file=${this.#key}`]);
    await this.#extra.ready();
    const shown = await this.shown();
    this.files = { first, shown, second: await this.#write('second.example.com') };
  }

  /** Returns the fingerprint of the certificate that the server presents. */
  shown(): Promise<string> {
    return new Promise((resolve, reject) => {
      const port = this.#extra?.ports.https ?? 0;
      const socket = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
        resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? '');
        socket.destroy();
      });
      socket.on('error', reject);
    });
  }

  async stop(): Promise<void> {
    await this.#extra?.stop();
  }

  async #write(host: string): Promise<string> {
    const material = await newMaterial([host], Date.now());
    for (const [file, text] of [
      [this.#key, material['tls.key']],
      [this.#cert, material['tls.crt']],
    ] as const) {
      writeFileSync(`${file}.new`, text);
      renameSync(`${file}.new`, file);
    }
    return new X509Certificate(material['tls.crt']).fingerprint256;
  }
}

let given: GivenCertificate;
beforeAll(async () => {
  given = new GivenCertificate();
  await given.start();
});
afterAll(() => given.stop());

describe('a shutdown', () => {
  test('during a shutdown by SIGTERM, the server becomes unready, completes requests and watches, and exits with code 0', async () => {
    const extra = await startExtra();
    await extra.ready();
    const token = await adminToken();
    const watch = await open(`${extra.tlsURL}${nodesPath}?watch=true`, { token });
    expect(watch.status).toBe(200);
    const watched = read(watch);
    const socket = connect(extra.baseURL);
    const response = drain(socket);
    const form = new URLSearchParams(passwordForm('alice')).toString();
    socket.write(
      `POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${form.length}\r\n\r\n`,
    );
    process.kill(extra.pid, 'SIGTERM');
    const unready = await eventually('the server is unready', async () => {
      const probe = await call(`${extra.baseURL}/readyz?verbose`, { token });
      if (probe.status === 200) throw new Error('still ready');
      return probe;
    });
    expect(unready.status).toBe(503);
    expect(unready.text).toContain('[-]shutdown failed');
    expect((await call(`${extra.baseURL}/livez`)).status).toBe(200);
    expect((await call(`${extra.baseURL}${nodesPath}`, { token })).status).toBe(200);
    // The server accepts no more connections but completes running requests.
    await eventually('the server accepts no more connections', async () => {
      const refused = await call(`${extra.baseURL}/livez`).then(
        () => false,
        () => true,
      );
      if (!refused) throw new Error('still accepting');
    });
    socket.write(form);
    expect(responsesIn(await response)[0]?.status).toBe(200);
    expect((await watched).text.split('\n').filter(Boolean).length).toBeGreaterThan(6);
    // An idle keep-alive connection must not delay the shutdown for the whole grace period.
    await eventually(
      'the server has ended',
      () => {
        if (readLog(extra.log).at(-1)?.message !== 'stopped') throw new Error('still running');
      },
      10_000,
    );
    expect(await extra.exited).toBe(0);
  });

  test('a shutdown by SIGINT skips the delay before closing', async () => {
    const extra = await startExtra();
    await extra.ready();
    process.kill(extra.pid, 'SIGINT');
    expect(await extra.exited).toBe(0);
  });

  test('a shutdown ends immediately with exit code 1 when the server receives a second signal', async () => {
    const extra = await startExtra();
    await extra.ready();
    process.kill(extra.pid, 'SIGTERM');
    await eventually('the server has received the first signal', () =>
      expect(readLog(extra.log).at(-1)?.message).toBe('shutting down'),
    );
    process.kill(extra.pid, 'SIGTERM');
    expect(await extra.exited).toBe(1);
  });
});

test('the server presents the TLS certificate from its files, and a new certificate after the files are replaced', async () => {
  expect(given.files?.shown).toBe(given.files?.first);
  await eventually('the new certificate is served', async () => expect(await given.shown()).toBe(given.files?.second));
});
