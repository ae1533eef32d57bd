/**
 * RFC 3339 times with any offset and nanoseconds: Leases and Events have microseconds, which a Date cannot represent.
 */

export interface Time {
  /** Whole second, as milliseconds since the epoch. */
  readonly second: number;
  readonly nanosecond: number;
}

/** Matches RFC 3339 times. Digits after the ninth are ignored, as in Go. */
const pattern = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)$/;

/** Parses an RFC 3339 time. Returns undefined for any other text. */
export function parseTime(text: string): Time | undefined {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const [, local = '', fraction = '', offset = ''] = match;
  const second = Date.parse(`${local}${offset}`);
  return Number.isNaN(second) ? undefined : { second, nanosecond: Number(fraction.padEnd(9, '0')) };
}

export const compareTimes = (a: Time, b: Time): number => a.second - b.second || a.nanosecond - b.nanosecond;

/** Returns milliseconds since the epoch, rounded down, or NaN if the text is not an RFC 3339 time. */
export const parseMilliseconds = (text: string): number => (pattern.test(text) ? Date.parse(text) : NaN);

/** Source of time for components, which tests replace. */
export interface Clock {
  /** Returns milliseconds since the epoch. */
  now(): number;
  /** Returns milliseconds since an arbitrary moment. The value never decreases. */
  monotonic(): number;
  /** Calls `run` once after this delay, unless the returned function is called first. */
  after(milliseconds: number, run: () => void): () => void;
  /** Returns a random number for jitter, which is at least 0 and less than 1. */
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

/**
 * The second that was formatted last. The three times that a request writes to the log and the audit log are usually in
 * the same second.
 */
const last = { second: NaN, text: '' };

/**
 * Formats a time as RFC 3339 like Kubernetes, but with milliseconds. `time`: milliseconds since the epoch, rounded
 * down.
 */
export function rfc3339(time: number): string {
  const second = Math.floor(time / 1_000);
  if (second !== last.second) {
    last.text = new Date(second * 1_000).toISOString().slice(0, -4);
    last.second = second;
  }
  return `${last.text}${String(Math.floor(time - second * 1_000)).padStart(3, '0')}Z`;
}

/** Resolves after the delay, or immediately when the signal is aborted. */
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
 * Calls `run` repeatedly until the signal is aborted, with a pause of about `interval` milliseconds before each call.
 * Jitter of 20% keeps replicas apart. `run` must not throw.
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
