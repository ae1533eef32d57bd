/** Times as strings whose lexical order is their order in time: RFC 3339 in UTC with nanoseconds. */
import { parseTime } from '../../runtime/time.ts';

/** Last second that an RFC 3339 string can represent: the end of the year 9999. */
export const lastSecond = 253_402_300_799;

const secondText = (milliseconds: number): string => new Date(milliseconds).toISOString().slice(0, 19);

/** Formats whole seconds since the epoch. */
export const timeText = (seconds: number): string => `${secondText(seconds * 1_000)}.000000000Z`;

/** Formats the last nanosecond of a second. */
export const endOfSecond = (seconds: number): string => `${secondText(seconds * 1_000)}.999999999Z`;

/** Converts a time of any zone and precision; returns undefined if it is not a time. */
export function normalizeTime(text: string): string | undefined {
  const time = parseTime(text);
  return time && `${secondText(time.second)}.${String(time.nanosecond).padStart(9, '0')}Z`;
}

/** Returns whole seconds since the epoch, rounded down. */
export const secondsOf = (time: string): number => Date.parse(`${time.slice(0, 19)}Z`) / 1_000;

/** Returns milliseconds since the epoch, rounded down. */
export const millisecondsOf = (time: string): number => Date.parse(`${time.slice(0, 23)}Z`);
