import { StatusError } from '../../runtime/errors.ts';
import type { LogStore } from './log-store.ts';
import { wrapped, type LogStream } from './wrapped.ts';

/** `result`: `ok`, the code of an error, or `ended` if the caller disconnected. */
export type Observe = (operation: string, result: string, seconds: number) => void;

/** Measures the duration of each request. An export or tail counts as one request. */
export function withMetrics(store: LogStore, observe: Observe): LogStore {
  function measured(operation: string, signal: AbortSignal): (error?: unknown) => void {
    const start = performance.now();
    return (error) => {
      const result =
        error === undefined
          ? 'ok'
          : error instanceof StatusError
            ? String(error.code)
            : signal.aborted
              ? 'ended'
              : '500';
      observe(operation, result, (performance.now() - start) / 1_000);
    };
  }

  return wrapped(store, {
    async call(operation, signal, run) {
      const done = measured(operation, signal);
      try {
        const result = await run(signal);
        done();
        return result;
      } catch (error) {
        done(error);
        throw error;
      }
    },
    async *stream(operation, signal, run): LogStream {
      const done = measured(operation, signal);
      let problem: unknown;
      try {
        return yield* run(signal);
      } catch (error) {
        problem = error;
        throw error;
      } finally {
        done(problem);
      }
    },
  });
}
