import { expect, test } from '@jest/globals';
import { mapConcurrent } from '../../../src/runtime/promises.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('mapConcurrent() returns results in the order of the items and has at most `max` calls in progress', async () => {
  let inProgress = 0;
  let maxInProgress = 0;
  const results = await mapConcurrent([5, 1, 4, 2, 3], 2, async (turns) => {
    maxInProgress = Math.max(maxInProgress, (inProgress += 1));
    for (let done = 0; done < turns; done += 1) await turn();
    inProgress -= 1;
    return turns * 10;
  });
  expect({ results, maxInProgress }).toEqual({ results: [50, 10, 40, 20, 30], maxInProgress: 2 });
});

test('mapConcurrent() returns an empty list for no items', async () => {
  expect(await mapConcurrent([], 4, async (item) => item)).toEqual([]);
});

test('mapConcurrent() throws the first failure and starts no call after it', async () => {
  const started: number[] = [];
  const mapped = mapConcurrent([0, 1, 2, 3, 4, 5], 2, async (item) => {
    started.push(item);
    await turn();
    if (item === 2) throw new Error(`item ${item} failed`);
    for (let done = 0; done < item; done += 1) await turn();
  });
  await expect(mapped).rejects.toThrow('item 2 failed');
  for (let done = 0; done < 10; done += 1) await turn();
  expect(started).toEqual([0, 1, 2]);
});
