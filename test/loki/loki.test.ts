import { describe, expect, test } from '@jest/globals';
import type { LogRecord, LogStore, TimeOrder, Selection } from '../../src/logs/stores/log-store.ts';
import { at, corpus, createRecords, tenantName, tenantSince } from '../conformance/log-store/corpus.ts';
import { lokiStand, openLoki } from '../conformance/log-store/loki-stand.ts';
import { push } from '../conformance/log-store/loki-push.ts';
import { everything, Model } from '../conformance/log-store/model.ts';
import { storeSuite, type Stand } from '../conformance/log-store/suite.ts';

const never = new AbortController().signal;
const { edge, burst } = corpus;
const small = createRecords(25_000).filter(
  ({ namespace }) => !namespace.startsWith('tenant-') || namespace < tenantName(300),
);
const hours = { count: 1, unit: 'h' } as const;

async function exported(store: LogStore, selection: Selection, order: TimeOrder): Promise<LogRecord[]> {
  const found: LogRecord[] = [];
  for await (const piece of store.export(selection, order, never)) found.push(...piece);
  return found;
}

const sorted = (records: readonly LogRecord[]): string[] => records.map((one) => JSON.stringify(one)).toSorted();

const asJSON = ({ log, time }: LogRecord): string =>
  log === '' ? '' : JSON.stringify({ log: `${log}\n`, stream: 'stdout', time });

async function expectSame(store: LogStore, model: Model, selection: Selection): Promise<void> {
  expect(await store.statistics(selection, never)).toEqual(model.statistics(selection));
  expect(await store.histogram(selection, hours, never)).toEqual(model.histogram(selection, hours));
  const page = { order: 'desc', from: 250, size: 300 } as const;
  const found = await store.query(selection, page, never);
  const expected = model.query(selection, page);
  expect(found.total).toBe(expected.total);
  expect(found.records.map(({ time }) => time)).toEqual(expected.records.map(({ time }) => time));
  expect(sorted(await exported(store, selection, 'asc'))).toEqual(sorted(model.inOrder(selection, 'asc')));
}

const keywords = (...log: string[]): Partial<Selection> => ({ keywords: { ...everything.keywords, log } });

storeSuite('loki', {
  count: 200_000,
  findsSigns: true,
  begin: (records) =>
    lokiStand(records, {
      small: { max_entries_limit_per_query: 3_000, max_query_series: 40, max_query_length: '31h' },
      tiny: { max_entries_limit_per_query: 100 },
    }),
  more(stand: () => Stand) {
    describe('a Loki tenant', () => {
      test('a log query returns complete results for a Loki tenant with limits below the defaults', async () => {
        await push(stand().url, small, { tenant: 'small' });
        const store = openLoki(stand().url, 'small');
        const model = new Model(small, { findsSigns: true });
        const selections: Partial<Selection>[] = [
          {},
          keywords('panic'),
          { namespaces: new Map(Array.from({ length: 300 }, (_, index) => [tenantName(index), tenantSince(index)])) },
        ];
        for (const selection of selections) await expectSame(store, model, { ...everything, ...selection });
        await store.close();
      });

      test('a log query returns the configured text field of Loki lines that are JSON objects', async () => {
        // In the expected records, blanks replace invalid UTF-8, as in Loki.
        const records = small
          .filter(({ namespace }) => ['special', 'edges', 'ns-1'].includes(namespace))
          .map((record) => ({ ...record, log: record.log.replaceAll('\ufffd', ' ') }));
        await push(stand().url, records, { tenant: 'json', lineOf: asJSON });
        const store = openLoki(stand().url, 'json', { textField: 'log' });
        const model = new Model(records, { findsSigns: true });
        for (const selection of [{}, keywords('"double"', 'second line', 'back\\slash'), keywords('{', 'stdout')])
          await expectSame(store, model, { ...everything, ...selection });
        await store.close();
      });

      test('a log query returns Loki lines unchanged if they do not have the configured format', async () => {
        const records = small.filter(({ namespace }) => namespace === 'ns-2');
        await push(stand().url, records, { tenant: 'plain' });
        const store = openLoki(stand().url, 'plain', { textField: 'log' });
        await expectSame(store, new Model(records, { findsSigns: true }), { ...everything, ...keywords('refused') });
        await store.close();
      });

      test('a log query reports missing records if more records have the same time than Loki returns per query', async () => {
        const records = Array.from({ length: 150 }, (_, index) => ({
          time: at(burst, index < 140 ? 7 : index),
          namespace: 'a',
          pod: 'b',
          container: 'c',
          log: `#${index}`,
        }));
        await push(stand().url, records, { tenant: 'tiny' });
        const store = openLoki(stand().url, 'tiny');
        const found = await store.query(everything, { order: 'asc', from: 0, size: 200 }, never);
        expect([found.total, found.records.length, found.partial?.reason]).toEqual([
          150,
          110,
          'only 100 of the records with the same time are returned',
        ]);
        await store.close();
      });

      test('a log query returns empty results for a Loki tenant without records', async () => {
        const store = openLoki(stand().url, 'nobody');
        await expectSame(store, new Model([], { findsSigns: true }), everything);
        await store.close();
      });

      test('a log query without a configured tenant fails if Loki requires a tenant', async () => {
        const store = openLoki(stand().url, '', {});
        await expect(store.check(never)).rejects.toMatchObject({
          code: 502,
          message: 'the log store "loki" requires a tenant: set logging.loki.tenant',
        });
        await store.close();
      });
    });

    test('a log query over several years finds old records in Loki', async () => {
      const years = [2021, 2023, 2026].map((year, index) => ({
        time: at(Date.UTC(year, 3, 5) / 1_000, index),
        namespace: 'a',
        pod: `b-${index % 2}`,
        container: 'c',
        log: `of ${year}`,
      }));
      await push(stand().url, years, { tenant: 'years' });
      const store = openLoki(stand().url, 'years');
      const model = new Model(years, { findsSigns: true });
      for (const start of [undefined, 0, edge - 3 * 365 * 86_400])
        await expectSameYears(store, model, { ...everything, start });
      await store.close();
    });
  },
});

async function expectSameYears(store: LogStore, model: Model, selection: Selection): Promise<void> {
  expect(await store.statistics(selection, never)).toEqual(model.statistics(selection));
  const years = { count: 1, unit: 'y' } as const;
  expect(await store.histogram(selection, years, never)).toEqual(model.histogram(selection, years));
  for (const order of ['asc', 'desc'] as const) {
    const page = { order, from: 1, size: 2 } as const;
    expect(await store.query(selection, page, never)).toEqual(model.query(selection, page));
  }
}
