import { expect, test } from '@jest/globals';
import { differences } from '../../upstream/differences.ts';
import { node, pattern, simulated, type Selection } from '../../upstream/specs.ts';

const sentence = /^[`\w].{20,}\.$/;

const selects = ({ focus, skip }: Selection, spec: string): boolean =>
  new RegExp(pattern(focus)).test(spec) && !new RegExp(pattern(skip)).test(spec);

test('each listed difference between kube-apiserver and the gateway has a reason, and names a spec that is run', () => {
  for (const { spec, reason } of differences) {
    expect([simulated, node].filter((selection) => selects(selection, spec))).toHaveLength(1);
    expect(reason).toMatch(sentence);
  }
});

test('no spec is listed twice among the differences between kube-apiserver and the gateway', () => {
  const names = differences.map(({ spec }) => spec);
  expect(new Set(names).size).toBe(names.length);
});

test('each group of upstream specs has a reason and regular expressions that both JavaScript and Go support', () => {
  for (const { reason, specs } of [simulated, node].flatMap(({ focus, skip }) => [...focus, ...skip])) {
    expect(reason).toMatch(sentence);
    expect(specs.length).toBeGreaterThan(0);
    for (const { source, flags } of specs) {
      expect(flags).toBe('');
      // Regular expressions of Go support neither lookaround assertions nor backreferences.
      expect(source).not.toMatch(/\(\?|\\[1-9]/);
    }
  }
});
