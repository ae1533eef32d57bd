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
export const parseMilliseconds = (text: string): number => (pattern.test(text) ? Date.parse(text) : NaN);

/** The time of the components. Tests pass their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since an arbitrary moment; is never set back. */
  monotonic(): number;
  /** Calls `run` once after that many milliseconds, unless the returned function is called before. */
  after(milliseconds: number, run: () => void): () => void;
  /** From 0 to below 1, for jitter. */
  random(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(milliseconds, run) {
    const timer = setTimeout(run, milliseconds);
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
};

/** As Kubernetes writes times, RFC 3339 with milliseconds. `time`: milliseconds since the epoch. */
export const rfc3339 = (time: number): string => new Date(time).toISOString();

/** Resolves after that many milliseconds, or at once when the signal is aborted. */
export function sleep(clock: Clock, milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.after(milliseconds, end);
    signal.addEventListener('abort', end);
  });
}

/**
 * Calls `run` about `interval` milliseconds after each time that it has ended, until the signal is aborted. Jitter of a fifth keeps replicas
 * apart. `run` must not throw.
 */
export async function repeat(
  clock: Clock,
  interval: number,
  signal: AbortSignal,
  run: () => Promise<void> | void,
): Promise<void> {
  for (;;) {
    await sleep(clock, interval * (0.8 + 0.4 * clock.random()), signal);
    if (signal.aborted) return;
    await run();
  }
}
