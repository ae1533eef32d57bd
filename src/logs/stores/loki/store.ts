/**
 * Loki 2.9 and later. Loki supports neither offsets nor totals, so pages are read from the first record on, and
 * separate queries count records.
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
import { countBySteps, stepOf } from './buckets.ts';
import { countAll, countContainers } from './counts.ts';
import { pageOf, recordsOf } from './records.ts';
import { exactly } from './spans.ts';
import { RequestPlanner } from './requests.ts';
import { Tenant } from './tenant.ts';
import { mapRequests, prefetch, sum } from '../remote/paging.ts';
import type { SecretReader } from '../remote/endpoint.ts';
import { inOrder, sharesOf, spansOf } from '../remote/parts.ts';

/** Time range of a check, in seconds. */
const checkRange = 300;

class Loki implements LogStore {
  readonly name = 'loki';
  readonly #tenant: Tenant;
  readonly #planner: RequestPlanner;

  constructor(settings: LogStoreSettings<'loki'>, secrets: SecretReader) {
    this.#tenant = new Tenant(this.name, settings, secrets);
    this.#planner = new RequestPlanner(this.#tenant, thisSecond);
  }

  async query(selection: Selection, page: LogPage, signal: AbortSignal): Promise<Found> {
    const tenant = this.#tenant;
    return await tenant.retryWithinLimits(async () => {
      const requests = await this.#planner.plan(selection, spansOf(selection), signal);
      const counting = mapRequests(requests, async (one) => await countAll(tenant, one, signal));
      const ordered = inOrder(requests, page.order);
      // A single part needs no count to skip records.
      const counts = requests.length === 1 ? undefined : inOrder(await counting, page.order);
      const [totals, found] = await Promise.all([counting, pageOf(tenant, ordered, counts, page, signal)]);
      return { total: sum(totals), ...found };
    });
  }

  async statistics(selection: Selection, signal: AbortSignal): Promise<Statistics> {
    return await this.#tenant.retryWithinLimits(async () => {
      const requests = await this.#planner.plan(selection, sharesOf(selection), signal);
      const each = await mapRequests(requests, async (one) => await countContainers(this.#tenant, one, signal));
      return { containers: sum(each.map(({ containers }) => containers)), logs: sum(each.map(({ logs }) => logs)) };
    });
  }

  async histogram(selection: Selection, interval: Interval, signal: AbortSignal): Promise<Histogram> {
    const tenant = this.#tenant;
    return await tenant.retryWithinLimits(async () => {
      const requests = await this.#planner.plan(selection, sharesOf(selection), signal);
      const step = stepOf(tenant, interval);
      const counts = new Map<number, number>();
      const each = await mapRequests(requests, async (one) => await countBySteps(tenant, one, step, interval, signal));
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
    for (let hasStarted = false; ;) {
      const { limits } = tenant;
      try {
        const requests = await this.#planner.plan(selection, spansOf(selection), signal);
        for (const one of inOrder(requests, order))
          for await (const records of prefetch((own) => recordsOf(tenant, one, { order, reasons }, own), signal)) {
            hasStarted = true;
            yield records;
          }
        return reasons.cut;
      } catch (error) {
        if (hasStarted || !tenant.learnLimit(error, limits)) throw error;
      }
    }
  }

  async check(signal: AbortSignal): Promise<void> {
    const now = thisSecond();
    await this.#tenant.client.check(exactly({ from: now - checkRange, to: now }), signal);
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
