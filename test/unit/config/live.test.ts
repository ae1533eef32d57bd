import { describe, expect, test } from '@jest/globals';
import { LiveConfiguration } from '../../../src/config/live.ts';
import { configuration } from '../../fakes/configuration.ts';

const [first, second] = [configuration({}), configuration({ requests: { maxInFlight: 7 } })];

describe('the live configuration', () => {
  test('the live configuration is undefined before the first valid document', () => {
    const live = new LiveConfiguration();
    expect(live.accepted).toBe(false);
    expect(() => live.value).toThrow('no configuration has been accepted yet');
    live.refuse([{ path: 'kind', message: 'is wrong' }]);
    expect(live.accepted).toBe(false);
    expect(() => live.value).toThrow('no configuration has been accepted yet');
  });

  test('the live configuration keeps the last valid document while a newer document is rejected, and reports the problems of the newer document', () => {
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

  test('the live configuration sends every accepted document to every subscriber, and its current document to a new subscriber', () => {
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

  test('the live configuration is in effect before subscribers are called', () => {
    const live = new LiveConfiguration();
    const seen: unknown[] = [];
    live.subscribe(() => seen.push(live.value));
    live.accept(first);
    expect(seen).toEqual([first]);
  });
});

describe('a configuration warning', () => {
  const missing = { path: 'a', message: 'there is no Secret "a"' };
  const refused = { path: 'b', message: 'is refused' };

  test('a configuration warning is reported only when it appears, changes or disappears', () => {
    const live = new LiveConfiguration();
    const reported: unknown[] = [];
    live.warned.subscribe((warnings) => reported.push(warnings));
    live.accept(first);
    live.warn('references', []);
    expect(reported).toEqual([]);
    live.warn('references', [missing]);
    live.warn('references', [missing]);
    live.warn('corp', [refused]);
    expect(reported).toEqual([[missing], [missing, refused]]);
    live.warn('references', []);
    expect(live.warnings).toEqual([refused]);
    live.warn('corp', []);
    expect(reported.slice(2)).toEqual([[refused], []]);
  });

  test('a configuration warning does not prevent the configuration from taking effect, and disappears with the next configuration', () => {
    const live = new LiveConfiguration();
    live.accept(first);
    live.warn('corp', [refused]);
    expect(live.value).toBe(first);
    expect(live.problems).toEqual([]);
    live.refuse([missing]);
    expect(live.warnings).toEqual([refused]);
    const reported: unknown[] = [];
    live.warned.subscribe((warnings) => reported.push(warnings));
    live.subscribe(() => live.warn('references', []));
    live.accept(second);
    expect(live.warnings).toEqual([]);
    expect(reported).toEqual([[]]);
  });
});
