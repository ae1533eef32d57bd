/**
 * Sampling profiles of this process by V8. They contain names of functions, positions in the source, times and sizes,
 * but no values. A heap snapshot would contain keys and passwords, so this server creates no heap snapshots.
 */
import type { Session } from 'node:inspector/promises';
import { tooManyRequests } from './errors.ts';
import { sleep, systemClock } from './time.ts';

interface ProfileKind {
  readonly start: (session: Session) => Promise<unknown>;
  readonly stop: (session: Session) => Promise<{ readonly profile: object }>;
}

/** Microseconds between two samples of the CPU. With the default of V8, a profile would be ten times as large. */
const interval = 1_000;

export const profileKinds = {
  cpu: {
    start: async (session) => {
      await session.post('Profiler.enable');
      await session.post('Profiler.setSamplingInterval', { interval });
      await session.post('Profiler.start');
    },
    stop: (session) => session.post('Profiler.stop'),
  },
  heap: {
    start: (session) => session.post('HeapProfiler.startSampling'),
    stop: (session) => session.post('HeapProfiler.stopSampling'),
  },
} as const satisfies Readonly<Record<string, ProfileKind>>;

/** Records one profile at a time, because profiles slow the process down. */
export class Profiler {
  #isRecording = false;
  /** Time at which the latest profile ends, by `performance.now()`. */
  #end = 0;

  /**
   * Records a profile for this number of milliseconds. Throws StatusError 429 while another profile is recorded, or the
   * reason of the signal.
   */
  async record(kind: ProfileKind, milliseconds: number, signal: AbortSignal): Promise<object> {
    const now = performance.now();
    if (this.#isRecording)
      throw tooManyRequests(
        'another profile is being recorded; please try again later',
        Math.max(1, Math.ceil((this.#end - now) / 1_000)),
      );
    this.#isRecording = true;
    this.#end = now + milliseconds;
    try {
      return await record(kind, milliseconds, signal);
    } finally {
      this.#isRecording = false;
    }
  }
}

async function record({ start, stop }: ProfileKind, milliseconds: number, signal: AbortSignal): Promise<object> {
  const { Session: InspectorSession } = await import('node:inspector/promises');
  const session = new InspectorSession();
  try {
    session.connect();
    await start(session);
    await sleep(systemClock, milliseconds, signal);
    signal.throwIfAborted();
    return (await stop(session)).profile;
  } finally {
    // Disconnecting also ends a profile that was not stopped.
    session.disconnect();
  }
}
