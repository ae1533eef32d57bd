/**
 * Faults of log stores: the caller gets an error with a specific code, never an empty response and never an address.
 */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { createAuthority } from '../../hack/cluster/pki.ts';
import { StatusError } from '../../src/runtime/errors.ts';
import type { LogStore } from '../../src/logs/stores/log-store.ts';
import type { SecretReader } from '../../src/logs/stores/remote/endpoint.ts';
import { loki } from '../../src/logs/stores/loki/store.ts';
import { searchStoreType } from '../../src/logs/stores/search/store.ts';
import { withTimeout } from '../../src/logs/stores/with-timeout.ts';
import { everything, openForTest } from '../labs/fake-store.ts';

const opensearch = searchStoreType('opensearch');
const elasticsearch = searchStoreType('elasticsearch');

const page = { order: 'desc', from: 0, size: 10 } as const;
const password = 'nobody shall read 8462';
const secrets = { read: () => password };
const neverAborted = new AbortController().signal;

interface Kind {
  readonly name: string;
  /** Responds like a store without records. */
  readonly empty: RequestListener;
  /** Responds with the requested number of records, at most `max`, each with a text of this length. */
  readonly full: (length: number, max?: number) => RequestListener;
  open(url: string, more?: object, read?: SecretReader): LogStore;
}

const found = (hits: readonly object[]) => ({
  timed_out: false,
  _shards: { total: 1, successful: 1, failed: 0 },
  hits: { total: { value: hits.length }, hits },
  aggregations: {
    buckets: { buckets: [] },
    first: { value: null },
    last: { value: null },
  },
});

/** `memory`: the number of records for which the fake server has memory. */
const searchKind = (
  name: 'opensearch' | 'elasticsearch',
  version: object,
  type: typeof opensearch,
  memory = Infinity,
): Kind => {
  const serve =
    (hits: (query: { size: number }) => readonly object[]): RequestListener =>
    (req, res) => {
      let body = '';
      req
        .on('data', (chunk: Buffer) => (body += chunk.toString()))
        .on('end', () => {
          const query = JSON.parse(body === '' ? '{}' : body) as { size: number };
          if (req.url === '/') res.end(JSON.stringify({ version }));
          else if (query.size > memory) res.writeHead(429).end('{"error":{"type":"circuit_breaking_exception"}}');
          // No record lies within the last millisecond.
          else if (body.includes(`"gte":${everything.end}`)) res.end(JSON.stringify(found([])));
          else res.end(JSON.stringify(found(hits(query))));
        });
    };
  let number = 0;
  return {
    name,
    empty: serve(() => []),
    full: (length, max = Infinity) =>
      serve(({ size }) =>
        Array.from({ length: Math.min(size, max) }, () => {
          number += 1;
          const time = new Date(1_700_000_000_000 - number).toISOString();
          return {
            _index: 'a',
            _id: String(number),
            _source: { time, log: 'x'.repeat(length) },
            sort: [Date.parse(time), 'a', number],
          };
        }),
      ),
    open: (url, more = {}, read = secrets) =>
      openForTest(
        type,
        {
          url,
          indexPrefix: 'ks',
          timeField: '@timestamp',
          basicAuth: { username: 'reader', passwordRef: { name: 'a', key: 'b' } },
          ...more,
        },
        read,
      ),
  };
};

const lokiResult = (resultType: string, result: readonly object[]): object => ({ data: { resultType, result } });

const lokiResponses: Readonly<Record<string, (query: URLSearchParams, lines: Lines) => object>> = {
  '/loki/api/v1/query': () => lokiResult('vector', []),
  '/loki/api/v1/query_range': (query, lines) =>
    query.has('step') ? lokiResult('matrix', []) : lokiResult('streams', [{ stream: {}, values: lines(query) }]),
  '/loki/api/v1/label/namespace/values': () => ({ data: ['a'] }),
};

type Lines = (query: URLSearchParams) => readonly (readonly [time: string, line: string])[];

const lokiServer =
  (lines: Lines): RequestListener =>
  (req, res) => {
    let body = '';
    req
      .on('data', (chunk: Buffer) => (body += chunk.toString()))
      .on('end', () => {
        const response = lokiResponses[req.url ?? '']?.(new URLSearchParams(body), lines);
        res.end(JSON.stringify({ status: 'success', ...response }));
      });
  };

