/** What Elasticsearch and OpenSearch are asked over HTTP, and their answers, made sure of. */
import { badGateway, badRequest, timeout, type StatusError } from '../../../runtime/errors.ts';
import { AnswerTooLarge, StoreClient, type StoreEndpoint } from '../remote/store-client.ts';
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

const oldest = { elasticsearch: 6, opensearch: 1 };
/** Of what the server itself gives up after. */
const serverTimeout = '60s';

export class SearchClient {
  readonly name: Server['distribution'];
  readonly #client: StoreClient;
  readonly #prefix: string;
  #server: Server | undefined;

  /** `prefix`: of indices, before `-YYYY.MM.DD`. */
  constructor(name: Server['distribution'], endpoint: StoreEndpoint, prefix: string) {
    this.name = name;
    this.#client = new StoreClient(name, endpoint);
    this.#prefix = prefix;
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  /** Throws if it cannot be asked. Reads no further than that there is an answer. */
  async check(signal: AbortSignal): Promise<void> {
    this.#server = undefined;
    await this.server(signal);
    await this.#ask(`${encodeURIComponent(this.#prefix)}-*`, { size: 0, terminate_after: 1 }, signal);
  }

  /** Asked until it is known; nobody waits for the answer to somebody else, who may go away. */
  async server(signal: AbortSignal): Promise<Server> {
    return (this.#server ??= await this.#greet(signal));
  }

  /** `most`: bytes of the answer. */
  async search(asked: SearchQueryParts, body: Clause, signal: AbortSignal, most?: number): Promise<SearchResponse> {
    const indices = indicesOf(this.#prefix, asked.part).map(encodeURIComponent).join(',');
    return await this.#ask(indices, { timeout: serverTimeout, query: queryOf(asked), ...body }, signal, most);
  }

  /** The words that the standard analyzer finds. */
  async analyze(text: string, signal: AbortSignal): Promise<readonly Token[]> {
    const body = JSON.stringify({ analyzer: 'standard', text });
    const answer = await this.#client.json({ path: '/_analyze', body, signal });
    return this.#list(answer, 'tokens').map(({ token, start_offset: start, end_offset: end }) => {
      if (typeof token !== 'string' || typeof start !== 'number' || typeof end !== 'number')
        throw this.nonsense('its tokens have no place');
      return { word: token, start, end };
    });
  }

  totalOf({ hits: { total } }: SearchResponse): number {
    const value = typeof total === 'object' ? total.value : total;
    if (typeof value !== 'number') throw this.nonsense('it does not say how many there are');
    return value;
  }

  /** Of the aggregation `buckets`. Without any index there are no aggregations at all. */
  bucketsOf({ _shards, aggregations }: SearchResponse): Found {
    return _shards.total === 0 ? [] : this.#list(aggregations?.['buckets'], 'buckets');
  }

  nonsense(problem: string): StatusError {
    return this.#client.nonsense(new Error(problem));
  }

  async #greet(signal: AbortSignal): Promise<Server> {
    const answer = await this.#client.json({ path: '/', signal });
    const server = serverOf(answer);
    if (server === undefined) throw this.nonsense('it does not say its version');
    const { distribution, major } = server;
    if (distribution !== this.name)
      throw badGateway(`the log store "${this.name}" is of another kind: logging.store must be ${distribution}`);
    if (major < oldest[distribution])
      throw badGateway(`the log store "${this.name}" is of version ${major}, older than ${oldest[distribution]}`);
    return server;
  }

  async #ask(indices: string, body: Clause, signal: AbortSignal, most?: number): Promise<SearchResponse> {
    const path = `/${indices}/_search?ignore_unavailable=true&allow_no_indices=true&allow_partial_search_results=false`;
    const question = { path, body: JSON.stringify(body), signal, most };
    const answer = await this.#client.json(question, (text) => this.#explain(text));
    const { timed_out: isLate, _shards: shards, hits } = (answer ?? {}) as Partial<SearchResponse>;
    if (isLate === true) throw timeout(`the log store "${this.name}" did not answer in time`);
    if (isLate !== false || shards?.failed !== 0 || !isListOfObjects(hits?.hits))
      throw this.nonsense('it is no answer to a search, or one without some shards');
    // While it starts it may leave out some in spite of allow_partial_search_results, and calls that no failure.
    if (shards.successful !== shards.total)
      throw this.#client.refusal(503, `${shards.successful} of ${shards.total} shards have answered`);
    return answer as SearchResponse;
  }

  /** Those that say something of the question. */
  #explain(text: string): StatusError | undefined {
    if (text.includes('circuit_breaking_exception'))
      return new AnswerTooLarge('ServiceUnavailable', 503, `the log store "${this.name}" is short of memory`, {
        details: { retryAfterSeconds: 5 },
        cause: new Error(text),
      });
    if (/too_many_(nested_)?clauses|maxClauseCount/.test(text))
      return badRequest(
        `the log store "${this.name}" would have to look for more than it may at once: name fewer workloads and keywords, and of keywords of several words write more, or a blank before and after them where their words are whole`,
      );
    if (text.includes('too_many_buckets'))
      return badRequest(
        `interval: the log store "${this.name}" has more buckets than it may tell: ask for longer ones`,
      );
    return undefined;
  }

  #list(part: unknown, key: string): Found {
    const found = (part as Readonly<Record<string, unknown>> | null | undefined)?.[key];
    if (!isListOfObjects(found)) throw this.nonsense(`its ${key} are missing`);
    return found;
  }
}

const isListOfObjects = (value: unknown): value is Found =>
  Array.isArray(value) && value.every((one) => typeof one === 'object' && one !== null);
