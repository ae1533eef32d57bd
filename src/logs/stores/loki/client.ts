/** What Loki is asked over HTTP, and its answers, made sure of. */
import { badGateway, badRequest, StatusError } from '../../../runtime/errors.ts';
import type { TimeOrder } from '../log-store.ts';
import { AnswerTooLarge, StoreClient, type StoreEndpoint } from '../remote/store-client.ts';

type LabelSet = Readonly<Record<string, string>>;

/** Lines of containers that have all labels in common, in the order that was asked for. */
export interface LokiStream {
  readonly labels: LabelSet;
  /** Nanoseconds since the epoch, and the line. */
  readonly values: readonly (readonly [nanoseconds: string, line: string])[];
}

export interface Sample {
  readonly labels: LabelSet;
  readonly value: number;
}

export interface Series {
  readonly labels: LabelSet;
  /** Seconds since the epoch. */
  readonly values: readonly (readonly [seconds: number, value: number])[];
}

/** Nanoseconds since the epoch; what is at `to` is not meant. */
export interface Between {
  readonly from: bigint;
  readonly to: bigint;
}

/** What a tenant may ask for at once. */
export interface LokiLimits {
  /** Records. */
  readonly entries: number;
  /** Of an answer that counts. */
  readonly series: number;
  /** Seconds that a question may be about. */
  readonly length: number;
}

/** It was asked for more than the tenant may; who asks for less may be answered. */
export class LimitExceeded extends StatusError {
  /** Undefined where it does not say how much would be allowed. */
  readonly allowed: { readonly limit: keyof LokiLimits; readonly most: number | undefined };

  constructor(message: string, limit: keyof LokiLimits, most: string | undefined) {
    super('BadRequest', 400, message);
    this.allowed = { limit, most: most === undefined ? undefined : Number(most) };
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isLabelSet = (value: unknown): value is LabelSet =>
  isObject(value) && Object.values(value).every((one) => typeof one === 'string');

const isEntry = (value: unknown): value is LokiStream['values'][number] =>
  Array.isArray(value) && typeof value[0] === 'string' && /^\d{1,19}$/.test(value[0]) && typeof value[1] === 'string';

/** A point of a series; undefined for what is none. */
function pointOf(value: unknown): Series['values'][number] | undefined {
  if (!Array.isArray(value)) return undefined;
  const [seconds, text] = value as readonly unknown[];
  const count = typeof text === 'string' && text !== '' ? Number(text) : NaN;
  return typeof seconds === 'number' && Number.isSafeInteger(count) && count >= 0 ? [seconds, count] : undefined;
}

const form = 'application/x-www-form-urlencoded';

export class LokiClient {
  readonly name: string;
  readonly #client: StoreClient;

  constructor(name: string, endpoint: StoreEndpoint) {
    this.name = name;
    this.#client = new StoreClient(name, endpoint);
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  /** The first `limit` records in this order. `most`: bytes of the answer. */
  async streams(
    query: string,
    { from, to }: Between,
    { order, limit, most }: { readonly order: TimeOrder; readonly limit: number; readonly most?: number | undefined },
    signal: AbortSignal,
  ): Promise<readonly LokiStream[]> {
    const direction = order === 'asc' ? 'forward' : 'backward';
    const asked = { query, start: String(from), end: String(to), limit: String(limit), direction };
    return (await this.#result('/query_range', asked, 'streams', signal, most)).map((one) => {
      const { stream: labels, values } = one;
      if (!isLabelSet(labels) || !Array.isArray(values) || !values.every(isEntry)) throw this.#nonsense('its streams');
      return { labels, values };
    });
  }

  /** What a query that counts has at a time, in nanoseconds since the epoch. */
  async vector(query: string, time: bigint, signal: AbortSignal): Promise<readonly Sample[]> {
    const asked = { query, time: String(time) };
    return (await this.#result('/query', asked, 'vector', signal)).map(({ metric: labels, value }) => {
      const point = pointOf(value);
      if (!isLabelSet(labels) || point === undefined) throw this.#nonsense('its counts');
      return { labels, value: point[1] };
    });
  }

  /** What it has each `step`, from one to the other; all in whole seconds since the epoch. */
  async matrix(
    query: string,
    { start, end, step }: { readonly start: number; readonly end: number; readonly step: number },
    signal: AbortSignal,
  ): Promise<readonly Series[]> {
    const asked = { query, start: `${start}000000000`, end: `${end}000000000`, step: String(step) };
    return (await this.#result('/query_range', asked, 'matrix', signal)).map(({ metric: labels, values }) => {
      if (!isLabelSet(labels) || !Array.isArray(values)) throw this.#nonsense('its series');
      return {
        labels,
        values: values.map((value) => {
          const point = pointOf(value);
          if (point === undefined) throw this.#nonsense('its counts');
          return point;
        }),
      };
    });
  }

