/** The contract of src/logs/stores/log-store.ts, tested with a store that contains the records of corpus.ts. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  type Interval,
  type LogRecord,
  type LogStore,
  type TimeOrder,
  type Selection,
} from '../../../src/logs/stores/log-store.ts';
import { corpus, createRecords, megabyte, tenantName, tenantSince } from './corpus.ts';
import { podPatternContaining } from '../../../src/logs/query/workloads.ts';
import { everything, Model } from './model.ts';

export interface Stand {
  readonly store: LogStore;
  /** URL of the server. */
  readonly url: string;
  close(): Promise<void>;
}

interface Facts {
  /** Number of records. */
  readonly count: number;
  /**
   * Whether the store matches keywords literally. If false, the store matches only the letters and digits of keywords,
   * and ignores all other characters.
   */
  readonly findsSigns?: boolean | undefined;
  /** Digits of a second by which the store sorts; 9 by default. */
  readonly digits?: number;
  readonly begin: (records: readonly LogRecord[]) => Promise<Stand>;
  /** Additional tests for this store. */
  readonly more?: (stand: () => Stand) => void;
}

const none = everything.keywords;
const { start, end, edge, burst } = corpus;
const signal = new AbortController().signal;

const pattern = (workload: string): string =>
  `${workload}-[bcdfghjklmnpqrstvwxz2456789]{1,10}-[a-z0-9]{5}|${workload}-[0-9]+|${workload}-[a-z0-9]{5}`;
const workload = (name: string, also: readonly string[] = [], not: readonly string[] = []) => ({
  workload: name,
  pattern: pattern(name),
  alsoPods: also,
  notPods: not,
});
const log = (...keywords: string[]): Partial<Selection> => ({ keywords: { ...none, log: keywords } });
const tenants = (from: number, to: number): ReadonlyMap<string, number> =>
  new Map(Array.from({ length: to - from }, (_, index) => [tenantName(from + index), tenantSince(from + index)]));
const wide = { start, end } as const;
/** Returns many names, only one of which exists. */
const many = (count: number, name: string): string[] => [
  ...Array.from({ length: count - 1 }, (_, index) => `${String.fromCharCode(97 + (index % 26))}${index}`),
  name,
];

