import { describe, expect, jest, test } from '@jest/globals';
import * as fc from 'fast-check';
import { StatusError } from '../../../../src/runtime/errors.ts';
import {
  getParameters,
  kapisObjectParameters,
  parametersOf,
} from '../../../../src/apimachinery/list/kapis-parameters.ts';
import { pageOf, queriesOf, type ListPage, type ListQuery } from '../../../../src/apimachinery/list/query.ts';
import { byCodePoint } from '../../../../src/apimachinery/list/sorting.ts';
import { nodes, type NodeFields } from '../../../../src/resources/kinds/nodes.ts';
import { Store } from '../../../../src/cluster/cache/store.ts';
import type { StoredObject } from '../../../../src/cluster/cache/stored-object.ts';
import { node } from '../../../labs/resources.ts';

function storeOf(...items: StoredObject<NodeFields>[]): Store<NodeFields> {
  const store = new Store<NodeFields>();
  store.replace(items, 100);
  return store;
}

const condition = (type: string, status: string): object => ({ type, status });
const store = storeOf(
  node('alpha', { second: 3, labels: { env: 'prod', rack: '10' }, annotations: { 'a.io/url': 'https://x/' } }),
  node('beta', {
    second: 1,
    unschedulable: true,
    labels: { env: 'dev', rack: '9' },
    owner: { kind: 'Machine', uid: 'm1' },
  }),
  node('gamma', {
    second: 3,
    status: { conditions: [condition('Ready', 'False')], nodeInfo: { kubeletVersion: 'v1.36' } },
  }),
  node('delta', {
    second: 2,
    status: { conditions: [condition('Ready', 'True'), condition('DiskPressure', 'False')] },
  }),
);

const wanted = new AbortController();

const queries = queriesOf(nodes);
const listOf = (query: string): ListQuery<NodeFields> => queries.list.parse(new URLSearchParams(query));

const paged = (query: string, of = store): Promise<ListPage<NodeFields>> => pageOf(of, listOf(query), wanted);
const names = async (query: string): Promise<string[]> => (await paged(query)).objects.map(({ name }) => name);

const two = (value: number): string => String(value).padStart(2, '0');

const watchOf = (query: string): unknown => queries.watch.parse(new URLSearchParams(query));

