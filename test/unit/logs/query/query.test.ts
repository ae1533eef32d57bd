import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { StatusError } from '../../../../src/runtime/errors.ts';
import { logParameters } from '../../../../src/logs/query/parameters.ts';
import { completeQuery, type LogQuery } from '../../../../src/logs/query/query.ts';

const now = 1_700_000_000_500;

const parse = (text: string): LogQuery => completeQuery(logParameters.parse(new URLSearchParams(text)), now);

function refusalOf(text: string): StatusError | undefined {
  try {
    parse(text);
    return undefined;
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
}

/** Returns the problem of each parameter, and checks that the message contains all problems. */
function problems(text: string): Record<string, string> {
  const error = refusalOf(text);
  const causes = error?.details?.causes ?? [];
  expect([error?.code ?? 400, error?.reason ?? 'BadRequest']).toEqual([400, 'BadRequest']);
  expect(causes.filter(({ field, message }) => error?.message.includes(`${field}: ${message}`) !== true)).toEqual([]);
  return Object.fromEntries(causes.map(({ field, message }) => [field ?? '', message ?? '']));
}

test('a log query without parameters selects the newest ten records up to the current time', () => {
  expect(parse('')).toEqual({
    operation: 'query',
    namespaces: [],
    workloads: [],
    pods: [],
    containers: [],
    namespace_query: [],
    workload_query: [],
    pod_query: [],
    container_query: [],
    log_query: [],
    end_time: 1_700_000_001,
    sort: 'desc',
    from: 0,
    size: 10,
    interval: { count: 15, unit: 'm' },
    follow: false,
    pretty: false,
  });
});

test('a log query with all parameters is parsed', () => {
  const text =
    'operation=query&namespaces=a,b&workloads=w&pods=p&containers=c&namespace_query=N&workload_query=W&pod_query=P&container_query=C' +
    '&log_query=x y,%E2%82%AC&start_time=5&end_time=7&sort=asc&from=3&size=0&pretty=1&timeout=3s&follow=false';
  expect(parse(text)).toEqual({
    operation: 'query',
    namespaces: ['a', 'b'],
    workloads: ['w'],
    pods: ['p'],
    containers: ['c'],
    namespace_query: ['N'],
    workload_query: ['W'],
    pod_query: ['P'],
    container_query: ['C'],
    log_query: ['x y', '€'],
    start_time: 5,
    end_time: 7,
    sort: 'asc',
    from: 3,
    size: 0,
    interval: { count: 15, unit: 'm' },
    follow: false,
    pretty: true,
    timeout: '3s',
  });
  expect(parse('operation=histogram&interval=1M').interval).toEqual({ count: 1, unit: 'M' });
});

describe('the times of a log query', () => {
  test.each([
    ['0', 0],
    ['1700000000', 1_700_000_000],
    ['01700000000', 1_700_000_000],
  ])('the log query parameter start_time=%s is accepted', (text, start) => {
    expect(parse(`start_time=${text}`).start_time).toBe(start);
  });

  test.each([
    ['1700000000000', ' (milliseconds? try 1700000000)'],
    ['1700000000999', ' (milliseconds? try 1700000000)'],
    ['100000000000', ' (milliseconds? try 100000000)'],
    ['1700000000000000', ' (microseconds? try 1700000000)'],
    ['1700000000000000000', ' (nanoseconds? try 1700000000)'],
    ...['1700000000.5', '1700000000.', '-1', '+1', '', '1e9', '0x10', 'now', ' 5', '\u0661'].map((text) => [text, '']),
    ...['2023-11-14', '2023-11-14T22:13:20Z', '99999999999999999999999999'].map((text) => [text, '']),
  ])('the log query time %j is rejected', (text = '', hint) => {
    const problem = `expected Unix seconds, such as 1700000000, got "${text}"${hint}`;
    const encoded = encodeURIComponent(text);
    expect(problems(`start_time=${encoded}&end_time=${encoded}`)).toEqual({ start_time: problem, end_time: problem });
  });

  test('a start_time after end_time is rejected, and a start_time equal to end_time is accepted', () => {
    expect(problems('start_time=5&end_time=4')).toEqual({ start_time: '5 is after end_time (4)' });
    expect(problems('start_time=1700000002')['start_time']).toMatch(/is after now \(1700000001\)/);
    expect(problems('start_time=4&end_time=4')).toEqual({});
  });

  test('any text as the time of a log query is parsed or rejected with 400', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const query = new URLSearchParams({ end_time: text }).toString();
        const wrong = problems(query)['end_time'];
        expect(wrong === undefined).toBe(/^\d{1,16}$/.test(text) && Number(text) < 1e11);
      }),
    );
  });
});

