/** Times as texts that compare as they do: RFC 3339 in UTC with nine digits of a second. */
import { parseTime } from '../../runtime/time.ts';

/** The texts of whole seconds that a Date has: from 0 to the end of the year 9999. */
export const lastSecond = 253_402_300_799;

const secondText = (milliseconds: number): string => new Date(milliseconds).toISOString().slice(0, 19);

/** Of whole seconds since the epoch. */
export const timeText = (seconds: number): string => `${secondText(seconds * 1_000)}.000000000Z`;

/** The last time that is in such a second. */
export const endOfSecond = (seconds: number): string => `${secondText(seconds * 1_000)}.999999999Z`;

/** The same time, whatever its zone and digits; undefined for what is no time. */
export function normalized(text: string): string | undefined {
  const time = parseTime(text);
  return time && `${secondText(time.second)}.${String(time.nanosecond).padStart(9, '0')}Z`;
}

/** Whole seconds since the epoch, rounded down, of such a text. */
export const secondsOf = (time: string): number => Date.parse(`${time.slice(0, 19)}Z`) / 1_000;

/** Milliseconds since the epoch, rounded down. */
export const millisecondsOf = (time: string): number => Date.parse(`${time.slice(0, 23)}Z`);