const lokiKind = (): Kind => {
  return {
    name: 'loki',
    empty: lokiServer(() => []),
    full: (length, max = Infinity) =>
      lokiServer((query) => {
        let number = BigInt(query.get('end') ?? 0);
        return Array.from({ length: Math.min(Number(query.get('limit')), max) }, () => {
          number -= 1n;
          return [String(number), 'x'.repeat(length)] as const;
        });
      }),
    open: (url, more = {}, read = secrets) =>
      openForTest(
        loki,
        {
          url,
          labels: { namespace: 'namespace', pod: 'pod', container: 'container' },
          basicAuth: { username: 'reader', passwordRef: { name: 'a', key: 'b' } },
          ...more,
        },
        read,
      ),
  };
};

const kinds: readonly Kind[] = [
  searchKind('opensearch', { number: '2.19.1', distribution: 'opensearch' }, opensearch),
  searchKind('elasticsearch', { number: '7.17.29' }, elasticsearch),
  lokiKind(),
];

async function consume(pieces: AsyncIterable<unknown>): Promise<void> {
  for await (const piece of pieces) void piece;
}

const operations: readonly (readonly [string, (store: LogStore, signal?: AbortSignal) => Promise<unknown>])[] = [
  ['query', (store, signal = neverAborted) => store.query(everything, page, signal)],
  ['statistics', (store, signal = neverAborted) => store.statistics(everything, signal)],
  ['histogram', (store, signal = neverAborted) => store.histogram(everything, { count: 1, unit: 'd' }, signal)],
  ['export', (store, signal = neverAborted) => consume(store.export(everything, 'asc', signal))],
  ['check', (store, signal = neverAborted) => store.check(signal)],
];

const cases = kinds.flatMap((kind) =>
  operations.map(([operation, send]) => [`${kind.name} ${operation}`, kind, send] as const),
);

let server: Server;
let url: string;
let response: RequestListener;
const sockets = new Set<Socket>();
const stores: LogStore[] = [];
beforeEach(async () => {
  server = createServer((req, res) => response(req, res));
  url = await listen(server);
});
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  for (const socket of sockets) socket.destroy();
  server.close();
});

async function listen(one: Server | SecureServer): Promise<string> {
  one.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => undefined));
    socket.once('close', () => sockets.delete(socket));
  });
  one.listen(0, '127.0.0.1');
  await once(one, 'listening');
  return `http://127.0.0.1:${(one.address() as AddressInfo).port}`;
}

function open(kind: Kind, more?: object, at = url): LogStore {
  const store = kind.open(at, more);
  stores.push(store);
  return store;
}

async function failure(result: Promise<unknown>): Promise<StatusError> {
  const error: unknown = await result.then(
    () => new Error('the request succeeded'),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StatusError);
  const status = JSON.stringify((error as StatusError).toStatus());
  for (const secret of [
    '127.0.0.1',
    new URL(url).port,
    'reader',
    password,
    Buffer.from(`reader:${password}`).toString('base64'),
  ])
    expect(status).not.toContain(secret);
  return error as StatusError;
}

/** Responds with the fault, after a valid greeting if `isGreeted`. */
const faulty =
  (kind: Kind, fault: (res: ServerResponse, req: IncomingMessage) => void, isGreeted: boolean): RequestListener =>
  (req, res) => {
    if (isGreeted && req.url === '/') kind.empty(req, res);
    else fault(res, req);
  };

const faults: readonly (readonly [string, number, (res: ServerResponse, req: IncomingMessage) => void])[] = [
  ['closes the connection', 503, (res) => res.destroy()],
  ['returns 503', 503, (res) => res.writeHead(503).end('{}')],
  ['returns 429', 503, (res) => res.writeHead(429).end('{}')],
  ['returns 504', 504, (res) => res.writeHead(504).end('{}')],
  ['returns 500', 502, (res) => res.writeHead(500).end('oops')],
  ['returns 400', 502, (res) => res.writeHead(400).end('{"error":"no"}')],
  ['returns 404', 502, (res) => res.writeHead(404).end('not here')],
  ['returns 401', 502, (res) => res.writeHead(401).end('who?')],
  ['returns 403', 502, (res) => res.writeHead(403).end('no')],
  ['redirects', 502, (res) => res.writeHead(302, { Location: 'http://example.com/' }).end()],
  ['returns HTML', 502, (res) => res.end('<html>Welcome</html>')],
  ['returns nothing', 502, (res) => res.end()],
  ['returns half a document', 502, (res) => res.end('{"timed_out":false,"_shards":{"failed":0},"hits":{"hits":[')],
  ['returns another document', 502, (res) => res.end('{"hello":"world"}')],
  ['returns a list', 502, (res) => res.end('[]')],
  ['returns null', 502, (res) => res.end('null')],
  ['returns invalid HTTP', 502, (res) => res.socket?.end('\u0000\u0001 what is this\r\n\r\n')],
  [
    'aborts its response',
    502,
    (res) => {
      res.writeHead(200, { 'Content-Length': 1_000 });
      res.write('{"timed_out":false,', () => res.destroy());
    },
  ],
  [
    'sends an endless response',
    502,
    (res) => {
      const piece = Buffer.alloc(64 * 1024, ' ');
      const more = (): void => {
        while (!res.destroyed && res.write(piece));
        if (!res.destroyed) res.once('drain', more);
      };
      more();
    },
  ],
];

