import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { StatusError } from '../../../../src/runtime/errors.ts';
import { parseQuestion, type LogQuery } from '../../../../src/logs/query/query.ts';

const now = 1_700_000_000_500;

const parse = (text: string): LogQuery => parseQuestion(new URLSearchParams(text), now);

function refusalOf(text: string): StatusError | undefined {
  try {
    parse(text);
    return undefined;
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
}

/** What is said of each parameter; all of it stands in the message too. */
function problems(text: string): Record<string, string> {
  const error = refusalOf(text);
  const causes = error?.details?.causes ?? [];
  expect([error?.code ?? 400, error?.reason ?? 'BadRequest']).toEqual([400, 'BadRequest']);
  expect(causes.filter(({ field, message }) => error?.message.includes(`${field}: ${message}`) !== true)).toEqual([]);
  return Object.fromEntries(causes.map(({ field, message }) => [field ?? '', message ?? '']));
}

test('nothing asks for the newest ten records up to now', () => {
  expect(parse('')).toEqual({
    operation: 'query',
    namespaces: [],
    workloads: [],
    pods: [],
    containers: [],
    keywords: { namespace: [], workload: [], pod: [], container: [], log: [] },
    start: undefined,
    end: 1_700_000_001,
    page: { order: 'desc', from: 0, size: 10 },
    interval: { count: 15, unit: 'm' },
    follow: false,
    pretty: false,
  });
});

test('everything can be given', () => {
  const text =
    'operation=query&namespaces=a,b&workloads=w&pods=p&containers=c&namespace_query=N&workload_query=W&pod_query=P&container_query=C' +
    '&log_query=x y,%E2%82%AC&start_time=5&end_time=7&sort=asc&from=3&size=0&pretty=1&timeout=3s&follow=false';
  expect(parse(text)).toEqual({
    operation: 'query',
    namespaces: ['a', 'b'],
    workloads: ['w'],
    pods: ['p'],
    containers: ['c'],
    keywords: { namespace: ['N'], workload: ['W'], pod: ['P'], container: ['C'], log: ['x y', '€'] },
    start: 5,
    end: 7,
    page: { order: 'asc', from: 3, size: 0 },
    interval: { count: 15, unit: 'm' },
    follow: false,
    pretty: true,
  });
  expect(parse('operation=histogram&interval=1M').interval).toEqual({ count: 1, unit: 'M' });
});

describe('times', () => {
  test.each([
    ['0', 0],
    ['1700000000', 1_700_000_000],
    ['01700000000', 1_700_000_000],
  ])('start_time=%s', (text, start) => {
    expect(parse(`start_time=${text}`).start).toBe(start);
  });

  test.each([
    ['1700000000000', /in milliseconds.*send 1700000000$/],
    ['1700000000999', /send 1700000000$/],
    ['100000000000', /in milliseconds.*send 100000000$/],
    ['1700000000000000', /in microseconds.*send 1700000000$/],
    ['1700000000000000000', /in nanoseconds.*send 1700000000$/],
    ['1700000000.5', /without a fraction/],
    ['1700000000.', /without a fraction/],
    ['-1', /without a sign/],
    ['%2B1', /without a sign/],
    ['+1', /without a sign/],
    ['', /is empty/],
    ['1e9', /must be whole seconds/],
    ['0x10', /must be whole seconds/],
    ['now', /must be whole seconds/],
    ['2023-11-14', /must be whole seconds/],
    ['2023-11-14T22:13:20Z', /must be whole seconds/],
    ['%D9%A1', /must be whole seconds/],
    ['99999999999999999999999999', /must be whole seconds/],
    [' 5', /without a sign/],
  ])('%s is refused', (text, message) => {
    expect(problems(`start_time=${text}`)['start_time']).toMatch(message);
    expect(problems(`end_time=${text}`)['end_time']).toMatch(message);
  });

  test('a start after the end, given or now, is refused; the same second is not', () => {
    expect(problems('start_time=5&end_time=4')).toEqual({ start_time: '5 is after end_time, 4' });
    expect(problems('start_time=1700000002')['start_time']).toMatch(/after now/);
    expect(problems('start_time=4&end_time=4')).toEqual({});
  });

  test('any text is a time or is refused, and never as anything but 400', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const query = new URLSearchParams({ end_time: text }).toString();
        const wrong = problems(query)['end_time'];
        expect(wrong === undefined).toBe(/^\d{1,19}$/.test(text) && Number(text) < 1e11);
      }),
    );
  });
});

