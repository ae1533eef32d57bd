import { describe, expect, test } from '@jest/globals';
import { compare, format, merge, readResults, type GinkgoReport, type Results } from '../../upstream/report.ts';

const spec = (text: string, state: string, message?: string): GinkgoReport['SpecReports'][number] => ({
  ContainerHierarchyTexts: ['[sig-a]', 'Things'],
  LeafNodeType: 'It',
  LeafNodeText: text,
  State: state,
  NumAttempts: 1,
  ...(message === undefined ? {} : { Failure: { Message: message } }),
});

const results = (outcomes: Readonly<Record<string, 'passed' | 'failed' | 'skipped'>>): Results =>
  new Map(Object.entries(outcomes).map(([name, outcome]) => [name, { outcome, message: '' }]));

describe('readResults()', () => {
  test('readResults() returns selected specs by their full name, with the first line of a failure', () => {
    const SpecReports = [
      spec('work', 'passed'),
      spec('break', 'failed', 'expected 1\ngot 2'),
      spec('hang', 'timedout', 'no end'),
      spec('need a kubelet', 'skipped', 'no kubelet'),
      { ...spec('are not selected', 'skipped'), NumAttempts: 0 },
    ];
    expect(Object.fromEntries(readResults({ SpecReports }))).toEqual({
      '[sig-a] Things work': { outcome: 'passed', message: '' },
      '[sig-a] Things break': { outcome: 'failed', message: 'expected 1' },
      '[sig-a] Things hang': { outcome: 'failed', message: 'no end' },
      '[sig-a] Things need a kubelet': { outcome: 'skipped', message: 'no kubelet' },
    });
  });

  test('readResults() throws if a step of the suite failed', () => {
    const setup = { ...spec('', 'failed', 'no nodes'), LeafNodeType: 'SynchronizedBeforeSuite' };
    expect(() => readResults({ SpecReports: [spec('work', 'passed'), setup] })).toThrow(
      'the specs did not run completely: SynchronizedBeforeSuite: no nodes',
    );
  });

  test('readResults() throws if the suite timed out', () => {
    const report = { SpecReports: [spec('work', 'passed')], SpecialSuiteFailureReasons: ['Suite Timeout Elapsed'] };
    expect(() => readResults(report)).toThrow('Suite Timeout Elapsed');
  });

  test('readResults() throws if no spec was run', () => {
    expect(() => readResults({ SpecReports: [] })).toThrow('no spec was run');
  });
});

describe('merge()', () => {
  test('merge() joins the results of both clusters', () => {
    expect(merge([results({ a: 'passed' }), results({ b: 'failed' })])).toEqual(results({ a: 'passed', b: 'failed' }));
  });

  test('merge() throws if a spec ran in both clusters', () => {
    expect(() => merge([results({ a: 'passed' }), results({ a: 'passed' })])).toThrow(
      'both selections contain the spec a',
    );
  });
});

const listed = [{ spec: 'a', reason: 'The gateway has no a.' }];

describe('compare()', () => {
  test('compare() accepts a spec that fails only through the gateway if the difference is listed', () => {
    const comparison = compare(results({ a: 'passed', b: 'failed' }), results({ a: 'failed', b: 'failed' }), listed);
    expect(comparison).toMatchObject({ different: ['a'], unlisted: [], outdated: [] });
  });

  test('compare() reports differences that are not listed, and specs that are missing from one run', () => {
    const direct = results({ a: 'passed', b: 'passed', c: 'failed', d: 'passed' });
    const gateway = results({ a: 'failed', b: 'failed', c: 'passed', e: 'passed' });
    expect(compare(direct, gateway, listed)).toMatchObject({ unlisted: ['b', 'c', 'd', 'e'], outdated: [] });
  });

  test('compare() reports a listed difference as outdated if the spec passes through the gateway', () => {
    const comparison = compare(results({ a: 'passed' }), results({ a: 'passed' }), listed);
    expect(comparison).toMatchObject({ different: [], unlisted: [], outdated: ['a'] });
  });

  test('compare() reports a listed spec that fails only at kube-apiserver', () => {
    expect(compare(results({ a: 'failed' }), results({ a: 'passed' }), listed)).toMatchObject({ unlisted: ['a'] });
  });
});

test('the conformance report has the counts of both runs, and each difference with its reason', () => {
  const direct = results({ a: 'passed', b: 'passed', c: 'failed', d: 'skipped' });
  const gateway = results({ a: 'failed', b: 'passed', c: 'failed', d: 'skipped' });
  const report = format(compare(direct, gateway, listed), listed, 'v1.2.3');
  expect(report).toBe(`# Kubernetes end-to-end tests, v1.2.3

|  | passed | failed | skipped |
| --- | --- | --- | --- |
| direct | 2 | 1 | 1 |
| gateway | 1 | 2 | 1 |

## Expected differences

- a
  - direct: passed
  - gateway: failed
  - reason: The gateway has no a.

## Failed in both runs

- c
  - direct: failed
  - gateway: failed
`);
});