describe.each(cases)('%s', (_name, kind, send) => {
  test.each(faults)('a log store that %s makes a log query return %i', async (_what, code, fault) => {
    for (const isGreeted of [false, true]) {
      response = faulty(kind, fault, isGreeted);
      const before = process.memoryUsage().rss;
      expect((await failure(send(open(kind)))).code).toBe(code);
      expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 * 1024);
    }
  });

  test('a log query returns 503 if the store is down', async () => {
    const store = open(kind);
    server.close();
    const error = await failure(send(store));
    expect([error.code, error.headers]).toEqual([503, { 'Retry-After': '5' }]);
  });

  test('a log query returns 504 and closes the connection if the store does not respond', async () => {
    response = () => undefined;
    const limits = { query: 50, statistics: 50, histogram: 50, export: 50, check: 50 };
    expect((await failure(send(withTimeout(open(kind), limits)))).code).toBe(504);
    await gone();
  });

  test('a log query is aborted at the store when the caller disconnects', async () => {
    const caller = new AbortController();
    const reason = new Error('the caller went away');
    response = () => caller.abort(reason);
    await expect(send(open(kind), caller.signal)).rejects.toBe(reason);
    await gone();
  });

  test('a log query succeeds after a failed log query', async () => {
    const store = open(kind);
    response = (_req, res) => void res.writeHead(500).end();
    await failure(send(store));
    response = kind.empty;
    await expect(send(store)).resolves.not.toThrow();
  });

  test('a log query does not fail when another caller disconnects', async () => {
    const store = open(kind);
    const other = new AbortController();
    const waiting: (() => void)[] = [];
    response = (req, res) => void waiting.push(() => kind.empty(req, res));
    const leaves = send(store, other.signal);
    const stays = send(store);
    while (waiting.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    other.abort(new Error('gone'));
    await expect(leaves).rejects.toThrow('gone');
    response = kind.empty;
    for (const go of waiting) go();
    await expect(stays).resolves.not.toThrow();
  });

  test('a log query succeeds after the store closed an idle connection', async () => {
    const store = open(kind);
    response = kind.empty;
    await send(store);
    for (const socket of sockets) socket.destroy();
    await expect(send(store)).resolves.not.toThrow();
  });
});

