import { describe, expect, test } from '@jest/globals';
import { LiveConfiguration } from '../../../src/config/live.ts';
import { configuration } from '../../fakes/configuration.ts';

const [first, second] = [configuration({}), configuration({ requests: { maxInFlight: 7 } })];

describe('the configuration in force', () => {
  test('is none before the first one', () => {
    const live = new LiveConfiguration();
    expect(live.accepted).toBe(false);
    expect(() => live.value).toThrow('no configuration was accepted yet');
    live.refuse([{ path: 'kind', message: 'is wrong' }]);
    expect(live.accepted).toBe(false);
    expect(() => live.value).toThrow('no configuration was accepted yet');
  });

  test('is the last good one while the newest is refused, whose problems are told until one is accepted', () => {
    const live = new LiveConfiguration();
    live.accept(first);
    const problems = [{ path: 'kind', message: 'is wrong' }];
    live.refuse(problems);
    expect(live.value).toBe(first);
    expect(live.accepted).toBe(true);
    expect(live.problems).toEqual(problems);
    live.accept(second);
    expect(live.value).toBe(second);
    expect(live.problems).toEqual([]);
  });

  test('is told to every subscriber, at once if there is one, and refusals are not', () => {
    const live = new LiveConfiguration();
    const early: unknown[] = [];
    const late: unknown[] = [];
    live.subscribe((value) => early.push(value));
    expect(early).toEqual([]);
    live.accept(first);
    live.subscribe((value) => late.push(value));
    live.refuse([{ path: '', message: 'is wrong' }]);
    live.accept(second);
    expect(early).toEqual([first, second]);
    expect(late).toEqual([first, second]);
  });

  test('is in force already when it is told', () => {
    const live = new LiveConfiguration();
    const seen: unknown[] = [];
    live.subscribe(() => seen.push(live.value));
    live.accept(first);
    expect(seen).toEqual([first]);
  });
});
