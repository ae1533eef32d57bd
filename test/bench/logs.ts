/** Compares the cost of reading logs through our server with the cost of querying the same OpenSearch directly. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../hack/cluster/chosen.ts';
import { until } from '../../hack/cluster/until.ts';
import { startSearchServer } from '../../hack/log-stores/search-servers.ts';
import { installChart } from '../../hack/run/chart.ts';
import type { LogRecord } from '../../src/logs/stores/log-store.ts';
import { at, corpus, createRecords } from '../conformance/log-store/corpus.ts';
import { indexPrefix, load } from '../conformance/log-store/fluent-bit.ts';
import { sendOnce, Connection, type Target } from './connection.ts';
import { readPages, type Reading } from './flood.ts';
import { memory, resetPeaks } from './processes.ts';
import { request } from './requests.ts';
import type { Stand } from './stand.ts';
import { median } from './statistics.ts';

export interface LogFigures {
  /** p50 of the durations of sequential queries, in milliseconds. */
  readonly query: { readonly ours: number; readonly direct: number };
  /** Exported records per second. */
  readonly export: { readonly ours: number; readonly direct: number };
  /**
   * Memory of our server in megabytes: before an export of a million records, and the peak in each half of the export.
   */
  readonly rss: { readonly before: number; readonly firstHalf: number; readonly secondHalf: number };
  /** Latency of pages of nodes for one reader, without and with concurrent log queries. */
  readonly pages: { readonly idle: Reading; readonly during: Reading; readonly queriesPerSecond: number };
  readonly problems: readonly string[];
}

const searched = 200_000;
const exported = 1_000_000;
const atOnce = 50_000;
const queries = 400;
const warmUp = 100;
const rounds = 3;
const together = 100;
/** Number of records per request to OpenSearch, which is the same as in our server. */
const pageSize = 5_000;
const sampling = 100;
const timeout = 60_000;
const settle = 5_000;

const api = '/kapis/logging.platform.io/v1alpha2/logs';
const { start, end } = corpus;
// Time of new records. This time is after the searched range, so that the searched records stay unchanged.
const later = end + 10 * 86_400;
const namespaces = ['ns-1', 'ns-2'];
const word = 'refused';

export async function measureLogs(stand: Stand, signal: AbortSignal): Promise<LogFigures> {
  const dir = await mkdtemp(join(tmpdir(), 'platform-apiserver-bench-logs-'));
  const store = await startSearchServer('opensearch-2.19.1', dir, await freePort(29_500));
  try {
    const records = createRecords(searched);
    await load(store.url, records, { shards: 1, isTyped: false });
    for (let from = 0; from < exported; from += atOnce)
      await load(store.url, many(from), { shards: 1, isTyped: false });
    return await withStore(stand, store.url, async () => await measure(stand, store.url, records, signal));
  } finally {
    await store.stop();
    await rm(dir, { recursive: true, force: true });
  }
}

const text = (number: number): string =>
  `GET /api/v1/items/${number} 200 in ${number % 97} ms for a client of the shop`;

const many = (from: number): LogRecord[] =>
  Array.from({ length: atOnce }, (_, index) => ({
    time: at(later + Math.floor((from + index) / 10), ((from + index) % 10) * 100_000_000),
    namespace: 'shop',
    pod: `web-${index % 20}`,
    container: 'web',
    log: text(from + index),
  }));

/** Makes our server use the log store at this URL while `work` runs. */
async function withStore<T>({ site, users }: Stand, url: string, work: () => Promise<T>): Promise<T> {
  const values = users.values as { readonly config: object };
  const logging = { store: 'opensearch', opensearch: { url, indexPrefix } };
  await installChart(site.kubeconfig, { ...values, config: { ...values.config, logging } });
  try {
    const { plain, tokens, check } = site.ours;
    const { text: whole } = request(
      `${api}?start_time=${start}&end_time=${end}&size=0`,
      {},
      { token: tokens.plain[0] },
    );
    await until(
      'the logs are those of the store',
      check,
      async () => {
        const { status, body } = await sendOnce(plain, whole);
        if (status !== 200) throw new Error(String(body));
        return String(body).includes(`"total":${searched},`);
      },
      timeout,
    );
    return await work();
  } finally {
    await installChart(site.kubeconfig, values);
  }
}

