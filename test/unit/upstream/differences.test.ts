import { expect, test } from '@jest/globals';
import { differences } from '../../upstream/differences.ts';
import { node, pattern, simulated, type Selection } from '../../upstream/specs.ts';

const sentence = /^[`\w].{20,}\.$/;

const selects = ({ focus, skip }: Selection, spec: string): boolean =>
  new RegExp(pattern(focus)).test(spec) && !new RegExp(pattern(skip)).test(spec);

test('each difference between kube-apiserver and the gateway names a spec that runs, and a reason', () => {
  for (const { spec, reason } of differences) {
    expect([simulated, node].filter((selection) => selects(selection, spec))).toHaveLength(1);
    expect(reason).toMatch(sentence);
  }
});

test('no spec is listed twice among the differences between kube-apiserver and the gateway', () => {
  const names = differences.map(({ spec }) => spec);
  expect(new Set(names).size).toBe(names.length);
});

test('each group of upstream specs has a reason and expressions that both JavaScript and Go understand', () => {
  for (const { reason, specs } of [simulated, node].flatMap(({ focus, skip }) => [...focus, ...skip])) {
    expect(reason).toMatch(sentence);
    expect(specs.length).toBeGreaterThan(0);
    for (const { source, flags } of specs) {
      expect(flags).toBe('');
      // Go has neither lookaround nor references.
      expect(source).not.toMatch(/\(\?|\\[1-9]/);
    }
  }
});
