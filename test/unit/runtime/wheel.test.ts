import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { Wheel } from '../../../src/runtime/wheel.ts';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

test('a timer wheel calls each entry once, at its time, and runs no timer when it is empty', async () => {
  const called: string[] = [];
  const wheel = new Wheel<string>((entry) => called.push(entry));
  const now = performance.now();
  wheel.put('late', now + 5_000);
  wheel.put('soon', now + 1_000);
  wheel.put('past', now - 1_000);
  const gone = wheel.put('gone', now + 1_000);
  wheel.remove('gone', gone);
  await jest.advanceTimersByTimeAsync(200);
  expect(called).toEqual(['past']);
  await jest.advanceTimersByTimeAsync(700);
  expect(called).toEqual(['past']);
  await jest.advanceTimersByTimeAsync(300);
  expect(called).toEqual(['past', 'soon']);
  await jest.advanceTimersByTimeAsync(4_000);
  expect(called).toEqual(['past', 'soon', 'late']);
  expect(jest.getTimerCount()).toBe(0);
});

test('an entry of a timer wheel can be added again by its own callback', async () => {
  let calls = 0;
  const wheel = new Wheel<string>((entry) => {
    calls += 1;
    if (calls < 3) wheel.put(entry, performance.now());
  });
  wheel.put('again', performance.now());
  await jest.advanceTimersByTimeAsync(1_000);
  expect(calls).toBe(3);
});
