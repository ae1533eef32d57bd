/** RFC 3339 times, with any offset and to the nanosecond: Leases and Events have microseconds, which a Date does not hold. */

export interface Time {
  /** Whole second, as milliseconds since the epoch. */
  readonly second: number;
  readonly nanosecond: number;
}

/** Digits after the ninth are ignored, as by Go. */
const pattern = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)$/;

/** Undefined if the text is not an RFC 3339 time. */
export function parseTime(text: string): Time | undefined {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const [, local = '', fraction = '', offset = ''] = match;
  const second = Date.parse(`${local}${offset}`);
  return Number.isNaN(second) ? undefined : { second, nanosecond: Number(fraction.padEnd(9, '0')) };
}

export const compareTimes = (a: Time, b: Time): number => a.second - b.second || a.nanosecond - b.nanosecond;

/** Milliseconds since the epoch, rounded down; NaN if the text is not an RFC 3339 time. */
export function parseMilliseconds(text: string): number {
  const time = parseTime(text);
  return time === undefined ? NaN : time.second + Math.floor(time.nanosecond / 1_000_000);
}
