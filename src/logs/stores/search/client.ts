/** HTTP client of Elasticsearch and OpenSearch, which validates their responses. */
import { badGateway, badRequest, timeout, type StatusError } from '../../../runtime/errors.ts';
import { ResponseTooLarge, StoreClient, type StoreEndpoint } from '../remote/store-client.ts';
import { serverOf, type Server } from './dialect.ts';
import type { Document } from './documents.ts';
import { indicesOf, queryOf, type SearchQueryParts, type Clause } from './query.ts';
import type { Token } from './words.ts';

export interface Hit {
  readonly _index: string;
  readonly _id: string;
  readonly _source?: Document;
  readonly sort: readonly [milliseconds: number, index: string, sequence: number];
}

export interface SearchResponse {
  readonly timed_out: boolean;
  readonly _shards: { readonly total: number; readonly successful: number; readonly failed: number };
  readonly hits: { readonly total?: number | { readonly value: number }; readonly hits: readonly Hit[] };
  readonly aggregations?: Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>;
}

type Found = readonly Readonly<Record<string, unknown>>[];

const minVersions = { elasticsearch: 6, opensearch: 1 };
/** Timeout after which the server itself aborts a search. */
const serverTimeout = '60s';

export class SearchClient {
  readonly name: Server['distribution'];
  readonly #client: StoreClient;
  readonly #prefix: string;
  #server: Server | undefined;

  /** `prefix`: index name before `-YYYY.MM.DD`. */
  constructor(name: Server['distribution'], endpoint: StoreEndpoint, prefix: string) {
    this.name = name;
    this.#client = new StoreClient(name, endpoint);
    this.#prefix = prefix;
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  /** Throws if the server is unavailable. Searches at most one document per shard. */
  async check(signal: AbortSignal): Promise<void> {
    this.#server = undefined;
    await this.server(signal);
    await this.#search(`${encodeURIComponent(this.#prefix)}-*`, { size: 0, terminate_after: 1 }, signal);
  }

  /**
   * Returns the type of the server. Concurrent first calls each send a request, so that no call depends on the abort
   * signal of another call.
   */
  async server(signal: AbortSignal): Promise<Server> {
    return (this.#server ??= await this.#detectServer(signal));
  }

  async search(query: SearchQueryParts, body: Clause, signal: AbortSignal, maxBytes?: number): Promise<SearchResponse> {
    const indices = indicesOf(this.#prefix, query.part).map(encodeURIComponent).join(',');
    return await this.#search(indices, { timeout: serverTimeout, query: queryOf(query), ...body }, signal, maxBytes);
  }

  /** Returns the words that the standard analyzer finds in the text. */
  async analyze(text: string, signal: AbortSignal): Promise<readonly Token[]> {
    const body = JSON.stringify({ analyzer: 'standard', text });
    const response = await this.#client.json({ path: '/_analyze', body, signal });
    return this.#list(response, 'tokens').map(({ token, start_offset: start, end_offset: end }) => {
      if (typeof token !== 'string' || typeof start !== 'number' || typeof end !== 'number')
        throw this.invalidResponse('tokens without offsets');
      return { word: token, start, end };
    });
  }

  totalOf({ hits: { total } }: SearchResponse): number {
    const value = typeof total === 'object' ? total.value : total;
    if (typeof value !== 'number') throw this.invalidResponse('no total number of hits');
    return value;
  }

  /** Returns the aggregation `buckets`. A response has no aggregations if no index exists. */
  bucketsOf({ _shards, aggregations }: SearchResponse): Found {
    return _shards.total === 0 ? [] : this.#list(aggregations?.['buckets'], 'buckets');
  }

  invalidResponse(problem: string): StatusError {
    return this.#client.invalidResponse(new Error(problem));
  }

  async #detectServer(signal: AbortSignal): Promise<Server> {
    const response = await this.#client.json({ path: '/', signal });
    const server = serverOf(response);
    if (server === undefined) throw this.invalidResponse('no version');
    const { distribution, major } = server;
    if (distribution !== this.name)
      throw badGateway(`the log store "${this.name}" is ${distribution}: set logging.store to ${distribution}`);
    if (major < minVersions[distribution])
      throw badGateway(
        `the log store "${this.name}" has version ${major}; at least ${minVersions[distribution]} is required`,
      );
    return server;
  }

  async #search(indices: string, body: Clause, signal: AbortSignal, maxBytes?: number): Promise<SearchResponse> {
    const path = `/${indices}/_search?ignore_unavailable=true&allow_no_indices=true&allow_partial_search_results=false`;
    const request = { path, body: JSON.stringify(body), signal, maxBytes };
    const response = await this.#client.json(request, (text) => this.#explain(text));
    const { timed_out: isLate, _shards: shards, hits } = (response ?? {}) as Partial<SearchResponse>;
    if (isLate === true) throw timeout(`the log store "${this.name}" did not respond in time`);
    if (isLate !== false || shards?.failed !== 0 || !isListOfObjects(hits?.hits))
      throw this.invalidResponse('not a search response, or failed shards');
    // A starting server may skip shards despite allow_partial_search_results, and does not report this as a failure.
    if (shards.successful !== shards.total)
      throw this.#client.errorOf(503, `${shards.successful} of ${shards.total} shards responded`);
    return response as SearchResponse;
  }

  /** Returns the error for responses that reject the request itself. */
  #explain(text: string): StatusError | undefined {
    if (text.includes('circuit_breaking_exception'))
      return new ResponseTooLarge('ServiceUnavailable', 503, `the log store "${this.name}" is low on memory`, {
        details: { retryAfterSeconds: 5 },
        cause: new Error(text),
      });
    if (/too_many_(nested_)?clauses|maxClauseCount/.test(text))
      return badRequest(
        `the query exceeds the clause limit of the log store "${this.name}": use fewer or longer keywords and fewer workloads; spaces around a keyword restrict it to whole words`,
      );
    if (text.includes('too_many_buckets'))
      return badRequest(
        `interval: the result exceeds the bucket limit of the log store "${this.name}": use a longer interval`,
      );
    return undefined;
  }

  #list(part: unknown, key: string): Found {
    const found = (part as Readonly<Record<string, unknown>> | null | undefined)?.[key];
    if (!isListOfObjects(found)) throw this.invalidResponse(`no ${key}`);
    return found;
  }
}

const isListOfObjects = (value: unknown): value is Found =>
  Array.isArray(value) && value.every((one) => typeof one === 'object' && one !== null);