/** Waits until no connection to the store is open. */
async function gone(): Promise<void> {
  const end = Date.now() + 1_000;
  while ((await new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)))) > 0) {
    if (Date.now() > end) throw new Error('a connection is open after a second');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

describe.each(kinds.map((kind) => [kind.name, kind] as const))('%s', (_name, kind) => {
  test('an export sends no requests to the log store after its reader stops', async () => {
    response = kind.full(1_000);
    for await (const piece of open(kind).export(everything, 'desc', neverAborted)) if (piece.length > 0) break;
    let requests = 0;
    response = () => (requests += 1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(requests).toBe(0);
  });

  test.each([3_000, 30_000])(
    'an export of records of %i characters keeps less than 4 MiB in memory',
    async (length) => {
      response = kind.full(length);
      let count = 0;
      for await (const records of open(kind).export(everything, 'desc', neverAborted)) {
        expect(records.reduce((sum, { log }) => sum + log.length, 0)).toBeLessThan(4 * 1024 * 1024);
        if ((count += 1) === 3) break;
      }
      expect(count).toBe(3);
    },
  );

  test('an export returns a record that exceeds the size limit of a response', async () => {
    response = kind.full(6 * 1024 * 1024, 3);
    const lengths: number[] = [];
    for await (const [record] of open(kind).export(everything, 'desc', neverAborted)) {
      lengths.push(record?.log.length ?? 0);
      break;
    }
    expect(lengths).toEqual([6 * 1024 * 1024]);
  });

  test('an export does not read ahead from the log store while its caller pauses', async () => {
    let requests = 0;
    response = (req, res) => {
      requests += 1;
      kind.full(1_000)(req, res);
    };
    const pieces = open(kind).export(everything, 'desc', neverAborted);
    await pieces.next();
    await new Promise((resolve) => setTimeout(resolve, 100));
    const before = requests;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(requests).toBe(before);
    await pieces.return({});
  });

  test('the log store receives only configured credentials', async () => {
    const seen: (string | undefined)[] = [];
    response = (req, res) => {
      seen.push(req.headers.authorization);
      kind.empty(req, res);
    };
    await open(kind).check(neverAborted);
    await open(kind, { basicAuth: undefined, tokenRef: { name: 'a', key: 'b' } }).check(neverAborted);
    await open(kind, { basicAuth: undefined }).check(neverAborted);
    const basic = `Basic ${Buffer.from(`reader:${password}`).toString('base64')}`;
    expect([...new Set(seen)]).toEqual([basic, `Bearer ${password}`, undefined]);
  });

  test('a request to a log store fails with 503 if the credential is not a valid header value', async () => {
    response = kind.empty;
    const token = 'two\nlines';
    const store = kind.open(url, { basicAuth: undefined, tokenRef: { name: 'a', key: 'b' } }, { read: () => token });
    stores.push(store);
    const error = await failure(store.check(neverAborted));
    expect([error.code, error.message]).toEqual([503, expect.stringMatching(/credentials/)]);
  });

  test('a log store is trusted only with a certificate of the configured CA', async () => {
    const authority = await createAuthority('stores');
    const { certificate: cert, key } = await authority.issue({ commonName: 'store', server: ['127.0.0.1'] });
    const secure = createSecureServer({ cert, key }, kind.empty);
    const at = (await listen(secure)).replace('http:', 'https:');
    try {
      await open(kind, { caCertificate: authority.certificate }, at).check(neverAborted);
      expect((await failure(open(kind, {}, at).check(neverAborted))).code).toBe(503);
      const other = await createAuthority('stores');
      expect((await failure(open(kind, { caCertificate: other.certificate }, at).check(neverAborted))).code).toBe(503);
    } finally {
      secure.close();
    }
  });
});

test.each(operations)(
  'a request to a search server fails with 503 if the response reports missing shards but no failures: %s',
  async (_name, send) => {
    const version = { number: '2.19.1', distribution: 'opensearch' };
    const body = { ...found([]), _shards: { total: 5, successful: 4, skipped: 0, failed: 0 } };
    response = (req, res) => void res.end(JSON.stringify(req.url === '/' ? { version } : body));
    const error = await failure(send(open(searchKind('opensearch', version, opensearch))));
    expect([error.code, error.message]).toEqual([503, expect.stringMatching(/not ready/)]);
  },
);

describe('a search server', () => {
  const version = { number: '2.19.1', distribution: 'opensearch' };

  async function lengthsOf(count: number, memory?: number, onResponse?: (count: number) => void): Promise<number[]> {
    const kind = searchKind('opensearch', version, opensearch, memory);
    response = kind.full(10);
    const lengths: number[] = [];
    for await (const { length } of open(kind).export(everything, 'desc', neverAborted)) {
      lengths.push(length);
      onResponse?.(lengths.length);
      if (lengths.length === count) break;
    }
    return lengths;
  }

  test('a search server receives larger requests while records are short', async () => {
    expect(await lengthsOf(5)).toEqual([1_000, 2_000, 4_000, 5_000, 5_000]);
  });

  test('a search server receives smaller requests as soon as records are long', async () => {
    const long = searchKind('opensearch', version, opensearch).full(10_000);
    const lengths = await lengthsOf(5, Infinity, (count) => {
      if (count === 3) response = long;
    });
    expect(lengths.slice(0, 3)).toEqual([1_000, 2_000, 4_000]);
    expect(Math.max(...lengths.slice(3))).toBeLessThan(420);
  });

  test('a search server receives smaller requests when it runs out of memory', async () => {
    expect(await lengthsOf(3, 300)).toEqual([250, 125, 250]);
  });

  test('a search server that runs out of memory even for one record is reported as not ready', async () => {
    const error = await failure(lengthsOf(1, 0));
    expect([error.code, error.headers, error.message]).toEqual([
      503,
      { 'Retry-After': '5' },
      'the log store "opensearch" is low on memory',
    ]);
  });
});

test.each([
  ['opensearch', { number: '7.10.2' }, opensearch],
  ['elasticsearch', { number: '2.19.1', distribution: 'opensearch' }, elasticsearch],
  ['elasticsearch', { number: '5.6.16' }, elasticsearch],
] as const)('the log store type %s rejects a server with the version %j', async (name, version, make) => {
  const kind = searchKind(name, version, make);
  response = kind.empty;
  expect((await failure(open(kind).check(neverAborted))).code).toBe(502);
});
