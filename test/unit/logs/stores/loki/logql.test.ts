import { describe, expect, test } from '@jest/globals';
import type { Selection } from '../../../../../src/logs/stores/log-store.ts';
import { linesOf, logQLQueryOf } from '../../../../../src/logs/stores/loki/logql.ts';
import { sharesOfContainers } from '../../../../../src/logs/stores/loki/shares.ts';
import { spansOf } from '../../../../../src/logs/stores/remote/parts.ts';
import { everything } from '../../../../labs/fake-store.ts';

const labels = { namespace: 'namespace', pod: 'pod', container: 'container' };
const none = everything.keywords;

const queriesOf = (selection: Partial<Selection>, textField?: string): string[] => {
  const whole = { ...everything, ...selection };
  return spansOf(whole).map((part) => linesOf(logQLQueryOf(whole, part, { labels, textField })));
};

const workload = { workload: 'web', pattern: 'web-[0-9]+', alsoPods: ['w.1'], notPods: [] };

const container = (namespace: string, pod: string, name: string) => ({ namespace, pod, container: name });

describe('a selection in LogQL', () => {
  test.each<[string, Partial<Selection>, string]>([
    ['everything', {}, '{namespace=~".+"}'],
    ['a namespace', { namespaces: new Map([['a', 0]]), start: 5 }, '{namespace="a"}'],
    ['pods', { pods: ['a.b', 'c'] }, String.raw`{namespace=~".+",pod=~"a\\.b|c"}`],
    ['a quote', { pods: ['"}'] }, String.raw`{namespace=~".+",pod="\"}"}`],
    ['a workload', { workloads: [workload] }, String.raw`{namespace=~".+",pod=~"web-[0-9]+|w\\.1"}`],
    [
      'a workload that shares name patterns with others',
      { workloads: [{ ...workload, notPods: ['web-7'] }] },
      String.raw`{namespace=~".+",pod=~"web-[0-9]+|w\\.1"} | (pod=~"web-[0-9]+" and pod!~"web-7") or pod="w.1"`,
    ],
    [
      'a keyword for names',
      { keywords: { ...none, pod: ['A', '.*'] } },
      String.raw`{namespace=~".+",pod=~".*(?:(?i:A)|(?i:\\.\\*)).*"}`,
    ],
    [
      'keywords',
      { keywords: { ...none, log: ['a"b', 'c\\d'] } },
      String.raw`{namespace=~".+"} |~ "(?i:a\"b)|(?i:c\\\\d)"`,
    ],
  ])('a log selection of %s is translated to LogQL', (_what, selection, query) => {
    expect(queriesOf(selection)).toEqual([query]);
  });

  test('a selection in LogQL filters the records of a namespace by time if the namespace becomes visible within the time range', () => {
    const namespaces = new Map([
      ['old', 0],
      ['new', 10],
    ]);
    expect(queriesOf({ namespaces, start: 5, end: 20 })).toEqual([
      '{namespace=~"old|new"} | label_format platform_second="{{__timestamp__ | unixEpoch}}" | namespace!~"new" or (namespace="new" and platform_second >= 10) | drop platform_second',
    ]);
  });

  test('a selection in LogQL searches the text of JSON objects in the configured field', () => {
    const [query = ''] = queriesOf({ keywords: { ...none, log: ['x'] } }, 'log');
    expect(query.indexOf('json platform_text="[\\"log\\"]"')).toBeGreaterThan(0);
    expect(query.indexOf('|~')).toBeGreaterThan(query.indexOf('line_format'));
  });
});

describe('the parts of a query in LogQL', () => {
  test('each part of a query in LogQL contains a limited number of containers', () => {
    const known = ['a', 'b', 'c'].flatMap((namespace) => ['x', 'y'].map((pod) => container(namespace, pod, 'app')));
    expect(sharesOfContainers(known, labels, 4)).toEqual([{ namespaces: ['a', 'b'] }, { namespaces: ['c'] }]);
  });

  test('a namespace with too many containers for one part of a query in LogQL is divided by its pods', () => {
    const known = [container('a', 'x', 'app'), ...['1', '2', '3'].map((pod) => container('b', pod, 'app'))];
    expect(sharesOfContainers(known, labels, 2)).toEqual([
      { namespaces: ['a'] },
      { namespaces: ['b'], pods: ['1', '2'] },
      { namespaces: ['b'], pods: ['3'] },
    ]);
  });

  test('a container counts once towards a part of a query in LogQL, however many streams the container has', () => {
    const known = ['stdout', 'stderr'].map((stream) => ({ ...container('a', 'x', 'app'), stream }));
    expect(sharesOfContainers([...known, container('a', 'y', 'app')], labels, 2)).toEqual([{ namespaces: ['a'] }]);
  });
});
