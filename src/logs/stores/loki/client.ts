/** HTTP client of Loki, which validates its responses. */
import { badGateway, badRequest, StatusError } from '../../../runtime/errors.ts';
import type { TimeOrder } from '../log-store.ts';
import { ResponseTooLarge, StoreClient, type StoreEndpoint } from '../remote/store-client.ts';

type LabelSet = Readonly<Record<string, string>>;

/** Log lines with the same labels, in the requested order. */
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

/** Time range in nanoseconds since the epoch; excludes `to`. */
export interface TimeRange {
  readonly from: bigint;
  readonly to: bigint;
}

/** Limits of a tenant per request. */
export interface LokiLimits {
  /** Maximum records. */
  readonly entries: number;
  /** Maximum series of a metric query. */
  readonly series: number;
  /** Maximum time range in seconds. */
  readonly length: number;
}

/** Error for a request that exceeds a limit of the tenant. A smaller request may succeed. */
export class LimitExceeded extends StatusError {
  /** `max` is undefined if Loki does not report the limit. */
  readonly allowed: { readonly limit: keyof LokiLimits; readonly max: number | undefined };

  constructor(message: string, limit: keyof LokiLimits, max: string | undefined) {
    super('BadRequest', 400, message);
    this.allowed = { limit, max: max === undefined ? undefined : Number(max) };
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isLabelSet = (value: unknown): value is LabelSet =>
  isObject(value) && Object.values(value).every((one) => typeof one === 'string');

const isEntry = (value: unknown): value is LokiStream['values'][number] =>
  Array.isArray(value) && typeof value[0] === 'string' && /^\d{1,19}$/.test(value[0]) && typeof value[1] === 'string';

/** Returns a point of a series; undefined if the value is invalid. */
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

  /** Returns the first `limit` records in this order. */
  async streams(
    query: string,
    { from, to }: TimeRange,
    {
      order,
      limit,
      maxBytes,
    }: { readonly order: TimeOrder; readonly limit: number; readonly maxBytes?: number | undefined },
    signal: AbortSignal,
  ): Promise<readonly LokiStream[]> {
    const direction = order === 'asc' ? 'forward' : 'backward';
    const parameters = { query, start: String(from), end: String(to), limit: String(limit), direction };
    return (await this.#result('/query_range', parameters, 'streams', signal, maxBytes)).map((one) => {
      const { stream: labels, values } = one;
      if (!isLabelSet(labels) || !Array.isArray(values) || !values.every(isEntry))
        throw this.#invalidResponse('streams');
      return { labels, values };
    });
  }