const selections: readonly (readonly [name: string, Partial<Selection>])[] = [
  ['all records', {}],
  ['all records since 1970', { start: 0, end }],
  ['a period without an index', { start: start - 864_000, end: start - 777_600 }],
  ['a period that ends before the first record', { end: start - 86_400 }],
  ['a period that starts after the last record', { start: end + 86_400 }],
  ['a period that starts and ends at the same second', { start: edge, end: edge }],
  ['a period that starts at the time of a record', { start: edge, end: edge + 1 }],
  ['a period that ends at the time of a record', { start: edge - 1, end: edge }],
  ['a period of two seconds', { start: edge - 1, end: edge + 1 }],
  ['no namespace', { namespaces: new Map() }],
  ['one namespace', { namespaces: new Map([['ns-1', 0]]) }],
  ['a namespace that does not exist', { namespaces: new Map([['no-such', 0]]) }],
  ['a namespace that is visible from the time of a record on', { ...wide, namespaces: new Map([['edges', edge]]) }],
  [
    'a namespace that is visible from the next second after a record',
    {
      namespaces: new Map([
        ['edges', edge + 1],
        ['special', 0],
      ]),
    },
  ],
  [
    'a namespace that is visible only after the end of the period',
    { start, end: edge, namespaces: new Map([['edges', edge + 1]]) },
  ],
  [
    'two namespaces and a keyword',
    {
      ...wide,
      namespaces: new Map([
        ['ns-1', 0],
        ['ns-2', edge],
      ]),
      ...log('refused'),
    },
  ],
  ['pods', { pods: ['db-0', 'db-2', 'burst-3'] }],
  ['the maximum number of pods', { ...wide, pods: ['db-1', ...Array.from({ length: 4_999 }, (_, i) => `none-${i}`)] }],
  ['containers', { ...wide, containers: ['sidecar-proxy'] }],
  ['pods and containers', { pods: ['db-1'], containers: ['app'], namespaces: new Map([['ns-7', 0]]) }],
  ['a workload', { workloads: [workload('web')] }],
  [
    'a workload with pods whose names do not match its pattern',
    { ...wide, workloads: [workload('db', ['edge-0', 'big-0'])] },
  ],
  ['a workload whose name is a prefix of others', { workloads: [workload('web', [], ['web-7d9c5f6b84-x7k2p'])] }],
  ['workloads', { workloads: [workload('db'), workload('job'), workload('api', [], ['api-7d9c5f6b84-bcdfg'])] }],
  ['a keyword of workloads', { keywords: { ...none, workload: [workload('web-frontend')] } }],
  ['a keyword of namespaces', { ...wide, keywords: { ...none, namespace: ['S-1'] } }],
  ['keywords of pods', { keywords: { ...none, pod: ['FRONTEND', 'b-1'] } }],
  ['26 keywords of pods', { ...wide, keywords: { ...none, pod: Array.from('abcdefghijklmnopqrstuvwxyz') } }],
  [
    '15 keywords of workloads',
    {
      ...wide,
      keywords: {
        ...none,
        workload: many(15, 'web').map((keyword) => ({ ...workload(keyword), pattern: podPatternContaining(keyword) })),
      },
    },
  ],
  ['15 workloads', { workloads: many(15, 'db').map((name) => workload(name)) }],
  ['a keyword of containers', { ...wide, keywords: { ...none, container: ['Car-Pro'] } }],
  [
    'a keyword of pods with pattern characters',
    { keywords: { ...none, pod: ['.*', '[a-z]', 'w?b', '"', '\\', '{1', '(', 'a|b', '~#@&<>'] } },
  ],
  [
    'keywords of namespaces, pods, containers and text',
    { ...wide, keywords: { ...none, namespace: ['ns-'], pod: ['api'], container: ['app'], log: ['panic'] } },
  ],
  ['a word', log('panic')],
  ['a word in upper case', log('PANIC')],
  ['the start of a word', log('conn')],
  ['the middle of a word', log('onnectio')],
  ['the end of a word and the start of the next', log('NECTION refu')],
  ['the end of a word, a word, and the start of another', log('nection refused t')],
  ['the end of a word', log('nection ')],
  ['a whole word', log(' ok ')],
  ['whole words', log(' connection refused ')],
  ['the middle of a word after a character that does not precede it', log('=onnectio')],
  ['a word that does not occur', log('xylophone')],
  ['two keywords', { ...wide, ...log('panic', 'reconcile') }],
  ['adjacent words', log('connection refused to')],
  ['words that are not adjacent', log('connection to')],
  ['words of which the last is incomplete', log('connection ref')],
  ['an address', log('10.20.30.40:5432')],
  ['the start of an address', log('10.20.30')],
  ['digits with a comma', log('1,000')],
  ['words with an apostrophe', log("can't open")],
  ['words with a tab between them', log('tab\tand')],
  ['words in ANSI colours', log('\u001b[31mred')],
  ['words with underscores', log('session_start')],
  ['words that start with underscores', log('__x')],
  ['letters with colons and points', log('a:b')],
  ['quotation marks', log('"double" \'single\'')],
  ['pattern characters', log('a+b*c?d [x-y] {1,2} (z|w) ^start')],
  ['a backslash', log('end back\\slash')],
  ['pattern characters taken literally', log('re.*ed', 'p[a]nic', 'panic|ERROR', 'pan?c', 'wind*')],
  ['markup and placeholders', log('<b>&amp;', '${variable}')],
  ['letters of other languages', log('GRÖSSER', 'déjà vu', 'Zürich')],
  ['letters of other languages within words', log('ÖSSE', 'éjà v', 'üric')],
  ['Chinese characters', log('节点 已经')],
  ['text after ANSI colours', log('red alert')],
  ['text that was invalid UTF-8', log('not all of this was utf')],
  ['the second line', log('second line')],
  ['text across the end of a line', log('first line second')],
  ['a word longer than the index limit', log(`${'x'.repeat(300)}tail`)],
  ['records of one megabyte', { namespaces: new Map([['special', 0]]), ...log('big') }],
  ['300 namespaces, each visible from a different time on', { namespaces: tenants(0, 300) }],
  ['5,000 namespaces, each visible from a different time on', { namespaces: tenants(0, corpus.tenants) }],
  [
    '5,000 namespaces in a part of the period',
    { start: tenantSince(2_000), end: tenantSince(4_000), namespaces: tenants(0, corpus.tenants) },
  ],
  ['5,000 namespaces and a keyword', { namespaces: tenants(0, corpus.tenants), ...log('first') }],
];

