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

describe('a warning', () => {
  const missing = { path: 'a', message: 'there is no Secret "a"' };
  const refused = { path: 'b', message: 'is refused' };

  test('is told when it comes, changes and goes, and not again in between', () => {
    const live = new LiveConfiguration();
    const told: unknown[] = [];
    live.warned.subscribe((warnings) => told.push(warnings));
    live.accept(first);
    live.warn('references', []);
    expect(told).toEqual([]);
    live.warn('references', [missing]);
    live.warn('references', [missing]);
    live.warn('corp', [refused]);
    expect(told).toEqual([[missing], [missing, refused]]);
    live.warn('references', []);
    expect(live.warnings).toEqual([refused]);
    live.warn('corp', []);
    expect(told.slice(2)).toEqual([[refused], []]);
  });

  test('does not refuse the configuration, and is gone with it', () => {
    const live = new LiveConfiguration();
    live.accept(first);
    live.warn('corp', [refused]);
    expect(live.value).toBe(first);
    expect(live.problems).toEqual([]);
    live.refuse([missing]);
    expect(live.warnings).toEqual([refused]);
    const told: unknown[] = [];
    live.warned.subscribe((warnings) => told.push(warnings));
    live.subscribe(() => live.warn('references', []));
    live.accept(second);
    expect(live.warnings).toEqual([]);
    expect(told).toEqual([[]]);
  });
});
