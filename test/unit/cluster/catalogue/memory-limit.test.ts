import { beforeEach, expect, test } from '@jest/globals';
import { MemoryLimit } from '../../../../src/cluster/catalogue/memory-limit.ts';

const mebibyte = 2 ** 20;
let max: number;
let rooms: (() => void)[];
let limit: MemoryLimit;
beforeEach(() => {
  max = 10 * mebibyte;
  rooms = [];
  limit = new MemoryLimit({
    maxBytes: () => max,
    makeRoom: () => {
      const room = rooms.shift();
      room?.();
      return room !== undefined;
    },
  });
});

test('the shares of a memory limit count towards one total', () => {
  const pods = limit.share('pods');
  const jobs = limit.share('jobs');
  pods.hold(6 * mebibyte);
  jobs.hold(4 * mebibyte);
  expect(limit.held).toBe(10 * mebibyte);
  expect(() => jobs.hold(5.5 * mebibyte)).toThrow(
    expect.objectContaining({
      code: 503,
      message:
        'jobs does not fit into the cache memory: 5.5 MiB were read so far, other resources use 6.0 MiB, and cache.maxBytes in the configuration is 10.0 MiB',
      headers: { 'Retry-After': '30' },
    }),
  );
  expect(limit.held).toBe(10 * mebibyte);
  pods.hold(5 * mebibyte);
  jobs.hold(5 * mebibyte);
  pods.release();
  pods.hold(mebibyte);
  expect(limit.held).toBe(5 * mebibyte);
});

test('the memory limit releases only as much memory as a request needs', () => {
  const old = [limit.share('a'), limit.share('b'), limit.share('c')];
  for (const share of old) share.hold(3 * mebibyte);
  rooms = old.map((share) => () => share.release());
  limit.share('new').hold(5 * mebibyte);
  expect(limit.held).toBe(8 * mebibyte);
  expect(rooms).toHaveLength(1);
});

test('a share of a memory limit that is released to make room for its own request holds no memory if the request is rejected', () => {
  const pods = limit.share('pods');
  pods.hold(6 * mebibyte);
  rooms = [() => pods.release()];
  expect(() => pods.hold(11 * mebibyte)).toThrow('11.0 MiB were read so far, other resources use 0.0 MiB');
  expect(limit.held).toBe(0);
});

test('lowering a memory limit releases no memory that is in use', () => {
  const pods = limit.share('pods');
  pods.hold(6 * mebibyte);
  max = mebibyte;
  pods.hold(5 * mebibyte);
  expect(() => pods.hold(5 * mebibyte + 1)).toThrow('cache.maxBytes in the configuration is 1.0 MiB');
});

test('a memory limit counts memory for essential resources and never rejects it', () => {
  limit.share('nodes', true).hold(20 * mebibyte);
  expect(() => limit.share('pods').hold(1)).toThrow('other resources use 20.0 MiB');
});