  /** The labels of streams that have records in this time, or shortly before or after it. */
  async series(selector: string, { from, to }: Between, signal: AbortSignal): Promise<readonly LabelSet[]> {
    const asked = { 'match[]': selector, start: String(from), end: String(to) };
    const { status, data = [] } = await this.#ask('/series', asked, signal);
    if (status !== 'success' || !Array.isArray(data) || !data.every(isLabelSet)) throw this.#nonsense('its streams');
    return data;
  }

  /** Of the index alone: whether there may be anything that has this label. Its own statistics leave out what they take for little. */
  async hasAny(label: string, selector: string, { from, to }: Between, signal: AbortSignal): Promise<boolean> {
    const asked = { query: selector, start: String(from), end: String(to) };
    const { status, data = [] } = await this.#ask(`/label/${label}/values`, asked, signal);
    if (status !== 'success' || !Array.isArray(data)) throw this.#nonsense('the values of a label');
    return data.length > 0;
  }

  /** Throws if it cannot be asked. */
  async check({ from, to }: Between, signal: AbortSignal): Promise<void> {
    const { status } = await this.#ask('/labels', { start: String(from), end: String(to) }, signal);
    if (status !== 'success') throw this.#nonsense('its labels');
  }

  async #result(
    path: string,
    asked: Readonly<Record<string, string>>,
    type: 'streams' | 'vector' | 'matrix',
    signal: AbortSignal,
    most?: number,
  ): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const { status, data } = await this.#ask(path, asked, signal, most);
    const { resultType, result } = isObject(data) ? data : {};
    if (status !== 'success' || resultType !== type || !Array.isArray(result) || !result.every(isObject))
      throw this.#nonsense(`its ${type}`);
    return result;
  }

  async #ask(
    path: string,
    asked: Readonly<Record<string, string>>,
    signal: AbortSignal,
    most?: number,
  ): Promise<Readonly<Record<string, unknown>>> {
    const body = new URLSearchParams(asked).toString();
    const question = { path: `/loki/api/v1${path}`, body, type: form, most, signal };
    const answer = await this.#client.json(question, (text, status) => this.#explain(text, status));
    if (!isObject(answer)) throw this.#nonsense('an object');
    return answer;
  }

  #nonsense(missing: string): StatusError {
    return this.#client.nonsense(new Error(`${missing} are missing, or not what they should be`));
  }

  /** Its errors are plain texts; those that say something of the question. */
  #explain(text: string, status: number): StatusError | undefined {
    const store = `the log store "${this.name}"`;
    const entries = /max_entries_limit_per_query \(\d+ > (\d+)\)/.exec(text);
    if (entries !== null) return new LimitExceeded(`${store} tells fewer records at once`, 'entries', entries[1]);
    const series = /maximum (?:number )?of series \((\d+)\)/.exec(text);
    if (series !== null)
      return new LimitExceeded(
        `${store} counts the records of no more than ${series[1]} containers at once (its max_query_series)`,
        'series',
        series[1],
      );
    if (text.includes('query time range exceeds the limit'))
      return new LimitExceeded(
        `${store} is asked for a longer time than it may be (its max_query_length)`,
        'length',
        undefined,
      );
    if (/larger than max|ResourceExhausted/.test(text))
      return new AnswerTooLarge(
        'BadGateway',
        502,
        `${store} has more to tell than it may (its grpc_server_max_send_msg_size)`,
      );
    if (/would read too many bytes|cardinality limit exceeded|chunks? .*exceeds? .*limit|matched per query/.test(text))
      return badRequest(
        `${store} would have to read more than it may: ask for a shorter time, or name namespaces, pods or containers`,
      );
    if (text.includes('input size too long'))
      return badRequest(
        `${store} takes no question that is so long: name fewer namespaces, pods, containers or keywords`,
      );
    if (status === 401 && text.includes('no org id'))
      return badGateway(`${store} has tenants: logging.${this.name}.tenant must name one`, { cause: new Error(text) });
    return undefined;
  }
}
