import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { TaskQueue } from '../../../src/accounts/queue.ts';
import { settle } from '../kube/fakes.ts';

const full = (): Error => new RangeError('full');

describe('a queue of tasks', () => {
  test('runs so many at once, keeps so many waiting in their order, and refuses the rest', async () => {
    const queue = new TaskQueue(2, 3);
    const ends: (() => void)[] = [];
    const begun: number[] = [];
    const outcomes = Array.from({ length: 7 }, (_, index) =>
      queue
        .run(async () => {
          begun.push(index);
          await new Promise<void>((resolve) => ends.push(resolve));
          return index;
        }, full)
        .catch((error: unknown) => error),
    );
    await settle();
    expect(begun).toEqual([0, 1]);
    expect(await outcomes[5]).toEqual(full());
    expect(await outcomes[6]).toEqual(full());
    ends[1]?.();
    await settle();
    expect(begun).toEqual([0, 1, 2]);
    for (let index = 0; index < 5; index += 1) {
      ends[index]?.();
      await settle();
    }
    expect(await Promise.all(outcomes.slice(0, 5))).toEqual([0, 1, 2, 3, 4]);
    expect(begun).toEqual([0, 1, 2, 3, 4]);
  });

  test('goes on after a task that failed or threw', async () => {
    const queue = new TaskQueue(1, 10);
    const failed = queue.run(async () => await Promise.reject(new Error('one')), full);
    const threw = queue.run(() => {
      throw new Error('two');
    }, full);
    const done = queue.run(async () => 'three', full);
    await expect(failed).rejects.toThrow('one');
    await expect(threw).rejects.toThrow('two');
    expect(await done).toBe('three');
    expect(await queue.run(async () => 'four', full)).toBe('four');
  });

  test('never runs more than it may, and loses no task, in whatever order they end', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 0, max: 4 }),
        fc.integer({ min: 1, max: 12 }),
        async (scheduler, concurrency, longest, tasks) => {
          const queue = new TaskQueue(concurrency, longest);
          let running = 0;
          let most = 0;
          const outcomes = Array.from({ length: tasks }, (_, index) =>
            queue
              .run(async () => {
                running += 1;
                most = Math.max(most, running);
                await scheduler.schedule(Promise.resolve());
                running -= 1;
                return index;
              }, full)
              .catch(() => 'refused'),
          );
          const all = Promise.all(outcomes);
          await scheduler.waitFor(all);
          expect(most).toBe(Math.min(concurrency, tasks));
          expect((await all).filter((one) => one === 'refused')).toHaveLength(
            Math.max(0, tasks - concurrency - longest),
          );
          expect(running).toBe(0);
        },
      ),
    );
  });
});