async function measure(
  { site }: Stand,
  url: string,
  records: readonly LogRecord[],
  signal: AbortSignal,
): Promise<LogFigures> {
  const { plain, tokens, pids } = site.ours;
  const token = tokens.plain[0];
  const problems = new Set<string>();
  const direct: Target = { host: '127.0.0.1', port: Number(new URL(url).port) };
  const query = await measureQueries(plain, direct, token, problems, signal);
  const rates = await measureExports(plain, direct, token, records, problems, signal);
  const rss = await measureMemory(plain, pids, token, problems, signal);
  const pages = await measurePages(plain, tokens.plain, problems, signal);
  return { query, export: rates, rss, pages, problems: [...problems] };
}

/** Sends the same query as our server. */
const search = (body: object): Buffer => {
  const json = JSON.stringify(body);
  const head = [
    `POST /${indexPrefix}-*/_search?ignore_unavailable=true HTTP/1.1`,
    'Host: localhost',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(json)}`,
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${json}`);
};

const between = { range: { '@timestamp': { gte: start * 1_000, lte: end * 1_000, format: 'epoch_millis' } } };
const sort = [{ '@timestamp': { order: 'desc' } }, { _index: { order: 'desc' } }, { _seq_no: { order: 'desc' } }];
const source = ['log', 'time', 'kubernetes.namespace_name', 'kubernetes.pod_name', 'kubernetes.container_name'];

const queryOf = (token: string | undefined): Buffer =>
  Buffer.from(
    request(
      `${api}?namespaces=${namespaces.join()}&log_query=${word}&start_time=${start}&end_time=${end}`,
      {},
      { token },
    ).text,
  );

interface Found {
  readonly hits: {
    readonly total: { readonly value: number };
    readonly hits: readonly { readonly sort: unknown; readonly _source: { readonly log: string } }[];
  };
}

/** Alternates between our server and OpenSearch, so that other load of the machine affects both. */
async function measureQueries(
  plain: Target,
  store: Target,
  token: string | undefined,
  problems: Set<string>,
  signal: AbortSignal,
): Promise<LogFigures['query']> {
  const [ours, direct] = [new Connection(plain), new Connection(store)];
  const wire = queryOf(token);
  const body = search({
    size: 10,
    sort,
    _source: source,
    track_total_hits: true,
    query: {
      bool: {
        filter: [
          between,
          { terms: { 'kubernetes.namespace_name.keyword': namespaces } },
          { wildcard: { log: { value: `*${word}*` } } },
        ],
      },
    },
  });
  const times: { ours: number[]; direct: number[] } = { ours: [], direct: [] };
  for (let number = 0; number < warmUp + queries; number += 1) {
    signal.throwIfAborted();
    const started = performance.now();
    const { body: directBody } = await direct.send(body, true);
    const middle = performance.now();
    const { status, body: response } = await ours.send(wire, true);
    const ended = performance.now();
    const { hits } = JSON.parse(String(directBody)) as Found;
    const { query } = JSON.parse(String(response)) as { query?: { total: number; records: readonly object[] } };
    if (query?.total !== hits.total.value || query.records.length !== hits.hits.length)
      problems.add(`a query, status ${status}, found ${query?.total} where the store has ${hits.total.value}`);
    if (number < warmUp) continue;
    times.direct.push(middle - started);
    times.ours.push(ended - middle);
  }
  ours.close();
  direct.close();
  return { ours: median(times.ours), direct: median(times.direct) };
}

/** Returns the number of bytes in an export of these records. */
const sizeOf = (records: readonly Pick<LogRecord, 'log'>[]): number =>
  records.reduce((sum, { log }) => sum + Buffer.byteLength(log) + 1, 0);

async function measureExports(
  plain: Target,
  store: Target,
  token: string | undefined,
  records: readonly LogRecord[],
  problems: Set<string>,
  signal: AbortSignal,
): Promise<LogFigures['export']> {
  const wanted = sizeOf(records);
  const [ours, direct] = [new Connection(plain), new Connection(store)];
  const exportRequest = request(`${api}?operation=export&start_time=${start}&end_time=${end}`, {}, { token });
  const wire = Buffer.from(exportRequest.text.replace('application/json', 'text/plain'));
  const rates: { ours: number[]; direct: number[] } = { ours: [], direct: [] };
  for (let round = 0; round <= rounds; round += 1) {
    signal.throwIfAborted();
    const started = performance.now();
    const read = await readAll(direct, signal);
    const middle = performance.now();
    const { status, bytes } = await ours.send(wire);
    const ended = performance.now();
    if (read !== records.length) problems.add(`the store returned ${read} of ${records.length} records`);
    if (status !== 200 || bytes !== wanted)
      problems.add(`an export, status ${status}, has ${bytes} of ${wanted} bytes`);
    if (round === 0) continue;
    rates.direct.push(records.length / ((middle - started) / 1_000));
    rates.ours.push(records.length / ((ended - middle) / 1_000));
  }
  ours.close();
  direct.close();
  return { ours: median(rates.ours), direct: median(rates.direct) };
}

