import { expect, test } from '@jest/globals';
import { exactTime, recordOf } from '../../../../../src/logs/stores/search/documents.ts';

const at = Date.UTC(2026, 2, 1, 12, 30, 5);

test.each<[string, unknown, number, string]>([
  ['nine digits', '2026-03-01T12:30:05.005000001Z', 5, '005000001'],
  ['without leading zeros, as of containerd', '2026-03-01T12:30:05.5000001Z', 5, '005000001'],
  ['the same of another millisecond', '2026-03-01T12:30:05.5000001Z', 500, '500000100'],
  ['of a single nanosecond', '2026-03-01T12:30:05.7Z', 0, '000000007'],
  ['seven tenths', '2026-03-01T12:30:05.7Z', 700, '700000000'],
  ['zero', '2026-03-01T12:30:05.0Z', 0, '000000000'],
  ['no fraction', '2026-03-01T12:30:05Z', 0, '000000000'],
  ['of another zone', '2026-03-01T14:30:05.123456+02:00', 123, '123456000'],
  ['that disagrees', '2026-03-01T12:30:05.123456Z', 999, '999000000'],
  ['that is a number', 5, 42, '042000000'],
  ['that is missing', undefined, 42, '042000000'],
])('a time with %s', (_what, time, milliseconds, nanoseconds) => {
  expect(exactTime(time, at + milliseconds)).toBe(`2026-03-01T12:30:05.${nanoseconds}Z`);
});

test('a record has its fields, and texts where they are missing or of another kind', () => {
  const kubernetes = { namespace_name: 'a', pod_name: 'b', container_name: 'c' };
  const time = '2026-03-01T12:30:05.000000000Z';
  expect(recordOf({ log: 'one\ntwo\n', time, kubernetes }, at)).toEqual({
    time,
    namespace: 'a',
    pod: 'b',
    container: 'c',
    log: 'one\ntwo',
  });
  expect(recordOf({ log: 'half \ud83d a sign', kubernetes: { pod_name: 7 } }, at)).toEqual({
    time,
    namespace: '',
    pod: '',
    container: '',
    log: 'half \ufffd a sign',
  });
  expect(recordOf({}, at).log).toBe('');
});
