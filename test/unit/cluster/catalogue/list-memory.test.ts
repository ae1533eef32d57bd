import { beforeEach, expect, test } from '@jest/globals';
import { ListMemory } from '../../../../src/cluster/catalogue/list-memory.ts';

const mebibyte = 2 ** 20;
let memory: ListMemory;
beforeEach(() => {
  memory = new ListMemory(() => 40 * mebibyte);
});

test('the lists of one user use at most a quarter of cache.maxBytes', () => {
  const first = memory.share('alice', 'secrets');
  const second = memory.share('alice', 'secrets');
  first.hold(6 * mebibyte);
  second.hold(4 * mebibyte);
  expect(() => second.hold(4 * mebibyte + 1)).toThrow(
    expect.objectContaining({
      code: 429,
      message: 'secrets: your share of the memory for lists that are not cached, 10.0 MiB, is in use; try again later',
      headers: { 'Retry-After': '1' },
    }),
  );
  memory.share('bob', 'secrets').hold(10 * mebibyte);
  expect(memory.held).toBe(20 * mebibyte);
  first.release();
  first.hold(5 * mebibyte);
  expect(memory.held).toBe(14 * mebibyte);
  second.hold(10 * mebibyte);
  second.release();
  memory.share('alice', 'secrets').hold(10 * mebibyte);
});

test('a list that exceeds the memory share of its user is rejected, and the error gives the reason', () => {
  expect(() => memory.share('alice', 'secrets').hold(10 * mebibyte + 1)).toThrow(
    expect.objectContaining({
      code: 503,
      message: 'secrets exceeds the memory for one user, 10.0 MiB (a quarter of cache.maxBytes in the configuration)',
      headers: { 'Retry-After': '30' },
    }),
  );
  expect(memory.held).toBe(0);
});

test('the lists of all users use at most half of cache.maxBytes', () => {
  memory.share('alice', 'secrets').hold(10 * mebibyte);
  memory.share('bob', 'secrets').hold(9 * mebibyte);
  const third = memory.share('carol', 'secrets');
  third.hold(mebibyte);
  expect(() => third.hold(mebibyte + 1)).toThrow(
    expect.objectContaining({
      code: 503,
      message: 'secrets: the memory for lists that are not cached, 20.0 MiB, is in use; try again later',
      headers: { 'Retry-After': '1' },
    }),
  );
  expect(memory.held).toBe(20 * mebibyte);
});
