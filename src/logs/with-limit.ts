import { tooManyRequests } from '../errors.ts';
import type { LogStore } from './log-store.ts';
import { wrapped, type Around, type Stream } from './wrapped.ts';

export interface Limits {
  /** Questions at once. */
  readonly most: number;
  /** Of those that may wait for their turn. */
  readonly waiting: number;
  /** Exports and tails, which last: nobody waits for one to end. */
  readonly streams: number;
}

const usual: Limits = { most: 16, waiting: 200, streams: 64 };

const refusal = (): Error => tooManyRequests('too many queries of logs at once; try again', 1);

/** Bounds what all stores that are wrapped by the answer are asked at once; whoever finds no place is told 429. */
export function limited({ most, waiting, streams }: Limits = usual): (store: LogStore) => LogStore {
  const line = new Set<() => void>();
  let running = 0;
  let streaming = 0;

  async function turn(signal: AbortSignal): Promise<void> {
    if (running < most) {
      running += 1;
      return;
    }
    if (line.size >= waiting) throw refusal();
    await new Promise<void>((resolve, reject) => {
      const giveUp = (): void => {
        line.delete(next);
        reject(signal.reason as Error);
      };
      const next = (): void => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      line.add(next);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  /** The place goes to who waits the longest. */
  function leave(): void {
    const [next] = line;
    if (next === undefined) {
      running -= 1;
      return;
    }
    line.delete(next);
    next();
  }

  const around: Around = {
    async ask(operation, signal, run) {
      // Whether it answers at all is known best when it is busy.
      if (operation === 'check') return await run(signal);
      signal.throwIfAborted();
      await turn(signal);
      try {
        return await run(signal);
      } finally {
        leave();
      }
    },
    async *stream(_operation, signal, run): Stream {
      if (streaming >= streams) throw refusal();
      streaming += 1;
      try {
        return yield* run(signal);
      } finally {
        streaming -= 1;
      }
    },
  };
  return (store) => wrapped(store, around);
}
