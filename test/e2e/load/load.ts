/** Loads: clients that repeat an action while the servers are changed. */
import { strictEqual } from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Load {
  /** Name of the actions in the report, in the plural. */
  readonly label: string;
  /** Milliseconds between the end of one action and the start of the next. */
  readonly pause: number;
  /** Performs the action once. Throws if a user would notice a failure. The signal is aborted at the end of the load. */
  readonly act: (signal: AbortSignal) => Promise<void>;
}

interface Outcome {
  readonly label: string;
  readonly milliseconds: number[];
  readonly failures: string[];
}

/** Minimum number of actions without which a load proves nothing. */
const minActions = 5;

/** Repeats all loads during `work` and a little longer. Throws if any action failed, otherwise returns a report. */
export async function under(loads: readonly Load[], work: () => Promise<unknown>): Promise<string> {
  const end = new AbortController();
  const running = loads.map((load) => repeat(load, end.signal));
  try {
    await sleep(500);
    await work();
    await sleep(1000);
  } finally {
    end.abort();
  }
  const outcomes = await Promise.all(running);
  const problems = outcomes.flatMap(({ label, milliseconds, failures }) => {
    const total = milliseconds.length + failures.length;
    if (total < minActions) return `only ${total} ${label} were made: ${failures.join('; ')}`;
    return failures.length === 0
      ? []
      : `${failures.length} of ${total} ${label} failed: ${[...new Set(failures)].join('; ')}`;
  });
  strictEqual(problems.join('\n'), '');
  return outcomes
    .map(({ label, milliseconds }) => {
      const sorted = milliseconds.toSorted((a, b) => a - b);
      const at = (share: number): string => (sorted[Math.ceil(sorted.length * share) - 1] ?? 0).toFixed(0);
      return `${sorted.length} ${label} (p99 ${at(0.99)} ms, maximum ${at(1)} ms)`;
    })
    .join(', ');
}

async function repeat({ label, pause, act }: Load, signal: AbortSignal): Promise<Outcome> {
  const outcome: Outcome = { label, milliseconds: [], failures: [] };
  while (!signal.aborted) {
    const begin = performance.now();
    try {
      await act(signal);
      outcome.milliseconds.push(performance.now() - begin);
    } catch (error) {
      outcome.failures.push(error instanceof Error ? error.message : String(error));
    }
    await sleep(pause);
  }
  return outcome;
}
