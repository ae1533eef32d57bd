import { StatusError } from '../../runtime/errors.ts';
import type { LogStore } from './log-store.ts';
import { wrapped, type LogStream } from './wrapped.ts';

/** `result`: `ok`, the code of an error, or `ended` where the caller had gone. */
export type Observe = (operation: string, result: string, seconds: number) => void;

/** Tells how long each question took, of exports and tails as a whole. */
export function withMetrics(store: LogStore, observe: Observe): LogStore {
  function measured(operation: string, signal: AbortSignal): (error?: unknown) => void {
    const begin = performance.now();
    return (error) => {
      const result =
        error === undefined
          ? 'ok'
          : error instanceof StatusError
            ? String(error.code)
            : signal.aborted
              ? 'ended'
              : '500';
      observe(operation, result, (performance.now() - begin) / 1_000);
    };
  }

  return wrapped(store, {
    async ask(operation, signal, run) {
      const done = measured(operation, signal);
      try {
        const answer = await run(signal);
        done();
        return answer;
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
