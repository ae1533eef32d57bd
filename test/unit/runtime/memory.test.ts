import { expect, test } from '@jest/globals';
import { containerMemoryLimit, GarbageOfStart } from '../../../src/runtime/memory.ts';
import { FakeClock } from '../../labs/cluster-fakes.ts';

const machine = 8 * 1024 ** 3;

test.each([
  ['the limit of the container, if it has one', 2 * 1024 ** 3, 2 * 1024 ** 3],
  ['0 if Node.js reports no limit', 0, 0],
  ['0 if Node.js reports a huge number because there is no limit', 2 ** 64, 0],
])('the memory limit is %s', (_, constrained, limit) => {
  expect(containerMemoryLimit(constrained, machine)).toBe(limit);
});

function setUp() {
  const clock = new FakeClock();
  const state = { hasStarted: false, collections: 0 };
  const garbage = new GarbageOfStart({
    hasStarted: () => state.hasStarted,
    clock,
    collect: () => (state.collections += 1),
  });
  garbage.start();
  return { clock, state, garbage };
}

test('the garbage of the start is collected once, after the start is complete', async () => {
  const { clock, state } = setUp();
  await clock.advance(60_000);
  expect(state.collections).toBe(0);
  state.hasStarted = true;
  await clock.advance(100);
  expect(state.collections).toBe(1);
  await clock.advance(600_000);
  expect(state.collections).toBe(1);
});

test('the garbage of the start is not collected after a stop', async () => {
  const { clock, state, garbage } = setUp();
  garbage.stop();
  state.hasStarted = true;
  await clock.advance(600_000);
  expect(state.collections).toBe(0);
  expect(clock.pending()).toEqual([]);
});
