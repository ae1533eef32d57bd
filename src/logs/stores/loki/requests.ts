/**
 * Splits a selection into requests to Loki. Long time ranges need many requests, so spans without data in Loki's index
 * are omitted.
 */
import type { Selection } from '../log-store.ts';
import { mapRequests } from '../remote/paging.ts';
import type { Part } from '../remote/parts.ts';
import { logQLQueryOf, selectorOf, type LogQLQuery } from './logql.ts';
import { exactly, extendedForIndex, spansOfLength, type TimeSpan } from './spans.ts';
import type { Tenant } from './tenant.ts';

/** Requests to Loki for a part of the selection. */
export interface LokiRequest {
  readonly query: LogQLQuery;
  /** Time spans of the part that may contain records, the oldest first, each within the maximum length of a query. */
  readonly spans: readonly TimeSpan[];
  /** Last second of the selection, if it is in this part. The first nanosecond of that second is selected too. */
  readonly end: number | undefined;
}

const day = 86_400;
/** Earliest time of records in Loki, in seconds since the epoch. */
const oldest = Date.UTC(2018, 0) / 1_000;
/** Seconds for which the start of the data is cached. */
const cacheTime = 600;

export class RequestPlanner {
  readonly #tenant: Tenant;
  readonly #now: () => number;
  /** Cached start of the data, in seconds since the epoch. */
  #dataStart: { readonly time: number; readonly until: number } | undefined;

  /** `now`: seconds since the epoch. */
  constructor(tenant: Tenant, now: () => number) {
    this.#tenant = tenant;
    this.#now = now;
  }

  async plan(selection: Selection, parts: readonly Part[], signal: AbortSignal): Promise<LokiRequest[]> {
    return await mapRequests(parts, async (part) => {
      const query = logQLQueryOf(selection, part, this.#tenant.settings);
      const isLast = part.end === selection.end * 1_000;
      const bounds = {
        from: Math.max(oldest, (part.start ?? 0) / 1_000),
        // Records are not from the future, except for small clock differences.
        to: Math.min(this.#now() + day, Math.ceil(part.end / 1_000)),
      };
      return {
        query,
        spans: await this.#spans(query, bounds, signal),
        end: isLast && selection.end === bounds.to && bounds.from <= bounds.to ? bounds.to : undefined,
      };
    });
  }

  async #spans(query: LogQLQuery, time: TimeSpan, signal: AbortSignal): Promise<readonly TimeSpan[]> {
    const { length } = this.#tenant.limits;
    const spans = spansOfLength(time, length);
    if (spans.length < 2) return spans;
    const from = spans.length === 2 ? time.from : Math.max(time.from, await this.#findDataStart(signal));
    return await this.#nonEmpty(selectorOf(query), spansOfLength({ from, to: time.to }, length), signal);
  }

  /**
   * Returns the start of the data. The start is looked up again from time to time, because the start changes as old
   * data is deleted.
   */
  async #findDataStart(signal: AbortSignal): Promise<number> {
    const now = this.#now();
    if (this.#dataStart !== undefined && now < this.#dataStart.until) return this.#dataStart.time;
    const { limits, settings } = this.#tenant;
    const selector = `{${settings.labels.namespace}=~".+"}`;
    const all = spansOfLength({ from: oldest, to: now + day }, limits.length);
    const [first] = await this.#nonEmpty(selector, all, signal);
    if (first === undefined) return oldest;
    this.#dataStart = { time: first.from, until: now + cacheTime };
    return first.from;
  }

  /** Returns the spans for which the index contains data. */
  async #nonEmpty(selector: string, spans: readonly TimeSpan[], signal: AbortSignal): Promise<readonly TimeSpan[]> {
    const { client, settings } = this.#tenant;
    const found = await mapRequests(spans, async (span) =>
      (await client.hasAny(settings.labels.namespace, selector, extendedForIndex(exactly(span)), signal)) ? [span] : [],
    );
    return found.flat();
  }
}
