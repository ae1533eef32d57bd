/** A selection as Loki is asked for it. Years are many questions: its index knows when there was nothing. */
import type { Selection } from '../log-store.ts';
import { mapFewAtOnce } from '../remote/paging.ts';
import type { Part } from '../remote/parts.ts';
import { questionOf, selectorOf, type LogQLQuery } from './logql.ts';
import { earlyInIndex, exactly, spansOfLength, type TimeSpan } from './spans.ts';
import type { Tenant } from './tenant.ts';

/** A part of the selection, and how Loki is asked for it. */
export interface LokiRequest {
  readonly question: LogQLQuery;
  /** Those of its time in which there may be something, the oldest first; none of them longer than may be asked at once. */
  readonly spans: readonly TimeSpan[];
  /** What is exactly at the end of the selection is meant too: its second. */
  readonly end: number | undefined;
}

const day = 86_400;
/** Loki did not exist before. */
const oldest = Date.UTC(2018, 0) / 1_000;
/** Seconds. */
const remembered = 600;

export class Questions {
  readonly #tenant: Tenant;
  readonly #now: () => number;
  /** Seconds since the epoch. */
  #known: { readonly beginning: number; readonly until: number } | undefined;

  /** `now`: seconds since the epoch. */
  constructor(tenant: Tenant, now: () => number) {
    this.#tenant = tenant;
    this.#now = now;
  }

  async of(selection: Selection, parts: readonly Part[], signal: AbortSignal): Promise<LokiRequest[]> {
    return await mapFewAtOnce(parts, async (part) => {
      const question = questionOf(selection, part, this.#tenant.settings);
      const isLast = part.end === selection.end * 1_000;
      const bounds = {
        from: Math.max(oldest, (part.start ?? 0) / 1_000),
        // Nothing is of the future, but for clocks that differ.
        to: Math.min(this.#now() + day, Math.ceil(part.end / 1_000)),
      };
      return {
        question,
        spans: await this.#spans(question, bounds, signal),
        end: isLast && selection.end === bounds.to && bounds.from <= bounds.to ? bounds.to : undefined,
      };
    });
  }

  async #spans(question: LogQLQuery, time: TimeSpan, signal: AbortSignal): Promise<readonly TimeSpan[]> {
    const { length } = this.#tenant.limits;
    const whole = spansOfLength(time, length);
    if (whole.length < 2) return whole;
    const from = whole.length === 2 ? time.from : Math.max(time.from, await this.#beginning(signal));
    return await this.#inhabited(selectorOf(question), spansOfLength({ from, to: time.to }, length), signal);
  }

  /** Before it there is nothing at all. It is sought now and then, as it moves on. */
  async #beginning(signal: AbortSignal): Promise<number> {
    const now = this.#now();
    if (this.#known !== undefined && now < this.#known.until) return this.#known.beginning;
    const { limits, settings } = this.#tenant;
    const selector = `{${settings.labels.namespace}=~".+"}`;
    const all = spansOfLength({ from: oldest, to: now + day }, limits.length);
    const [first] = await this.#inhabited(selector, all, signal);
    if (first === undefined) return oldest;
    this.#known = { beginning: first.from, until: now + remembered };
    return first.from;
  }

  async #inhabited(selector: string, spans: readonly TimeSpan[], signal: AbortSignal): Promise<readonly TimeSpan[]> {
    const { client, settings } = this.#tenant;
    const found = await mapFewAtOnce(spans, async (span) =>
      (await client.hasAny(settings.labels.namespace, selector, earlyInIndex(exactly(span)), signal)) ? [span] : [],
    );
    return found.flat();
  }
}
