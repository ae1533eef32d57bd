/** What a store does wrong, as whoever asks it learns: an error with a code of its own, never an empty answer, never an address. */
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
const never = new AbortController().signal;

interface Kind {
  readonly name: string;
  /** Answers as a store does that has nothing. */
  readonly empty: RequestListener;
  /** As many records as are asked for, but no more than `most`, each with a text of this length. */
  readonly full: (length: number, most?: number) => RequestListener;
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

/** `memory`: the most records for which the server has it. */
const searchKind = (
  name: 'opensearch' | 'elasticsearch',
  version: object,
  type: typeof opensearch,
  memory = Infinity,
): Kind => {
  const serve =
    (hits: (asked: { size: number }) => readonly object[]): RequestListener =>
    (req, res) => {
      let body = '';
      req
        .on('data', (chunk: Buffer) => (body += chunk.toString()))
        .on('end', () => {
          const asked = JSON.parse(body === '' ? '{}' : body) as { size: number };
          if (req.url === '/') res.end(JSON.stringify({ version }));
          else if (asked.size > memory) res.writeHead(429).end('{"error":{"type":"circuit_breaking_exception"}}');
          // Of those within the millisecond of the end there are none.
          else if (body.includes(`"gte":${everything.end}`)) res.end(JSON.stringify(found([])));
          else res.end(JSON.stringify(found(hits(asked))));
        });
    };
  let number = 0;
  return {
    name,
    empty: serve(() => []),
    full: (length, most = Infinity) =>
      serve(({ size }) =>
        Array.from({ length: Math.min(size, most) }, () => {
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

const lokiAnswers: Readonly<Record<string, (asked: URLSearchParams, lines: Lines) => object>> = {
  '/loki/api/v1/query': () => lokiResult('vector', []),
  '/loki/api/v1/query_range': (asked, lines) =>
    asked.has('step') ? lokiResult('matrix', []) : lokiResult('streams', [{ stream: {}, values: lines(asked) }]),
  '/loki/api/v1/label/namespace/values': () => ({ data: ['a'] }),
};

type Lines = (asked: URLSearchParams) => readonly (readonly [time: string, line: string])[];

const lokiServer =
  (lines: Lines): RequestListener =>
  (req, res) => {
    let body = '';
    req
      .on('data', (chunk: Buffer) => (body += chunk.toString()))
      .on('end', () => {
        const answer = lokiAnswers[req.url ?? '']?.(new URLSearchParams(body), lines);
        res.end(JSON.stringify({ status: 'success', ...answer }));
      });
  };

const lokiKind = (): Kind => {
  return {
    name: 'loki',
    empty: lokiServer(() => []),
    full: (length, most = Infinity) =>
      lokiServer((asked) => {
        let number = BigInt(asked.get('end') ?? 0);
        return Array.from({ length: Math.min(Number(asked.get('limit')), most) }, () => {
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

async function whole(pieces: AsyncIterable<unknown>): Promise<void> {
  for await (const piece of pieces) void piece;
}

const asking: readonly (readonly [string, (store: LogStore, signal?: AbortSignal) => Promise<unknown>])[] = [
  ['query', (store, signal = never) => store.query(everything, page, signal)],
  ['statistics', (store, signal = never) => store.statistics(everything, signal)],
  ['histogram', (store, signal = never) => store.histogram(everything, { count: 1, unit: 'd' }, signal)],
  ['export', (store, signal = never) => whole(store.export(everything, 'asc', signal))],
  ['check', (store, signal = never) => store.check(signal)],
];

const cases = kinds.flatMap((kind) =>
  asking.map(([operation, ask]) => [`${kind.name} ${operation}`, kind, ask] as const),
);

let server: Server;
let url: string;
let answer: RequestListener;
const sockets = new Set<Socket>();
const stores: LogStore[] = [];
beforeEach(async () => {
  server = createServer((req, res) => answer(req, res));
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

async function failure(asked: Promise<unknown>): Promise<StatusError> {
  const error: unknown = await asked.then(
    () => new Error('it was answered'),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StatusError);
  const told = JSON.stringify((error as StatusError).toStatus());
  for (const secret of [
    '127.0.0.1',
    new URL(url).port,
    'reader',
    password,
    Buffer.from(`reader:${password}`).toString('base64'),
  ])
    expect(told).not.toContain(secret);
  return error as StatusError;
}

/** Greets, if the store has to be greeted, and does then as the fault has it. */
const faulty =
  (kind: Kind, fault: (res: ServerResponse, req: IncomingMessage) => void, isGreeted: boolean): RequestListener =>
  (req, res) => {
    if (isGreeted && req.url === '/') kind.empty(req, res);
    else fault(res, req);
  };

const faults: readonly (readonly [string, number, (res: ServerResponse, req: IncomingMessage) => void])[] = [
  ['hangs up', 503, (res) => res.destroy()],
  ['answers 503', 503, (res) => res.writeHead(503).end('{}')],
  ['answers 429', 503, (res) => res.writeHead(429).end('{}')],
  ['answers 504', 504, (res) => res.writeHead(504).end('{}')],
  ['answers 500', 502, (res) => res.writeHead(500).end('oops')],
  ['answers 400', 502, (res) => res.writeHead(400).end('{"error":"no"}')],
  ['answers 404', 502, (res) => res.writeHead(404).end('not here')],
  ['answers 401', 502, (res) => res.writeHead(401).end('who?')],
  ['answers 403', 502, (res) => res.writeHead(403).end('no')],
  ['leads elsewhere', 502, (res) => res.writeHead(302, { Location: 'http://example.com/' }).end()],
  ['answers a page', 502, (res) => res.end('<html>Welcome</html>')],
  ['answers nothing', 502, (res) => res.end()],
  ['answers half a document', 502, (res) => res.end('{"timed_out":false,"_shards":{"failed":0},"hits":{"hits":[')],
  ['answers another document', 502, (res) => res.end('{"hello":"world"}')],
  ['answers a list', 502, (res) => res.end('[]')],
  ['answers null', 502, (res) => res.end('null')],
  ['answers no HTTP', 502, (res) => res.socket?.end('\u0000\u0001 what is this\r\n\r\n')],
  [
    'breaks off in the middle',
    502,
    (res) => {
      res.writeHead(200, { 'Content-Length': 1_000 });
      res.write('{"timed_out":false,', () => res.destroy());
    },
  ],
  [
    'never ends',
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

describe.each(cases)('%s', (_name, kind, ask) => {
  test.each(faults)('of a store that %s is %i', async (_what, code, fault) => {
    for (const isGreeted of [false, true]) {
      answer = faulty(kind, fault, isGreeted);
      const before = process.memoryUsage().rss;
      expect((await failure(ask(open(kind)))).code).toBe(code);
      expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 * 1024);
    }
  });

  test('of a store that is down is 503', async () => {
    const store = open(kind);
    server.close();
    const error = await failure(ask(store));
    expect([error.code, error.headers]).toEqual([503, { 'Retry-After': '5' }]);
  });

  test('of a store that does not answer is 504, and it is left alone', async () => {
    answer = () => undefined;
    const limits = { query: 50, statistics: 50, histogram: 50, export: 50, check: 50 };
    expect((await failure(ask(withTimeout(open(kind), limits)))).code).toBe(504);
    await gone();
  });

  test('ends at the store when the caller goes', async () => {
    const caller = new AbortController();
    const reason = new Error('the caller went away');
    answer = () => caller.abort(reason);
    await expect(ask(open(kind), caller.signal)).rejects.toBe(reason);
    await gone();
  });

  test('is answered again after a failure', async () => {
    const store = open(kind);
    answer = (_req, res) => void res.writeHead(500).end();
    await failure(ask(store));
    answer = kind.empty;
    await expect(ask(store)).resolves.not.toThrow();
  });

  test('does not fail because somebody else went away', async () => {
    const store = open(kind);
    const other = new AbortController();
    const waiting: (() => void)[] = [];
    answer = (req, res) => void waiting.push(() => kind.empty(req, res));
    const leaves = ask(store, other.signal);
    const stays = ask(store);
    while (waiting.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    other.abort(new Error('gone'));
    await expect(leaves).rejects.toThrow('gone');
    answer = kind.empty;
    for (const go of waiting) go();
    await expect(stays).resolves.not.toThrow();
  });

  test('goes on where the store ended a connection that was kept', async () => {
    const store = open(kind);
    answer = kind.empty;
    await ask(store);
    for (const socket of sockets) socket.destroy();
    await expect(ask(store)).resolves.not.toThrow();
  });
});

/** Nothing is asked any more. */
async function gone(): Promise<void> {
  const end = Date.now() + 1_000;
  while ((await new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)))) > 0) {
    if (Date.now() > end) throw new Error('a connection is open after a second');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

describe.each(kinds.map((kind) => [kind.name, kind] as const))('%s', (_name, kind) => {
  test('an export that is left asks for nothing more', async () => {
    answer = kind.full(1_000);
    for await (const piece of open(kind).export(everything, 'desc', never)) if (piece.length > 0) break;
    let asked = 0;
    answer = () => (asked += 1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(asked).toBe(0);
  });

  test.each([3_000, 30_000])('an export holds little of records of %i characters', async (length) => {
    answer = kind.full(length);
    let count = 0;
    for await (const records of open(kind).export(everything, 'desc', never)) {
      expect(records.reduce((sum, { log }) => sum + log.length, 0)).toBeLessThan(4 * 1024 * 1024);
      if ((count += 1) === 3) break;
    }
    expect(count).toBe(3);
  });

  test('a record that is larger than many together may be is exported', async () => {
    answer = kind.full(6 * 1024 * 1024, 3);
    const lengths: number[] = [];
    for await (const [record] of open(kind).export(everything, 'desc', never)) {
      lengths.push(record?.log.length ?? 0);
      break;
    }
    expect(lengths).toEqual([6 * 1024 * 1024]);
  });

  test('an export whose caller pauses does not read ahead', async () => {
    let asked = 0;
    answer = (req, res) => {
      asked += 1;
      kind.full(1_000)(req, res);
    };
    const pieces = open(kind).export(everything, 'desc', never);
    await pieces.next();
    await new Promise((resolve) => setTimeout(resolve, 100));
    const before = asked;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(asked).toBe(before);
    await pieces.return({});
  });

  test('credentials are sent, and only those that there are', async () => {
    const seen: (string | undefined)[] = [];
    answer = (req, res) => {
      seen.push(req.headers.authorization);
      kind.empty(req, res);
    };
    await open(kind).check(never);
    await open(kind, { basicAuth: undefined, tokenRef: { name: 'a', key: 'b' } }).check(never);
    await open(kind, { basicAuth: undefined }).check(never);
    const basic = `Basic ${Buffer.from(`reader:${password}`).toString('base64')}`;
    expect([...new Set(seen)]).toEqual([basic, `Bearer ${password}`, undefined]);
  });

  test('a credential that no header can have is no credential', async () => {
    answer = kind.empty;
    const token = 'two\nlines';
    const store = kind.open(url, { basicAuth: undefined, tokenRef: { name: 'a', key: 'b' } }, { read: () => token });
    stores.push(store);
    const error = await failure(store.check(never));
    expect([error.code, error.message]).toEqual([503, expect.stringMatching(/credentials/)]);
  });

  test('a store is believed by its own CA alone', async () => {
    const authority = await createAuthority('stores');
    const { certificate: cert, key } = await authority.issue({ commonName: 'store', server: ['127.0.0.1'] });
    const secure = createSecureServer({ cert, key }, kind.empty);
    const at = (await listen(secure)).replace('http:', 'https:');
    try {
      await open(kind, { caCertificate: authority.certificate }, at).check(never);
      expect((await failure(open(kind, {}, at).check(never))).code).toBe(503);
      const other = await createAuthority('stores');
      expect((await failure(open(kind, { caCertificate: other.certificate }, at).check(never))).code).toBe(503);
    } finally {
      secure.close();
    }
  });
});

test.each(asking)(
  'a search server that has not all shards yet, and counts none as failed, is not ready: %s',
  async (_name, ask) => {
    const version = { number: '2.19.1', distribution: 'opensearch' };
    const body = { ...found([]), _shards: { total: 5, successful: 4, skipped: 0, failed: 0 } };
    answer = (req, res) => void res.end(JSON.stringify(req.url === '/' ? { version } : body));
    const error = await failure(ask(open(searchKind('opensearch', version, opensearch))));
    expect([error.code, error.message]).toEqual([503, expect.stringMatching(/not ready/)]);
  },
);

describe('a search server, which makes an answer as a whole,', () => {
  const version = { number: '2.19.1', distribution: 'opensearch' };

  async function lengthsOf(count: number, memory?: number, onAnswer?: (count: number) => void): Promise<number[]> {
    const kind = searchKind('opensearch', version, opensearch, memory);
    answer = kind.full(10);
    const lengths: number[] = [];
    for await (const { length } of open(kind).export(everything, 'desc', never)) {
      lengths.push(length);
      onAnswer?.(lengths.length);
      if (lengths.length === count) break;
    }
    return lengths;
  }

  test('is asked for more records at once while they are short', async () => {
    expect(await lengthsOf(5)).toEqual([1_000, 2_000, 4_000, 5_000, 5_000]);
  });

  test('is asked for fewer as soon as they are long', async () => {
    const long = searchKind('opensearch', version, opensearch).full(10_000);
    const lengths = await lengthsOf(5, Infinity, (count) => {
      if (count === 3) answer = long;
    });
    expect(lengths.slice(0, 3)).toEqual([1_000, 2_000, 4_000]);
    expect(Math.max(...lengths.slice(3))).toBeLessThan(420);
  });

  test('is asked for fewer when it is short of memory', async () => {
    expect(await lengthsOf(3, 300)).toEqual([250, 125, 250]);
  });

  test('and is short of memory even for one record, is not ready', async () => {
    const error = await failure(lengthsOf(1, 0));
    expect([error.code, error.headers, error.message]).toEqual([
      503,
      { 'Retry-After': '5' },
      'the log store "opensearch" is short of memory',
    ]);
  });
});

test.each([
  ['opensearch', { number: '7.10.2' }, opensearch],
  ['elasticsearch', { number: '2.19.1', distribution: 'opensearch' }, elasticsearch],
  ['elasticsearch', { number: '5.6.16' }, elasticsearch],
] as const)('%s does not take %j for its own', async (name, version, make) => {
  const kind = searchKind(name, version, make);
  answer = kind.empty;
  expect((await failure(open(kind).check(never))).code).toBe(502);
});