const milliseconds = ({ time }: LogRecord, digits: number): string => time.slice(0, 20 + digits);
/** Comparable forms of records, in any order. */
const sorted = (records: readonly LogRecord[]): string[] => records.map((record) => JSON.stringify(record)).toSorted();

/** Comparable forms of records in order, at the precision by which the store sorts. */
function expectOrder(digits: number, records: readonly LogRecord[], expected: readonly LogRecord[]): void {
  const times = (all: readonly LogRecord[]): string[] => all.map((record) => milliseconds(record, digits));
  expect(times(records)).toEqual(times(expected));
}

const intervals: readonly Interval[] = [
  { count: 15, unit: 'm' },
  { count: 45, unit: 's' },
  { count: 7, unit: 'h' },
  { count: 1, unit: 'd' },
  { count: 3, unit: 'd' },
  ...(['w', 'M', 'q', 'y'] as const).map((unit) => ({ count: 1, unit })),
];

export function storeSuite(name: string, { count, findsSigns, digits = 9, begin, more }: Facts): void {
  describe(`the log store ${name}`, () => {
    let stand: Stand;
    let model: Model;

    /** Caches expected results, so that the model computes each only once. */
    const whole = new WeakMap<Partial<Selection>, Selection>();
    const selected = (partial: Partial<Selection>): Selection => {
      const known = whole.get(partial) ?? { ...everything, ...partial };
      whole.set(partial, known);
      return known;
    };
    const all = selected({});

    beforeAll(async () => {
      const records = createRecords(count);
      stand = await begin(records);
      model = new Model(records, { findsSigns });
    }, 300_000);
    afterAll(() => stand?.close());

    async function expectPages(
      selection: Selection,
      order: TimeOrder,
      size: number,
      max: number,
      first = 0,
    ): Promise<void> {
      const expected = model.query(selection, { order, from: first, size: max });
      const found: LogRecord[] = [];
      for (let from = first; from < first + max; from += size) {
        const result = stand.store.query(selection, { order, from, size }, signal);
        const page = await result;
        expect(page.total).toBe(expected.total);
        expect(page.partial).toBeUndefined();
        found.push(...page.records);
        if (page.records.length < size) break;
      }
      expectOrder(digits, found, expected.records);
      // Skips records with the time of the first or last record: which of them the pages contain is not specified.
      const last = expected.records.at(-1);
      const isWhole = found.length === expected.total || last === undefined;
      const cut = (records: readonly LogRecord[]): readonly LogRecord[] =>
        isWhole
          ? records
          : records.filter(
              (record) =>
                ![last, expected.records[0] as LogRecord].some(
                  (one) => milliseconds(one, digits) === milliseconds(record, digits),
                ),
            );
      expect(sorted(cut(found))).toEqual(sorted(cut(expected.records)));
      expect(new Set(sorted(found)).size).toBe(found.length);
    }

    async function exported(selection: Selection, order: TimeOrder): Promise<LogRecord[]> {
      const found: LogRecord[] = [];
      for await (const piece of stand.store.export(selection, order, signal)) found.push(...piece);
      return found;
    }

    test.each(selections)('the log store returns the first pages of a query for %s', async (_what, partial) => {
      const selection = selected(partial);
      for (const order of ['asc', 'desc'] as const) await expectPages(selection, order, 10, 30);
    });

    test.each(selections)('the log store counts the records of a query for %s', async (_what, partial) => {
      const selection = selected(partial);
      const result = stand.store.statistics(selection, signal);
      expect(await result).toEqual(model.statistics(selection));
    });

    test.each(selections)('the log store returns a histogram of a query for %s', async (_what, partial) => {
      const selection = selected(partial);
      const interval = { count: 15, unit: 'm' } as const;
      const result = stand.store.histogram(selection, interval, signal);
      expect(await result).toEqual(model.histogram(selection, interval));
    });

    test.each(intervals)('the log store returns a histogram with the interval $count$unit', async (interval) => {
      for (const partial of [{}, { start: edge, end: edge }, { namespaces: tenants(0, 900) }]) {
        const selection = selected(partial);
        const result = stand.store.histogram(selection, interval, signal);
        expect(await result).toEqual(model.histogram(selection, interval));
      }
    });

    test('the log store rejects a histogram with more than the maximum number of buckets', async () => {
      const result = stand.store.histogram(all, { count: 1, unit: 's' }, signal);
      await expect(result).rejects.toMatchObject({ code: 400 });
    });

    test.each(['asc', 'desc'] as const)(
      'the log store returns pages of records with equal times in the order "%s"',
      async (order) => {
        const selection = selected({ start: burst, end: burst + 1, namespaces: new Map([['burst', 0]]) });
        await expectPages(selection, order, 97, 10_000);
        await expectPages(selection, order, 1_000, 10_000);
        const pages: LogRecord[] = [];
        for (let from = 0; ; from += 313) {
          const { records } = await stand.store.query(selection, { order, from, size: 313 }, signal);
          pages.push(...records);
          if (records.length < 313) break;
        }
        expect(sorted(pages)).toEqual(sorted(model.select(selection)));
      },
    );

    test.each(['asc', 'desc'] as const)(
      'the log store returns pages with large offsets in the order "%s"',
      async (order) => {
        await expectPages(all, order, 10_000, 20_000);
        await expectPages(all, order, 100, 300, 9_900);
        await expectPages(all, order, 50, 100, Math.min(99_900, count - 100));
        await expectPages(all, order, 10, 10, count - 5);
        await expectPages(all, order, 10, 10, count);
      },
    );

    test('the log store supports the maximum number of keywords of every kind in 200 namespaces', async () => {
      const selection = selected({
        namespaces: tenants(0, 200),
        workloads: many(100, 'web').map((one) => workload(one)),
        keywords: {
          namespace: many(100, 'ant-'),
          workload: many(100, 'web').map((one) => workload(one)),
          pod: many(100, 'EB'),
          container: many(100, 'pp'),
          log: many(100, 'ello of ten'),
        },
      });
      await expectPages(selection, 'desc', 10, 10);
    });

    test('the log store returns the total number of records for a query of size 0', async () => {
      const { total, records } = await stand.store.query(all, { order: 'desc', from: 0, size: 0 }, signal);
      expect([total, records]).toEqual([count, []]);
    });

    test.each(['asc', 'desc'] as const)(
      'the log store returns pages of records from 5,000 namespaces in the order "%s"',
      async (order) => {
        const selection = selected({ namespaces: tenants(0, corpus.tenants) });
        await expectPages(selection, order, 3_000, 15_000);
        await expectPages(selection, order, 10, 30, 7_000);
      },
    );

    test.each<[string, TimeOrder, Partial<Selection>]>([
      ['all records', 'asc', {}],
      ['all records', 'desc', {}],
      [
        'the records of two namespaces',
        'asc',
        {
          namespaces: new Map([
            ['special', 0],
            ['edges', edge],
          ]),
        },
      ],
      ['the records of 5,000 namespaces', 'desc', { namespaces: tenants(0, corpus.tenants) }],
      ['the records of one second', 'desc', { start: burst, end: burst + 1 }],
      ['no records for an empty set of namespaces', 'asc', { namespaces: new Map() }],
    ])('the log store exports %s in the order "%s"', async (_what, order, partial) => {
      const selection = selected(partial);
      const found = await exported(selection, order);
      const expected = model.inOrder(selection, order);
      expect(found.length).toBe(expected.length);
      expectOrder(digits, found, expected);
      expect(sorted(found)).toEqual(sorted(expected));
    });

    test('the log store completes an export after other exports were abandoned', async () => {
      for (let left = 0; left < 3; left += 1)
        for await (const piece of stand.store.export(all, 'asc', signal)) if (piece.length > 0) break;
      const selection = selected({ namespaces: new Map([['special', 0]]) });
      expect((await exported(selection, 'asc')).length).toBe(model.select(selection).length);
    });

    test('the log store returns records of one megabyte completely', async () => {
      const selection = selected({ pods: ['big-0'] });
      const { records } = await stand.store.query(selection, { order: 'asc', from: 0, size: 10 }, signal);
      expect(records.map((record) => record.log.length)).toEqual([0, 1, 2].map(() => megabyte + 'big 0 '.length));
    });

    more?.(() => stand);

    test('the log store passes its readiness check', async () => {
      await expect(stand.store.check(signal)).resolves.toBeUndefined();
    });
  });
}