  /** Returns the result of a metric query at a time in nanoseconds since the epoch. */
  async vector(query: string, time: bigint, signal: AbortSignal): Promise<readonly Sample[]> {
    const parameters = { query, time: String(time) };
    return (await this.#result('/query', parameters, 'vector', signal)).map(({ metric: labels, value }) => {
      const point = pointOf(value);
      if (!isLabelSet(labels) || point === undefined) throw this.#invalidResponse('counts');
      return { labels, value: point[1] };
    });
  }

  /** Returns the results of a metric query at each `step` from `start` to `end`, all in whole seconds. */
  async matrix(
    query: string,
    { start, end, step }: { readonly start: number; readonly end: number; readonly step: number },
    signal: AbortSignal,
  ): Promise<readonly Series[]> {
    const parameters = { query, start: `${start}000000000`, end: `${end}000000000`, step: String(step) };
    return (await this.#result('/query_range', parameters, 'matrix', signal)).map(({ metric: labels, values }) => {
      if (!isLabelSet(labels) || !Array.isArray(values)) throw this.#invalidResponse('series');
      return {
        labels,
        values: values.map((value) => {
          const point = pointOf(value);
          if (point === undefined) throw this.#invalidResponse('counts');
          return point;
        }),
      };
    });
  }

  /** Returns the labels of streams with records in this time range, or shortly before or after the range. */
  async series(selector: string, { from, to }: TimeRange, signal: AbortSignal): Promise<readonly LabelSet[]> {
    const parameters = { 'match[]': selector, start: String(from), end: String(to) };
    const { status, data = [] } = await this.#post('/series', parameters, signal);
    if (status !== 'success' || !Array.isArray(data) || !data.every(isLabelSet)) throw this.#invalidResponse('streams');
    return data;
  }

  /**
   * Looks up in the index whether streams with this label may exist. The index statistics of Loki are not used, because
   * they omit small amounts.
   */
  async hasAny(label: string, selector: string, { from, to }: TimeRange, signal: AbortSignal): Promise<boolean> {
    const parameters = { query: selector, start: String(from), end: String(to) };
    const { status, data = [] } = await this.#post(`/label/${label}/values`, parameters, signal);
    if (status !== 'success' || !Array.isArray(data)) throw this.#invalidResponse('the values of a label');
    return data.length > 0;
  }

  /** Throws if Loki is unavailable. */
  async check({ from, to }: TimeRange, signal: AbortSignal): Promise<void> {
    const { status } = await this.#post('/labels', { start: String(from), end: String(to) }, signal);
    if (status !== 'success') throw this.#invalidResponse('labels');
  }

  async #result(
    path: string,
    parameters: Readonly<Record<string, string>>,
    type: 'streams' | 'vector' | 'matrix',
    signal: AbortSignal,
    maxBytes?: number,
  ): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const { status, data } = await this.#post(path, parameters, signal, maxBytes);
    const { resultType, result } = isObject(data) ? data : {};
    if (status !== 'success' || resultType !== type || !Array.isArray(result) || !result.every(isObject))
      throw this.#invalidResponse(type);
    return result;
  }

  async #post(
    path: string,
    parameters: Readonly<Record<string, string>>,
    signal: AbortSignal,
    maxBytes?: number,
  ): Promise<Readonly<Record<string, unknown>>> {
    const body = new URLSearchParams(parameters).toString();
    const request = { path: `/loki/api/v1${path}`, body, type: form, maxBytes, signal };
    const response = await this.#client.json(request, (text, status) => this.#explain(text, status));
    if (!isObject(response)) throw this.#invalidResponse('an object');
    return response;
  }

  #invalidResponse(expected: string): StatusError {
    return this.#client.invalidResponse(new Error(`expected ${expected}`));
  }

  /** Returns the error for responses that reject the request itself. Error responses of Loki are plain text. */
  #explain(text: string, status: number): StatusError | undefined {
    const store = `the log store "${this.name}"`;
    const entries = /max_entries_limit_per_query \(\d+ > (\d+)\)/.exec(text);
    if (entries !== null) return new LimitExceeded(`${store} allows fewer records per request`, 'entries', entries[1]);
    const series = /maximum (?:number )?of series \((\d+)\)/.exec(text);
    if (series !== null)
      return new LimitExceeded(
        `${store} counts records of at most ${series[1]} containers per query (its max_query_series)`,
        'series',
        series[1],
      );
    if (text.includes('query time range exceeds the limit'))
      return new LimitExceeded(
        `the time range exceeds the limit of ${store} (its max_query_length)`,
        'length',
        undefined,
      );
    if (/larger than max|ResourceExhausted/.test(text))
      return new ResponseTooLarge(
        'BadGateway',
        502,
        `the response of ${store} exceeds its limit (grpc_server_max_send_msg_size)`,
      );
    if (/would read too many bytes|cardinality limit exceeded|chunks? .*exceeds? .*limit|matched per query/.test(text))
      return badRequest(
        `the query exceeds the read limit of ${store}: use a shorter time range, or specify namespaces, pods or containers`,
      );
    if (text.includes('input size too long'))
      return badRequest(`the query is too long for ${store}: specify fewer namespaces, pods, containers or keywords`);
    if (status === 401 && text.includes('no org id'))
      return badGateway(`${store} requires a tenant: set logging.${this.name}.tenant`, { cause: new Error(text) });
    return undefined;
  }
}
