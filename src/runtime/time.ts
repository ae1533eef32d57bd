/** Time as the cluster readers need it; a test hands in its own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `run` once after that many milliseconds, unless the returned function is called before. */
  after(milliseconds: number, run: () => void): () => void;
  /** From 0 to below 1, for jitter. */
  random(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
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
