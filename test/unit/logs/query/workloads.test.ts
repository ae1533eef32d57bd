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

/** SimpleNameGenerator of k8s.io/apiserver pkg/storage/names. */
const generate = (base: string, suffix: string): string => base.slice(0, 58) + suffix;

describe('a workload with any name', () => {
  test('a Deployment with any name includes its pods by their names', () => {
    fc.assert(
      fc.property(name, hash, random, (workload, templateHash, suffix) => {
        fc.pre(workload.length < 58);
        expect(named(podPatternOf(workload))(generate(`${workload}-${templateHash}-`, suffix))).toBe(true);
      }),
    );
  });

  test('a DaemonSet, a Job and a ReplicaSet with any name include their pods by their names', () => {
    fc.assert(
      fc.property(name, random, (workload, suffix) => {
        expect(named(podPatternOf(workload))(generate(`${workload}-`, suffix))).toBe(true);
      }),
    );
  });

  test('a StatefulSet with any name includes its pods by their names', () => {
    fc.assert(
      fc.property(name, fc.nat(), (workload, index) => {
        expect(named(podPatternOf(workload))(`${workload}-${index}`)).toBe(true);
      }),
    );
  });

  test('a CronJob with any name includes its pods by their names', () => {
    fc.assert(
      fc.property(name, fc.integer({ min: 20_000_000, max: 99_999_999 }), random, (workload, minute, suffix) => {
        fc.pre(workload.length <= 52);
        expect(named(podPatternOf(workload))(generate(`${workload}-${minute}-`, suffix))).toBe(true);
      }),
    );
  });
});

test.each([
  ['web', 'web-7d8f9c-x2x4z', true],
  ['web', 'web-0', true],
  ['web', 'web-x2x4z', true],
  ['web', 'web', false],
  ['web', 'web-', false],
  ['web', 'web-admin-7d8f9c-x2x4z', false],
  ['web', 'my-web-0', false],
  ['web', 'web-0x', false],
  ['a.b', 'aXb-0', false],
  ['a.b', 'a.b-0', true],
])('the workload %s includes the pod %s: %s', (workload, pod, expected) => {
  expect(named(podPatternOf(workload))(pod)).toBe(expected);
});

test.each([
  ['eb', 'web-7d8f9c-x2x4z', true],
  ['EB', 'my-web-server-0', true],
  ['web', 'other-7d8f9c-x2x4z', false],
  ['web', 'web', false],
  ['.', 'a-0', false],
])('a filter for workload names that contain "%s" includes the pod %s: %s', (keyword, pod, expected) => {
  expect(named(podPatternContaining(keyword))(pod)).toBe(expected);
});

test('known pod names of a workload take precedence over the name pattern', () => {
  const matches = matcherOf({ workload: 'web', pattern: podPatternOf('web'), alsoPods: ['odd'], notPods: ['web-0'] });
  expect(['odd', 'web-0', 'web-1', 'else'].map(matches)).toEqual([true, false, true, false]);
});

const owned = (kind: string, owner: string, hashLabel?: string): readonly string[] =>
  workloadsOf({
    labels: hashLabel === undefined ? {} : { 'pod-template-hash': hashLabel },
    ownerReferences: [{ kind, name: owner, controller: true }],
  });

test.each([
  [owned('ReplicaSet', 'web-7d8f9c', '7d8f9c'), ['web']],
  [owned('ReplicaSet', 'web-7d8f9c'), ['web-7d8f9c']],
  [owned('ReplicaSet', 'web', '7d8f9c'), ['web']],
  [owned('StatefulSet', 'db'), ['db']],
  [owned('DaemonSet', 'agent'), ['agent']],
  [owned('Job', 'import'), ['import']],
  [owned('Job', 'nightly-29012345'), ['nightly-29012345', 'nightly']],
  [owned('Node', 'node-1'), []],
  [workloadsOf({ labels: {}, ownerReferences: [] }), []],
])('the workloads of a pod are derived from its owner (row %#)', (found, expected) => {
  expect(found).toEqual(expected);
});