describe('a list of /kapis', () => {
  test.each([
    ['', 'alpha gamma delta beta'],
    ['ascending=true', 'beta delta alpha gamma'],
    ['sortBy=createTime', 'alpha gamma delta beta'],
    ['sortBy=creationTimestamp&ascending=true', 'beta delta alpha gamma'],
    ['sortBy=name', 'gamma delta beta alpha'],
    ['sortBy=name&ascending=true', 'alpha beta delta gamma'],
    ['sortBy=name&ascending=true&limit=2', 'alpha beta'],
    ['sortBy=name&ascending=true&limit=2&page=2', 'delta gamma'],
    ['sortBy=name&limit=3', 'gamma delta beta'],
    ['sortBy=name&limit=3&page=2', 'alpha'],
    ['sortBy=name&limit=3&page=3', ''],
    ['limit=0', ''],
    ['limit=-1', 'alpha gamma delta beta'],
    ['limit=-1&page=2', ''],
    ['limit=100', 'alpha gamma delta beta'],
    ['page=9007199254740991&limit=9007199254740991', ''],
    ['sortBy=.metadata.labels.rack&ascending=true', 'beta alpha delta gamma'],
    ['sortBy=.metadata.labels.rack', 'alpha beta delta gamma'],
    ['sortBy=.metadata.creationTimestamp&ascending=true', 'beta delta alpha gamma'],
    ['sortBy=.spec.unschedulable', 'beta alpha delta gamma'],
    ['sortBy=.status.conditions.0.status&ascending=true', 'gamma delta alpha beta'],
    ['name=l', 'alpha delta'],
    ['name=', 'alpha gamma delta beta'],
    ['names=beta,alpha,none', 'alpha beta'],
    ['uid=uid-beta', 'beta'],
    ['namespace=default', ''],
    ['ownerReference=m1', 'beta'],
    ['ownerKind=Machine', 'beta'],
    ['ownerKind=Node', ''],
    ['label=env', 'alpha beta'],
    ['labelSelector=env%20in%20(prod)', 'alpha'],
    ['labelSelector=env!=prod', 'gamma delta beta'],
    ['annotation=a.io/url=https://x/', 'alpha'],
    ['status=unschedulable', 'beta'],
    ['status=warning', 'gamma'],
    ['status=running', 'alpha delta'],
    ['fieldSelector=metadata.name=beta', 'beta'],
    ['fieldSelector=metadata.name!=beta,metadata.name!=alpha', 'gamma delta'],
    ['fieldSelector=spec.unschedulable=false', 'alpha gamma delta'],
    ['fieldSelector=.spec.unschedulable=false', 'alpha gamma delta'],
    ['fieldSelector=.spec.unschedulable!=false', 'beta'],
    [String.raw`fieldSelector=spec.un\schedulable=false`, 'alpha gamma delta'],
    ['fieldSelector=spec.unschedulable=true', 'beta'],
    ['fieldSelector=.spec.unschedulable=true', 'beta'],
    ['fieldSelector=.metadata.name=beta', 'beta'],
    ['fieldSelector=status.nodeInfo.kubeletVersion=v1.36', 'gamma'],
    ['fieldSelector=.status.nodeInfo.kubeletVersion=', 'alpha delta beta'],
    ['fieldSelector=metadata.annotations.a\\.io/url=https://x/', 'alpha'],
    ['fieldSelector=status.conditions.1.type=DiskPressure', 'delta'],
    ['fieldSelector=status.conditions=', 'alpha gamma delta beta'],
    ['name=a&status=running&limit=1', 'alpha'],
  ])('a list of /kapis for ?%s contains the items "%s"', async (query, expected) => {
    expect((await names(query)).join(' ')).toBe(expected);
  });

  test('a list of /kapis reports the number of objects before paging', async () => {
    expect((await paged('limit=1')).total).toBe(4);
    expect((await paged('limit=0&name=l')).total).toBe(2);
  });

  test('a list of /kapis accepts thousands of names', async () => {
    const others = Array.from({ length: 5_000 }, (_, index) => `other-${index}`).join(',');
    expect(await names(`names=${others},beta`)).toEqual(['beta']);
  });

  test.each(['fieldSelector=spec.x!=1', 'sortBy=.metadata.name', 'label=!x&sortBy=.spec.x'])(
    'a list of /kapis with ?%s shows one consistent snapshot, even if objects change during the request',
    async (query) => {
      const changing = storeOf(...Array.from({ length: 50 }, (_, index) => node(`n${index}`)));
      const turns = jest.spyOn(performance, 'now').mockImplementation(() => (changes += 1));
      let changes = 0;
      const page = paged(query, changing);
      let version = 100;
      while (version < 150) {
        changing.apply('DELETED', node(`n${version - 100}`, { resourceVersion: (version += 1) }));
        await new Promise((resolve) => setImmediate(resolve));
      }
      const { objects, total, resourceVersion } = await page;
      turns.mockRestore();
      expect(changing.size).toBe(0);
      expect(resourceVersion).toBeGreaterThan(100);
      expect([objects.length, total]).toEqual([150 - resourceVersion, 150 - resourceVersion]);
    },
  );

  test('a list of /kapis yields to other work after a few objects, and stops when the client disconnects', async () => {
    const large = storeOf(...Array.from({ length: 50 }, (_, index) => node(`n${index}`)));
    let looked = 0;
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => (looked += 1));
    const controller = new AbortController();
    const page = pageOf(large, listOf('fieldSelector=spec.x!=1'), controller);
    const atFirst = looked;
    controller.abort();
    await expect(page).rejects.toThrow('aborted');
    clock.mockRestore();
    expect(atFirst).toBeLessThan(10);
  });

  test.each([
    ['page=0', 'page: expected an integer of at least 1, got "0"'],
    ['page=-1', 'page: '],
    ['page=1.5', 'page: '],
    ['page=', 'page: '],
    ['page=1e3', 'page: '],
    ['page=٣', 'page: '],
    ['limit=-2', 'limit: expected an integer of at least 0, or -1 for all, got "-2"'],
    ['limit=ten', 'limit: '],
    ['limit=9999999999999999', 'limit: '],
    ['ascending=yes', 'ascending: expected true (or 1) or false (or 0), got "yes"'],
    [
      'sortBy=age',
      'sortBy: expected name, createTime, creationTimestamp or a path with a leading dot such as .status.nodeInfo.kubeletVersion, got "age"',
    ],
    ['sortBy=.', 'sortBy: "." is not a valid path'],
    ['sortBy=.a..b', 'sortBy: ".a..b" is not a valid path'],
    ['status=Ready', 'status: expected one of running, warning, unschedulable, got "Ready"'],
    ['labelSelector=a%20b', "labelSelector: unable to parse requirement: found 'b'"],
    ['label=,', 'label: '],
    ['annotation=-a', 'annotation: '],
    ['fieldSelector=a', "fieldSelector: invalid selector: 'a'; can't understand 'a'"],
    ['fieldSelector=spec.taints', 'write each term as path=value or path!=value, as in spec.unschedulable=true'],
    ['fieldSelector=a..b=c', 'fieldSelector: "a..b" is not a valid path'],
    ['sortBy=.spec.nodeName,name', 'sortBy: ".spec.nodeName,name" is not a valid path because of ","'],
    ['sortBy=.metadata.labels["kubernetes.io/os"]', String.raw`as in .metadata.labels.kubernetes\.io/os`],
    ['sortBy=status.nodeInfo', 'a path with a leading dot such as .status.nodeInfo.kubeletVersion'],
    ['fields=metadata.labels["kubernetes.io/os"]', 'fields: '],
    ['fields=.status.conditions[0].type', 'as in .status.conditions.0.type'],
    ['fieldSelector=status.conditions[0].type=Ready', 'fieldSelector: "status.conditions[0].type" is not a valid path'],
    ['fieldSelector=metadata.labels["a"]=b', 'fieldSelector: '],
    ['ascending=yes', 'ascending: expected true (or 1) or false (or 0), got "yes"'],
    ['watch=', 'watch: expected true (or 1)'],
    ['timeoutSeconds=-1', 'timeoutSeconds: expected an integer of at least 0, got "-1"'],
    ['managedFields=1.0', 'managedFields: '],
    ['pretty=x', 'pretty: '],
    ['limit=1&limit=1', 'limit: is given more than once'],
    ['continue=abc', 'continue: not supported on /kapis; use page and limit, or use /apis'],
    ['lable=a', 'lable: unknown parameter; did you mean label?'],
    ['__proto__=a', '__proto__: unknown parameter'],
  ])('a list of /kapis with ?%s is rejected with 400', (query, message) => {
    const parse = (): unknown => listOf(query);
    expect(parse).toThrow(StatusError);
    expect(parse).toThrow(message);
  });

  test('a watch of /kapis rejects paging and sorting', () => {
    expect(() => watchOf('watch=true&page=1')).toThrow('page: not supported with watch=true');
    expect(() => watchOf('watch=true&ascending=true')).toThrow('ascending: ');
    expect(watchOf('watch=true&name=a&resourceVersion=1')).toMatchObject({ managedFields: false });
  });

  test.each(['watch=maybe', 'watch=yes', 'watch=TRUE', 'watch=1&timeoutSeconds=-1', 'watch=1&timeoutSeconds=1.5'])(
    'a watch of /kapis with ?%s is rejected with 400',
    (query) => {
      expect(() => watchOf(query)).toThrow(expect.objectContaining({ code: 400 }));
    },
  );

  test.each(['watch=true&allowWatchBookmarks=yes', 'watch=true&sendInitialEvents=maybe'])(
    'a watch of /kapis with an invalid boolean in ?%s is rejected with 400',
    (query) => {
      expect(() => watchOf(query)).toThrow('expected true (or 1) or false (or 0)');
    },
  );

  test('a list of /kapis and a request for a single object accept different parameters', () => {
    expect(getParameters.parse(new URLSearchParams('managedFields=true&pretty=1'))).toEqual({
      managedFields: true,
      pretty: true,
    });
    expect(kapisObjectParameters.parse(new URLSearchParams('watch=false&pretty=1'))).toMatchObject({ pretty: true });
    expect(() => kapisObjectParameters.parse(new URLSearchParams('watch=perhaps'))).toThrow('watch');
    expect(() => getParameters.parse(new URLSearchParams('limit=1'))).toThrow(
      'limit: unknown parameter; known parameters are managedFields, fields, pretty, timeout',
    );
  });

  test('a list of /kapis applies the filters that search the bytes of objects after all other filters', () => {
    const { filters } = listOf('annotation=a&alias=b&fieldSelector=spec.x=1&status=running&labelSelector=c');
    expect(filters.map(({ isLookUp = false }) => isLookUp)).toEqual([false, false, true, true, true]);
  });

  test('a list of /kapis has the same parameter schema for all kinds without their own parameters', () => {
    const plain = { ...nodes, statuses: [] };
    expect(parametersOf(plain)).toBe(parametersOf({ ...plain }));
    expect(parametersOf(nodes)).not.toBe(parametersOf(plain));
  });

  test('a list of /kapis has the same pages as a list from a simple model of sorting and paging', () => {
    const item = fc.record({ second: fc.nat(4), rack: fc.option(fc.constantFrom('9', '10', 'a', 'Z', 'é')) });
    return fc.assert(
      fc.asyncProperty(
        fc.array(item, { maxLength: 20 }),
        fc.constantFrom('name', 'createTime', '.metadata.labels.rack'),
        fc.boolean(),
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: -1, max: 7 }),
        async (items, sortBy, ascending, page, limit) => {
          const all = items.map(({ second, rack }, index) => ({
            name: `n${String(index).padStart(2, '0')}`,
            second,
            rack,
          }));
          const sign = ascending ? 1 : -1;
          const ranks = ['9', '10', 'Z', 'a', 'é'];
          const sorted = all.toSorted((a, b) => {
            const ties = a.name < b.name ? -1 : 1;
            if (sortBy === 'name') return sign * ties;
            if (sortBy === 'createTime') return sign * (a.second - b.second) || ties;
            if (a.rack === null || b.rack === null) return Number(a.rack === null) - Number(b.rack === null) || ties;
            return sign * (ranks.indexOf(a.rack) - ranks.indexOf(b.rack)) || ties;
          });
          const start = (page - 1) * limit;
          const expected = limit === -1 ? (page === 1 ? sorted : []) : sorted.slice(start, start + limit);
          const filled = storeOf(
            ...all.map(({ name, second, rack }) =>
              node(name, { second, ...(rack === null ? {} : { labels: { rack } }) }),
            ),
          );
          const query = new URLSearchParams({
            sortBy,
            ascending: String(ascending),
            page: String(page),
            limit: String(limit),
          });
          const actual = await pageOf(filled, queries.list.parse(query), wanted);
          expect(actual.objects.map(({ name }) => name)).toEqual(expected.map(({ name }) => name));
          expect(actual.total).toBe(all.length);
        },
      ),
    );
  });

  test('a list of /kapis sorts RFC 3339 times by every digit, whatever their offsets and notation', () => {
    const minute = fc.integer({ min: 28_000_000, max: 28_000_002 });
    const nanosecond = fc.oneof(
      fc.constantFrom(0, 1, 999, 1_000, 999_999, 1_000_000, 999_999_999),
      fc.nat(999_999_999),
    );
    const offset = fc.integer({ min: -23 * 60, max: 23 * 60 });
    const time = fc.record({ minute, nanosecond, offset, digits: fc.integer({ min: 0, max: 9 }) });
    return fc.assert(
      fc.asyncProperty(fc.array(time, { maxLength: 12 }), fc.boolean(), async (times, ascending) => {
        const all = times.map(({ minute: at, nanosecond: nano, offset: ahead, digits }, index) => {
          const written = String(nano).padStart(9, '0').replace(/0+$/, '').padEnd(digits, '0');
          const local = new Date((at + ahead) * 60_000).toISOString().slice(0, 19);
          const size = Math.abs(ahead);
          const zone = ahead === 0 ? 'Z' : `${ahead < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
          const value = BigInt(at) * 60_000_000_000n + BigInt(nano);
          return { name: `n${two(index)}`, value, text: `${local}${written === '' ? '' : `.${written}`}${zone}` };
        });
        const sign = ascending ? 1 : -1;
        const expected = all.toSorted((a, b) =>
          a.value === b.value ? (a.name < b.name ? -1 : 1) : a.value < b.value ? -sign : sign,
        );
        const filled = storeOf(...all.map(({ name, text }) => node(name, { annotations: { time: text } })));
        const actual = await paged(`sortBy=.metadata.annotations.time&ascending=${String(ascending)}`, filled);
        expect(actual.objects.map(({ name }) => name)).toEqual(expected.map(({ name }) => name));
      }),
    );
  });

  test('a list of /kapis sorts strings by code point', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) => {
        expect(Math.sign(byCodePoint(a, b))).toBe(Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b))));
      }),
    );
  });
});
