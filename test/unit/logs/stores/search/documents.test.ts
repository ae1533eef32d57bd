import { expect, test } from '@jest/globals';
import { exactTime, recordOf } from '../../../../../src/logs/stores/search/documents.ts';

const at = Date.UTC(2026, 2, 1, 12, 30, 5);

test.each<[string, unknown, number, string]>([
  ['has nine digits', '2026-03-01T12:30:05.005000001Z', 5, '005000001'],
  ['lacks leading zeros, as from containerd', '2026-03-01T12:30:05.5000001Z', 5, '005000001'],
  ['omits trailing zeros', '2026-03-01T12:30:05.5000001Z', 500, '500000100'],
  ['has one digit, which stands for nanoseconds', '2026-03-01T12:30:05.7Z', 0, '000000007'],
  ['has one digit, which stands for tenths of a second', '2026-03-01T12:30:05.7Z', 700, '700000000'],
  ['has the fraction 0', '2026-03-01T12:30:05.0Z', 0, '000000000'],
  ['has no fraction', '2026-03-01T12:30:05Z', 0, '000000000'],
  ['is in another time zone', '2026-03-01T14:30:05.123456+02:00', 123, '123456000'],
  ['contradicts the indexed time', '2026-03-01T12:30:05.123456Z', 999, '999000000'],
  ['is a number', 5, 42, '042000000'],
  ['is missing', undefined, 42, '042000000'],
])(
  'a log record gets the most exact time that is known if its timestamp %s',
  (_what, time, milliseconds, nanoseconds) => {
    expect(exactTime(time, at + milliseconds)).toBe(`2026-03-01T12:30:05.${nanoseconds}Z`);
  },
);

test('a log record has all its fields, with empty strings for missing or invalid values', () => {
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