describe('an invalid log query', () => {
  test.each([
    ['operation', 'Query', /must be one of query, statistics, histogram, export; did you mean "query"\?/],
    ['sort', 'newest', /must be one of desc, asc/],
    ['size', '-1', /from 0 to 10000/],
    ['size', '10001', /from 0 to 10000, got "10001"; operation=export has no limit$/],
    ['size', '1.5', /whole number/],
    ['from', 'x', /whole number/],
    ['from', '100001', /from 0 to 100000/],
    ['interval', '0m', /from 1/],
    ['interval', '15', /15m/],
    ['interval', '1.5h', /such as 15m/],
    ['interval', '2w', /1 with w, M, q or y/],
    ['interval', '3M', /got "3M"/],
    ['interval', '999999d', /at most 100 years, got "999999d"/],
    ['follow', 'yes', /true .* or false/],
    ['pretty', '', /true/],
    ['namespaces', 'a,,b', /^contains an empty item$/],
    ['namespaces', 'a'.repeat(254), /more than 253 characters/],
    ['pods', 'a%0Ab', /characters that are not allowed in names: "a\\nb"/],
    ['workloads', 'Web', /characters that are not allowed in names/],
    ['workload_query', 'a(b', /characters that are not allowed in names/],
    ['container_query', 'a%09b', /characters that are not allowed in names/],
    ['log_query', 'x'.repeat(1_025), /more than 1024/],
    ['log_query', Array.from({ length: 101 }, (_, i) => i).join(','), /at most 100 items, got 101/],
    ['namespaces', Array.from({ length: 5_001 }, (_, i) => i).join(','), /at most 5000/],
    ['start', '5', /^unknown parameter; did you mean start_time\?$/],
  ])('a log query is rejected with %s=%s', (name, text, message) => {
    expect(problems(`${name}=${text}`)[name]).toMatch(message);
  });

  test('a log query is rejected if a parameter is repeated', () => {
    expect(problems('pods=a&pods=b')).toEqual({ pods: 'is given more than once' });
  });

  test('a log query is rejected if from and size together exceed the last record that can be read', () => {
    expect(problems('from=99990&size=11')['from']).toMatch(/100000/);
    expect(problems('from=99990&size=10')).toEqual({});
  });

  test('a histogram with too many buckets is rejected, and other operations ignore the interval', () => {
    expect(problems('operation=histogram&interval=1s&start_time=0&end_time=10001')['interval']).toMatch(
      /10000 buckets/,
    );
    expect(problems('operation=histogram&interval=1s&start_time=0&end_time=10000')).toEqual({});
    expect(problems('interval=1s&start_time=0&end_time=10001')).toEqual({});
  });

  test.each(['query', 'statistics', 'histogram', 'export'])(
    'a log query with parameters that operation=%s ignores is accepted',
    (operation) => {
      expect(problems(`operation=${operation}&from=1&size=5&sort=asc&interval=1m`)).toEqual({});
    },
  );

  test('a log query that combines follow with parameters that follow does not support is rejected, unless their values are the defaults', () => {
    const wrong = problems('follow=true&from=1&size=5&sort=asc&interval=1m&start_time=1&end_time=2');
    expect(Object.keys(wrong).toSorted()).toEqual(['end_time', 'from', 'interval', 'size', 'sort', 'start_time']);
    expect(problems('follow=true&from=0&size=10&sort=desc&interval=15m')).toEqual({});
  });

  test('the error for a log query contains one problem for each invalid parameter', () => {
    const error = refusalOf('follow=true&size=x&start_time=');
    expect(error?.details?.causes).toHaveLength(2);
  });

  test('the error for a log query names the first invalid item of each list', () => {
    const upperCase = Array.from({ length: 50 }, (_, index) => `A${index}`).join(',');
    expect(problems(`workloads=b,${upperCase}&workload_query=a(,b(&size=x`)).toEqual({
      workloads: 'contains an item with characters that are not allowed in names: "A0"',
      workload_query: 'contains an item with characters that are not allowed in names: "a("',
      size: expect.stringContaining('whole number'),
    });
  });

  test('a log query is rejected if a list has too many items, even if all items are equal', () => {
    expect(problems(`workloads=${Array.from({ length: 101 }, () => 'a').join(',')}`)).toEqual({
      workloads: 'expected at most 100 items, got 101',
    });
  });

  test('the error for a log query with conflicting parameters names the conflict only if each parameter is valid', () => {
    expect(Object.keys(problems('start_time=2&end_time=1&from=100000&size=x'))).toEqual(['size']);
    expect(Object.keys(problems('start_time=2&end_time=1&from=100000&size=1'))).toEqual(['start_time', 'from']);
  });

  test('a log query with follow is rejected if its operation is not query', () => {
    expect(problems('follow=true&operation=export&size=1')).toEqual({
      follow: 'is supported only for operation=query, not for export',
      size: expect.stringContaining('follow'),
    });
  });
});

test('a keyword for the text of log records with tabs and ANSI color codes is accepted', () => {
  expect(parse('log_query=%09at,%1B[31mred').log_query).toEqual(['\tat', '\u001b[31mred']);
});

test('an empty list in a log query has no items, and a repeated item counts once', () => {
  expect(parse('namespaces=&pods=a,b,a')).toMatchObject({ namespaces: [], pods: ['a', 'b'] });
});

test('the error for a log query lists as many problems as fit in its message, and the number of further problems', () => {
  const error = refusalOf(Array.from({ length: 15_000 }, (_, index) => index.toString(36)).join('&'));
  expect(JSON.stringify(error?.toStatus()).length).toBeLessThan(8_192);
  expect(error?.message).toMatch(/; and 149\d\d more$/);
});