/** Returns the number of records, read page by page. */
async function readAll(connection: Connection, signal: AbortSignal): Promise<number> {
  let count = 0;
  for (let after: unknown; ;) {
    signal.throwIfAborted();
    const body = {
      size: pageSize,
      sort,
      _source: source,
      track_total_hits: false,
      query: { bool: { filter: [between] } },
      ...(after === undefined ? {} : { search_after: after }),
    };
    const response = await connection.send(search(body), true);
    const { hits } = (JSON.parse(String(response.body)) as Found).hits;
    count += hits.length;
    if (hits.length < pageSize) return count;
    after = hits.at(-1)?.sort;
  }
}

async function measureMemory(
  plain: Target,
  pids: readonly number[],
  token: string | undefined,
  problems: Set<string>,
  signal: AbortSignal,
): Promise<LogFigures['rss']> {
  await sleep(settle, undefined, { signal });
  const before = memory(pids).rss;
  resetPeaks(pids);
  const samples: number[] = [];
  const timer = setInterval(() => samples.push(memory(pids).rss), sampling);
  const connection = new Connection(plain);
  const exportRequest = request(
    `${api}?operation=export&start_time=${later}&end_time=${later + exported}`,
    {},
    { token },
  );
  const { status, bytes } = await connection.send(
    Buffer.from(exportRequest.text.replace('application/json', 'text/plain')),
  );
  clearInterval(timer);
  connection.close();
  let wanted = 0;
  for (let number = 0; number < exported; number += 1) wanted += text(number).length + 1;
  if (status !== 200 || bytes !== wanted) problems.add(`an export, status ${status}, has ${bytes} of ${wanted} bytes`);
  const half = Math.floor(samples.length / 2);
  return {
    before,
    firstHalf: Math.max(...samples.slice(0, half)),
    secondHalf: Math.max(...samples.slice(half)),
  };
}

async function measurePages(
  plain: Target,
  tokens: readonly string[],
  problems: Set<string>,
  signal: AbortSignal,
): Promise<LogFigures['pages']> {
  const idle = await readPages(plain, tokens[0], problems, signal);
  const over = new AbortController();
  let done = 0;
  const pending = tokens.slice(0, together).map(async (token) => {
    const connection = new Connection(plain);
    const wire = queryOf(token);
    while (!over.signal.aborted && !signal.aborted) {
      const { status, body } = await connection.send(wire, true);
      if (status !== 200) problems.add(`a concurrent query: status ${status}: ${String(body).slice(0, 300)}`);
      done += 1;
    }
    connection.close();
  });
  const started = performance.now();
  const during = await readPages(plain, tokens[0], problems, signal);
  const queriesPerSecond = done / ((performance.now() - started) / 1_000);
  over.abort();
  await Promise.all(pending);
  return { idle, during, queriesPerSecond };
}

export function describeLogs({ query, export: rates, rss, pages, problems }: LogFigures): string {
  if (problems.length > 0) return `logs: WRONG: ${problems.join('; ')}`;
  const { idle, during, queriesPerSecond } = pages;
  return [
    `logs: ${searched} records in OpenSearch`,
    `  a query, p50           ours ${query.ours.toFixed(2)} ms, the store itself ${query.direct.toFixed(2)} ms`,
    `  an export              ours ${rates.ours.toFixed(0)} records/s, the store itself ${rates.direct.toFixed(0)}`,
    `  an export of ${exported}  ${rss.before.toFixed(0)} MB before, at most ${rss.firstHalf.toFixed(0)} MB in its first half, ${rss.secondHalf.toFixed(0)} MB in its second`,
    `  a page of nodes, p50   ${idle.p50.toFixed(2)} ms alone, ${during.p50.toFixed(2)} ms during ${together} concurrent queries (${queriesPerSecond.toFixed(0)} a second)`,
  ].join('\n');
}
