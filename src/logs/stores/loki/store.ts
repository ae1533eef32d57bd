/**
 * Loki 2.9 and later. It has no offset, and no totals: pages are read from the first record on, and counted by questions of their own.
 */
import type { LogStoreSettings } from '../../../config/log-stores.ts';
import { bucketOf, bucketsBetween } from '../../query/intervals.ts';
import {
  Reasons,
  type Cut,
  type Found,
  type Histogram,
  type Interval,
  type LogRecord,
  type LogStore,
  type LogStoreType,
  type TimeOrder,
  type LogPage,
  type Selection,
  type Statistics,
} from '../log-store.ts';
import { Questions } from './asked.ts';
import { countBySteps, stepOf } from './buckets.ts';
import { countAll, countContainers } from './counts.ts';
import { pageOf, recordsOf } from './records.ts';
import { exactly } from './spans.ts';
import { Tenant } from './tenant.ts';
import { ahead, mapFewAtOnce, sum } from '../remote/paging.ts';
import type { SecretReader } from '../remote/endpoint.ts';
import { inOrder, sharesOf, spansOf } from '../remote/parts.ts';

/** Seconds, of which it is asked whether it answers. */
const checked = 300;

class Loki implements LogStore {
  readonly name = 'loki';
  readonly #tenant: Tenant;
  readonly #questions: Questions;

  constructor(settings: LogStoreSettings<'loki'>, secrets: SecretReader) {
    this.#tenant = new Tenant(this.name, settings, secrets);
    this.#questions = new Questions(this.#tenant, thisSecond);
  }

  async query(selection: Selection, page: LogPage, signal: AbortSignal): Promise<Found> {
    const tenant = this.#tenant;
    return await tenant.within(async () => {
      const asked = await this.#questions.of(selection, spansOf(selection), signal);
      const counting = mapFewAtOnce(asked, async (one) => await countAll(tenant, one, signal));
      const ordered = inOrder(asked, page.order);
      // Of one part it need not be known how much is to be passed over.
      const counts = asked.length === 1 ? undefined : inOrder(await counting, page.order);
      const [totals, found] = await Promise.all([counting, pageOf(tenant, ordered, counts, page, signal)]);
      return { total: sum(totals), ...found };
    });
  }

  async statistics(selection: Selection, signal: AbortSignal): Promise<Statistics> {
    return await this.#tenant.within(async () => {
      const asked = await this.#questions.of(selection, sharesOf(selection), signal);
      const each = await mapFewAtOnce(asked, async (one) => await countContainers(this.#tenant, one, signal));
      return { containers: sum(each.map(({ containers }) => containers)), logs: sum(each.map(({ logs }) => logs)) };
    });
  }

  async histogram(selection: Selection, interval: Interval, signal: AbortSignal): Promise<Histogram> {
    const tenant = this.#tenant;
    return await tenant.within(async () => {
      const asked = await this.#questions.of(selection, sharesOf(selection), signal);
      const step = stepOf(tenant, interval);
      const counts = new Map<number, number>();
      const each = await mapFewAtOnce(asked, async (one) => await countBySteps(tenant, one, step, interval, signal));
      for (const [second, count] of each.flat()) {
        const bucket = bucketOf(second * 1_000, interval);
        if (count > 0) counts.set(bucket, (counts.get(bucket) ?? 0) + count);
      }
      return { total: sum([...counts.values()]), histograms: bucketsBetween(counts, interval) };
    });
  }

  async *export(
    selection: Selection,
    order: TimeOrder,
    signal: AbortSignal,
  ): AsyncGenerator<readonly LogRecord[], Cut> {
    const tenant = this.#tenant;
    const reasons = new Reasons();
    for (let isBegun = false; ;) {
      const { limits } = tenant;
      try {
        const asked = await this.#questions.of(selection, spansOf(selection), signal);
        for (const one of inOrder(asked, order))
          for await (const records of ahead((own) => recordsOf(tenant, one, { order, reasons }, own), signal)) {
            isBegun = true;
            yield records;
          }
        return reasons.cut;
      } catch (error) {
        if (isBegun || !tenant.learns(error, limits)) throw error;
      }
    }
  }

  async check(signal: AbortSignal): Promise<void> {
    const now = thisSecond();
    await this.#tenant.client.check(exactly({ from: now - checked, to: now }), signal);
  }

  async close(): Promise<void> {
    await this.#tenant.client.close();
  }
}

const thisSecond = (): number => Math.floor(Date.now() / 1_000);

export const loki: LogStoreType<LogStoreSettings<'loki'>> = {
  open(settings, { secrets }) {
    const store = new Loki(settings, secrets);
    return () => store;
  },
};
