import { expect, test } from '@jest/globals';
import { containerMemoryLimit } from '../../../src/runtime/memory.ts';

const machine = 8 * 1024 ** 3;

test.each([
  ['the limit of the container, if it has one', 2 * 1024 ** 3, 2 * 1024 ** 3],
  ['0 if Node.js reports no limit', 0, 0],
  ['0 if Node.js reports a huge number because there is no limit', 2 ** 64, 0],
])('the memory limit is %s', (_, constrained, limit) => {
  expect(containerMemoryLimit(constrained, machine)).toBe(limit);
});
