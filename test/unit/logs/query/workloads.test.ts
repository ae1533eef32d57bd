import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { matcherOf, podPatternOf, podPatternContaining, workloadsOf } from '../../../../src/logs/query/workloads.ts';

const named = (pattern: string): ((pod: string) => boolean) =>
  matcherOf({ workload: '', pattern, alsoPods: [], notPods: [] });

const alphabet = 'bcdfghjklmnpqrstvwxz2456789'.split('');
const random = fc.string({ unit: fc.constantFrom(...alphabet), minLength: 5, maxLength: 5 });
const hash = fc.string({ unit: fc.constantFrom(...alphabet), minLength: 1, maxLength: 10 });
const name = fc
  .tuple(
    fc.constantFrom(...'abcxyz'.split('')),
    fc.string({ unit: fc.constantFrom(...'abc019.-'.split('')), maxLength: 61 }),
    fc.constantFrom(...'abcxyz019'.split('')),
  )
  .map((parts) => parts.join(''));

/** Joins a base name and a suffix like SimpleNameGenerator of k8s.io/apiserver, which truncates long base names. */
const generate = (base: string, suffix: string): string => base.slice(0, 58) + suffix;

describe('a workload with any name', () => {
  test('the pods of a Deployment with any name are recognized by their names', () => {
    fc.assert(
      fc.property(name, hash, random, (workload, templateHash, suffix) => {
        fc.pre(workload.length < 58);
        expect(named(podPatternOf(workload))(generate(`${workload}-${templateHash}-`, suffix))).toBe(true);
      }),
    );
  });

  test('the pods of a DaemonSet, a Job or a ReplicaSet with any name are recognized by their names', () => {
    fc.assert(
      fc.property(name, random, (workload, suffix) => {
        expect(named(podPatternOf(workload))(generate(`${workload}-`, suffix))).toBe(true);
      }),
    );
  });

  test('the pods of a StatefulSet with any name are recognized by their names', () => {
    fc.assert(
      fc.property(name, fc.nat(), (workload, index) => {
        expect(named(podPatternOf(workload))(`${workload}-${index}`)).toBe(true);
      }),
    );
  });

  test('the pods of a CronJob with any name are recognized by their names', () => {
    fc.assert(
      fc.property(name, fc.integer({ min: 20_000_000, max: 99_999_999 }), random, (workload, minute, suffix) => {
        fc.pre(workload.length <= 52);
        expect(named(podPatternOf(workload))(generate(`${workload}-${minute}-`, suffix))).toBe(true);
      }),
    );
  });
});

test.each([
  ['includes', 'web', 'web-7d8f9c-x2x4z'],
  ['includes', 'web', 'web-0'],
  ['includes', 'web', 'web-x2x4z'],
  ['excludes', 'web', 'web'],
  ['excludes', 'web', 'web-'],
  ['excludes', 'web', 'web-admin-7d8f9c-x2x4z'],
  ['excludes', 'web', 'my-web-0'],
  ['excludes', 'web', 'web-0x'],
  ['excludes', 'a.b', 'aXb-0'],
  ['includes', 'a.b', 'a.b-0'],
])('a workload %s a pod by name: workload %s, pod %s', (outcome, workload, pod) => {
  expect(named(podPatternOf(workload))(pod)).toBe(outcome === 'includes');
});

test.each([
  ['includes', 'eb', 'web-7d8f9c-x2x4z'],
  ['includes', 'EB', 'my-web-server-0'],
  ['excludes', 'web', 'other-7d8f9c-x2x4z'],
  ['excludes', 'web', 'web'],
  ['excludes', '.', 'a-0'],
])('a filter for workload names %s a pod: filter "%s", pod %s', (outcome, keyword, pod) => {
  expect(named(podPatternContaining(keyword))(pod)).toBe(outcome === 'includes');
});

test('known pod names of a workload take precedence over the name pattern', () => {
  const matches = matcherOf({ workload: 'web', pattern: podPatternOf('web'), alsoPods: ['odd'], notPods: ['web-0'] });
  expect(['odd', 'web-0', 'web-1', 'else'].map(matches)).toEqual([true, false, true, false]);
});

test.each<[string, string, readonly string[], string | undefined]>([
  ['ReplicaSet', 'web-7d8f9c', ['web'], '7d8f9c'],
  ['ReplicaSet', 'web-7d8f9c', ['web-7d8f9c'], undefined],
  ['ReplicaSet', 'web', ['web'], '7d8f9c'],
  ['StatefulSet', 'db', ['db'], undefined],
  ['DaemonSet', 'agent', ['agent'], undefined],
  ['Job', 'import', ['import'], undefined],
  ['Job', 'nightly-29012345', ['nightly-29012345', 'nightly'], undefined],
  ['Node', 'node-1', [], undefined],
])('a pod of the %s %s belongs to the workloads %j', (kind, owner, expected, templateHash) => {
  const labels = templateHash === undefined ? {} : { 'pod-template-hash': templateHash };
  expect(workloadsOf({ labels, ownerReferences: [{ kind, name: owner, controller: true }] })).toEqual(expected);
});

test('a pod without an owner belongs to no workload', () => {
  expect(workloadsOf({ labels: {}, ownerReferences: [] })).toEqual([]);
});
