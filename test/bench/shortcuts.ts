/**
 * Process that measures the CPU time that each shortcut of the hot path saves. The measurements of a shortcut and of
 * the plain implementation alternate. Sends each `Shortcut` to its parent and exits. Standard output is a pipe, as in a
 * container.
 */
import { createHmac, generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { Writable } from 'node:stream';
import { setImmediate as immediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Router, type Request, type Response } from 'express';
import { Client } from 'undici';
import { accessReview } from '../../src/auth/authorizers/access-review.ts';
import type { UserInfo } from '../../src/auth/user.ts';
import type { KubeClient } from '../../src/cluster/client/client.ts';
import { createUpstream, identityOf, type Upstream } from '../../src/cluster/client/upstream.ts';
import { addressOf } from '../../src/cluster/wire/connections.ts';
import { forward } from '../../src/gateway/proxy.ts';
import { authenticated } from '../../src/http/access.ts';
import { BodyWriter } from '../../src/http/response/body-writer.ts';
import { lengthOf, type Streamed, write, writeList } from '../../src/http/response/write.ts';
import type { RequestContext, Route } from '../../src/http/route.ts';
import { createMatch } from '../../src/http/router.ts';
import { createLogger, logRequest, StandardOutput } from '../../src/runtime/logger.ts';
import { redactText } from '../../src/runtime/redaction.ts';
import { rfc3339 } from '../../src/runtime/time.ts';
import { Slice, visitInSlices } from '../../src/runtime/slice.ts';
import { Tokens, type TokenSettings } from '../../src/tokens/jwt.ts';
import { RefreshTokens } from '../../src/tokens/refresh-tokens.ts';
import type { Session } from '../../src/tokens/sessions/session.ts';
import type { SigningKeys } from '../../src/tokens/signing-keys.ts';
import { eventHead, issuerNamespace, latestTemplates, unreadStatus } from './change-shortcuts.ts';
import { Connection } from './connection.ts';
import { knownBearer, repeatedQuery, repeatedTarget } from './read-shortcuts.ts';
import { median } from './statistics.ts';

/** Median CPU time per call over the rounds, in microseconds. */
export interface Shortcut {
  readonly name: string;
  readonly short: number;
  readonly plain: number;
  /** CPU time that the shortcut saves per small GET, in microseconds. */
  readonly saved: number;
  /** Median of `plain ÷ short` over the rounds. */
  readonly ratio: number;
  /** Minimum ratio. The benchmark fails below this ratio, because the shortcut is then broken or no longer needed. */
  readonly min: number;
}

export interface Compared {
  readonly name: string;
  readonly min: number;
  /** Number of uses of the shortcut per small GET; 0 by default. */
  readonly perGet?: number;
  /** Number of uses of the shortcut per call; 1 by default. */
  readonly perCall?: number;
  readonly short: () => unknown;
  readonly plain: () => unknown;
}

const rounds = 5;
/**
 * Duration of a round in milliseconds. A round must be long, because the CPU time of one thread has a resolution of
 * only 4 ms.
 */
const roundTime = 200;
const batch = 20;

async function cost(run: () => unknown): Promise<number> {
  const end = performance.now() + roundTime;
  const before = process.threadCpuUsage();
  let calls = 0;
  while (performance.now() < end) {
    for (let index = 0; index < batch; index += 1) {
      const pending = run();
      if (pending instanceof Promise) await pending;
    }
    calls += batch;
  }
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / calls;
}

async function compare({ name, min, perGet = 0, perCall = 1, short, plain }: Compared): Promise<Shortcut> {
  const costs: [short: number, plain: number][] = [];
  // The first round is not counted, because V8 compiles the code in it.
  for (let round = 0; round <= rounds; round += 1) costs.push([await cost(short), await cost(plain)]);
  const counted = costs.slice(1);
  const [one, other] = [0, 1].map((at) => median(counted.map((pair) => (pair[at] ?? NaN) / perCall))) as [
    number,
    number,
  ];
  const ratio = median(counted.map(([first, second]) => second / first));
  return { name, min, short: one, plain: other, saved: perGet * (other - one), ratio };
}

const log = createLogger();

interface Description {
  readonly paths: Readonly<Record<string, object>>;
}

function routesOfPlatform(): Route[] {
  const description = new URL('../../api/platform.v3.json', import.meta.url);
  const { paths } = JSON.parse(readFileSync(description, 'utf8')) as Description;
  return Object.keys(paths).map((path): Route => ({
    method: 'get',
    path: path.replaceAll(/\{(\w+)\}/g, ':$1'),
    summary: path,
    access: authenticated,
    handler: () => undefined,
  }));
}

const table = routesOfPlatform();

function routeTable(): Compared {
  const path = '/kapis/resources.platform.io/v1alpha3/nodes/node-17';
  const request = (): Request => ({ method: 'GET', url: path }) as Request;
  const match = createMatch(table);
  const router = Router({ caseSensitive: true });
  for (const route of table) router.get(route.path, () => undefined);
  return {
    name: 'a route found by its segments',
    min: 3,
    perGet: 1,
    short: () => match(request(), {} as Response, path),
    plain: () => router(request(), {} as Response, () => undefined),
  };
}

function accessLog(): Compared {
  const line = {
    time: Date.now(),
    auditID: '1b4e28ba-2fa1-11d2-883f-0016d3cca427',
    method: 'GET',
    path: '/kapis/resources.platform.io/v1alpha3/nodes/node-17',
    verb: 'get',
    status: 200,
    seconds: 0.0012,
    sourceIP: '192.0.2.7',
    userAgent: 'kubectl/v1.34.1 (linux/amd64) kubernetes/abcdef',
    user: 'alice',
    via: 'token',
    aborted: false,
    traceID: undefined,
  };
  return {
    name: 'an access log line written without winston',
    min: 2,
    perGet: 1,
    short: () => logRequest(log, 'info', line),
    plain: () => log.log('info', 'request', line),
  };
}

const written = (): Promise<void> => new Promise((resolve) => process.stdout.write('', () => resolve()));

function output(): Compared {
  const together = new StandardOutput();
  const line = 'x'.repeat(400);
  // Number of lines that arrive within 5 ms at 4,000 requests per second.
  const lines = Array.from({ length: 20 }, () => line);
  return {
    name: 'log lines written together',
    min: 2,
    // Each request writes a line to the log and a line to the audit log.
    perGet: 2,
    perCall: 21,
    short: async () => {
      for (const one of lines) together.write(one);
      together.write(line, true);
      await written();
    },
    plain: async () => {
      for (const one of [...lines, line]) process.stdout.write(`${one}\n`);
      await written();
    },
  };
}

const session = {
  metadata: { name: 'a'.repeat(32) },
  spec: { clientID: 'platform', createdAt: '2026-11-23T08:00:00Z', expiresAt: '2026-11-24T08:00:00Z' },
  status: { phase: 'Active', lastUsedAt: '2026-11-23T09:00:00Z' },
} as unknown as Session;

function knownToken(): Compared {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = { kid: 'ES256', alg: 'ES256' as const, privateKey, publicKey };
  const keys = { generation: 1, find: () => key, current: () => key } as unknown as SigningKeys;
  const subject = { username: 'alice', uid: 'u', groups: ['a', 'b'], displayName: undefined, email: undefined };
  const made = { issuer: 'https://platform.example', accessTokenMaxAge: 86_400_000, maximumClockSkew: 10_000 };
  const settings = (): TokenSettings => ({ ...made, signingAlgorithm: 'ES256' });
  const fresh = (): Tokens => new Tokens({ keys, idTokenClients: () => [], settings, clock: Date.now });
  const tokens = fresh();
  const lasting = { ...session, spec: { ...session.spec, expiresAt: new Date(Date.now() + 86_400_000).toISOString() } };
  const { token } = tokens.issueAccess(lasting, subject, 'openid');
  return {
    name: 'a token that was verified before',
    min: 10,
    perGet: 1,
    short: () => tokens.verifyAccess(token),
    plain: () => fresh().verifyAccess(token),
  };
}

const groups = Array.from({ length: 5 }, (_, index) => `company:team-${index}`);
const alice: UserInfo = { username: 'alice', uid: '1b4e28ba-2fa1-11d2', groups, via: 'token' };

function impersonation(): Compared {
  const caller = { ...alice, proved: false };
  return {
    name: 'impersonation headers of a known caller',
    min: 10,
    short: () => identityOf(caller),
    plain: () => identityOf({ ...caller }),
  };
}

function redaction(): Compared {
  const line = 'GET /kapis/resources.platform.io/v1alpha3/nodes/node-17 kubectl/v1.34.1 (linux/amd64)';
  return {
    name: 'redaction of a text without secrets',
    min: 3,
    // Each request writes one such text to the access log and one to the audit log.
    perGet: 2,
    short: () => redactText(line),
    plain: () => redactText(`${line} eyJ basic`),
  };
}

function timestamps(): Compared {
  return {
    name: 'times of one second formatted together',
    min: 1.5,
    // Each request writes two times to the audit event and one to the access log.
    perGet: 3,
    short: () => rfc3339(Date.now()),
    plain: () => new Date().toISOString(),
  };
}

/** Returns a response on a connection that accepts all writes. */
function response(): Response {
  const socket = new Writable({ write: (_chunk, _encoding, done) => done(), writev: (_chunks, done) => done() });
  const res = new ServerResponse(new IncomingMessage(new Socket()));
  res.assignSocket(socket as Socket);
  return res as Response;
}

function shortBody(): Compared {
  const req = { method: 'GET', headers: {} } as Request;
  const body = [Buffer.alloc(1_000, 'x'), Buffer.from('\n')];
  const contentType = 'application/json';
  const plain = async (): Promise<Streamed> => ({ length: 1_001, parts: [body] });
  return {
    name: 'a short body in one piece',
    min: 1.2,
    perGet: 1,
    short: () => write(req, response(), { contentType, body }),
    plain: () => writeList(req, response(), { contentType, items: body, plain }),
  };
}

type Serve = (req: Request, res: Response) => unknown;

/** Returns a function that sends a request over a connection to `serve`. */
async function requested(serve: Serve): Promise<() => Promise<unknown>> {
  const server = createServer((req, res) => void serve(req as Request, res as Response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connection = new Connection({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
  const request = Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  return () => connection.send(request);
}

async function smallPieces(): Promise<Compared> {
  const body = Array.from({ length: 1_000 }, () => [Buffer.alloc(100, 'x'), Buffer.from(',')]).flat();
  const head = { 'Content-Type': 'application/json', 'Content-Length': lengthOf(body) };
  return {
    name: 'small pieces of a list copied together',
    min: 1.5,
    short: await requested((req, res) => write(req, res, { contentType: 'application/json', body })),
    plain: await requested((_, res) => new BodyWriter(res.writeHead(200, head)).end(...body)),
  };
}

/** Delivers two chunks per turn of the event loop, as kube-apiserver does. */
async function arrive(chunks: readonly Buffer[], use: (chunk: Buffer) => unknown): Promise<void> {
  for (const [index, chunk] of chunks.entries()) {
    use(chunk);
    if (index % 2 === 1) await immediate();
  }
}

async function proxied(): Promise<Compared> {
  const chunks = Array.from({ length: 64 }, () => Buffer.alloc(2_048, 'x'));
  const upstream: Pick<Upstream, 'send'> = {
    async send(_, handler) {
      handler.onHead(200, 'OK', []);
      void arrive(chunks, (chunk) => handler.onData(chunk)).then(() => handler.onEnd([]));
      return { pause: () => undefined, resume: () => undefined, abort: () => undefined };
    },
  };
  const info = { isLongRunning: false, subresource: '' };
  const context = { user: alice, info, onEnd: () => undefined } as unknown as RequestContext;
  return {
    name: 'a proxied response in large writes',
    min: 1.3,
    short: await requested((req, res) => forward(upstream as Upstream, req, res, context)),
    plain: await requested(async (_, res) => {
      res.writeHead(200);
      await arrive(chunks, (chunk) => res.write(chunk));
      res.end();
    }),
  };
}

/**
 * Responds to every request as kube-apiserver does for a ServiceAccount, in a separate thread whose CPU time does not
 * count.
 */
const respondingServer = `
  const { createServer } = require('node:http');
  const body = Buffer.alloc(500, 'x');
  const server = createServer((req, res) => {
    res.writeHead(200, { 'Audit-Id': 'a', 'Cache-Control': 'no-cache, private', 'Content-Type': 'application/json',
      'X-Kubernetes-Pf-Flowschema-Uid': 'b', 'X-Kubernetes-Pf-Prioritylevel-Uid': 'c', 'Content-Length': body.length });
    res.end(body);
  }).listen(0, '127.0.0.1', () => require('node:worker_threads').parentPort.postMessage(server.address().port));
`;

/** Compares a request to kube-apiserver with the minimum work of undici for the same request (ADR 9). */
async function ownConnections(): Promise<Compared> {
  const worker = new Worker(respondingServer, { eval: true });
  const [port] = (await once(worker, 'message')) as [number];
  const url = `http://127.0.0.1:${port}`;
  const authorization = 'Bearer of-the-server';
  const credential = { headers: async () => ({ Authorization: authorization }), renew: () => undefined };
  const upstream = createUpstream({ address: addressOf(url, { rejectUnauthorized: true }), credential });
  const client = new Client(url);
  const target = '/api/v1/namespaces/bench/serviceaccounts/reader-1';
  const headers = ['Accept', 'application/json', 'User-Agent', 'kubectl/v1.36.0'];
  const caller = { ...alice, proved: false };
  return {
    name: 'a request over own connections to kube-apiserver',
    min: 1.1,
    short: () =>
      new Promise<void>((resolve, reject) => {
        const handler = { onHead: () => undefined, onData: () => undefined, onEnd: () => resolve(), onError: reject };
        upstream.send({ method: 'GET', target, headers, user: caller, isLongRunning: false }, handler).catch(reject);
      }),
    plain: () =>
      new Promise<void>((resolve, reject) => {
        const identity = ['Authorization', authorization, ...identityOf(caller)];
        client.dispatch(
          { method: 'GET', path: target, headers: [...headers, ...identity] },
          {
            onRequestStart: () => undefined,
            onResponseStart: () => undefined,
            onResponseData: () => undefined,
            onResponseEnd: () => resolve(),
            onResponseError: (_, error) => reject(error),
          },
        );
      }),
  };
}

function reviewKey(): Compared {
  const review = { status: { allowed: true } };
  const client = { json: async () => review } as unknown as KubeClient;
  const authorizer = accessReview(client);
  const manyGroups = Array.from({ length: 50 }, (_, index) => `company:team-${index}`);
  const attributes = { verb: 'get', group: '', resource: 'nodes', name: 'node-17' };
  const caller = { ...alice, groups: manyGroups };
  return {
    name: 'the digest of a caller with 50 groups',
    min: 2,
    short: () => authorizer.authorize(caller, attributes),
    plain: () => authorizer.authorize({ ...caller }, attributes),
  };
}

function visits(): Compared {
  const objects = Array.from({ length: 5_000 }, (_, index) => ({ rack: index % 10 }));
  const waiting = { signal: new AbortController().signal };
  let found = 0;
  const visit = (object: { readonly rack: number }): void => {
    if (object.rack === 3) found += 1;
  };
  return {
    name: 'a check of the time only after many objects',
    min: 2,
    short: () => visitInSlices(objects, waiting, visit),
    plain: async () => {
      const slice = new Slice(waiting);
      for (const object of objects) {
        if (slice.isOver) await slice.next();
        visit(object);
      }
    },
  };
}

function refreshKey(): Compared {
  const key = randomBytes(32);
  const tokens = new RefreshTokens(key);
  return {
    name: 'the HMAC key of refresh tokens as a KeyObject',
    min: 1.5,
    short: () => tokens.derive('text'),
    plain: () => createHmac('sha256', key).update('derived text').digest('base64url'),
  };
}

for (const make of [
  routeTable,
  () => repeatedTarget(table),
  repeatedQuery,
  () => knownBearer(alice),
  accessLog,
  output,
  knownToken,
  impersonation,
  redaction,
  timestamps,
  shortBody,
  smallPieces,
  proxied,
  ownConnections,
  reviewKey,
  visits,
  refreshKey,
  eventHead,
  unreadStatus,
  latestTemplates,
  issuerNamespace,
]) {
  const shortcut = await compare(await make());
  await new Promise((resolve) => process.send?.(shortcut, undefined, undefined, resolve));
}
process.exit();
