import { afterEach, expect, jest, test } from '@jest/globals';
import { Session } from 'node:inspector/promises';
import { Profiler, profileKinds } from '../../../src/runtime/profiler.ts';

afterEach(() => void jest.restoreAllMocks());

test('a profiler records again after it could not connect to the inspector', async () => {
  const profiler = new Profiler();
  const { signal } = new AbortController();
  jest.spyOn(Session.prototype, 'connect').mockImplementationOnce(() => {
    throw new Error('no inspector');
  });
  await expect(profiler.record(profileKinds.heap, 1, signal)).rejects.toThrow('no inspector');
  expect(await profiler.record(profileKinds.heap, 1, signal)).toHaveProperty('head');
});