describe('refused', () => {
  test.each([
    ['operation', 'Query', /must be one of query, statistics, histogram, export/],
    ['sort', 'newest', /must be one of desc, asc/],
    ['size', '-1', /from 0 to 10000/],
    ['size', '10001', /from 0 to 10000, not "10001"; operation=export/],
    ['size', '1.5', /whole number/],
    ['from', 'x', /whole number/],
    ['from', '100001', /from 0 to 100000/],
    ['interval', '0m', /from 1/],
    ['interval', '15', /15m/],
    ['interval', '1.5h', /such as 15m/],
    ['interval', '2w', /number of days/],
    ['interval', '3M', /no buckets of 3M/],
    ['interval', '999999d', /100 years/],
    ['follow', 'yes', /true .* or false/],
    ['pretty', '', /true/],
    ['namespaces', 'a,,b', /an item that is empty/],
    ['namespaces', 'a'.repeat(254), /more than 253 characters/],
    ['pods', 'a%0Ab', /can be in no name/],
    ['workloads', 'Web', /can be in no name/],
    ['workload_query', 'a(b', /can be in no name/],
    ['container_query', 'a%09b', /can be in no name/],
    ['log_query', 'x'.repeat(1_025), /more than 1024/],
    ['log_query', Array.from({ length: 101 }, (_, i) => i).join(','), /101 items, more than 100/],
    ['namespaces', Array.from({ length: 5_001 }, (_, i) => i).join(','), /more than 5000/],
    ['start', '5', /is unknown; the known parameters are operation, namespaces/],
  ])('%s=%s', (name, text, message) => {
    expect(problems(`${name}=${text}`)[name]).toMatch(message);
  });

  test('what is given twice', () => {
    expect(problems('pods=a&pods=b')).toEqual({ pods: 'is given more than once' });
  });

  test('from and size together', () => {
    expect(problems('from=99990&size=11')['from']).toMatch(/100000/);
    expect(problems('from=99990&size=10')).toEqual({});
  });

  test('too many buckets', () => {
    expect(problems('operation=histogram&interval=1s&start_time=0&end_time=10001')['interval']).toMatch(
      /10000 buckets/,
    );
    expect(problems('operation=histogram&interval=1s&start_time=0&end_time=10000')).toEqual({});
    expect(problems('interval=1s&start_time=0&end_time=10001')).toEqual({});
  });

  test.each(['query', 'statistics', 'histogram', 'export'])('nothing of what only others use, of %s', (operation) => {
    expect(problems(`operation=${operation}&from=1&size=5&sort=asc&interval=1m`)).toEqual({});
  });

  test('what follow has no use for, unless it is what is so by default', () => {
    const wrong = problems('follow=true&from=1&size=5&sort=asc&interval=1m&start_time=1&end_time=2');
    expect(Object.keys(wrong).toSorted()).toEqual(['end_time', 'from', 'interval', 'size', 'sort', 'start_time']);
    expect(problems('follow=true&from=0&size=10&sort=desc&interval=15m')).toEqual({});
  });

  test('a parameter is told once what is wrong with it', () => {
    const error = refusalOf('follow=true&size=x&start_time=');
    expect(error?.details?.causes).toHaveLength(2);
  });

  test('follow is a query', () => {
    expect(problems('follow=true&operation=export&size=1')).toEqual({
      follow: 'is not for operation=export',
      size: expect.stringContaining('follow'),
    });
  });
});

test('a text may have tabs and colours in it', () => {
  expect(parse('log_query=%09at,%1B[31mred').keywords.log).toEqual(['\tat', '\u001b[31mred']);
});

test('an empty list asks for nothing, and what is repeated is once', () => {
  expect(parse('namespaces=&pods=a,b,a')).toMatchObject({ namespaces: [], pods: ['a', 'b'] });
});

test('of very many problems not all are told at length', () => {
  const error = refusalOf(Array.from({ length: 15_000 }, (_, index) => index.toString(36)).join('&'));
  expect(JSON.stringify(error?.toStatus()).length).toBeLessThan(20_000);
  expect(error?.message).toMatch(/; and 14980 more$/);
});
