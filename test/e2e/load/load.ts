/** Loads: clients that repeat an action while a test changes the servers. */
import { strictEqual } from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Load {
  /** Name of the actions in the report, in the plural. */
  readonly label: string;
  /** Milliseconds between the end of one action and the start of the next. */
  readonly pause: number;
  /** Performs the action once. Throws if a user would notice a failure. The end of the load aborts the signal. */
  readonly act: (signal: AbortSignal) => Promise<void>;
}

interface Outcome {
  readonly label: string;
  readonly milliseconds: number[];
  readonly failures: string[];
}

/** Minimum number of actions of each load. Fewer actions would prove nothing. */
const minActions = 5;

/**
 * Repeats all loads during `work`, and until each load has performed `minActions`. Returns the numbers of
 * actions and their latencies. Throws if any action failed.
 */
export async function under(loads: readonly Load[], work: () => Promise<unknown>): Promise<string> {
  const end = new AbortController();
  const outcomes = loads.map(({ label }): Outcome => ({ label, milliseconds: [], failures: [] }));
  const running = loads.map((load, index) => repeat(load, outcomes[index] as Outcome, end.signal));
  let problem = '';
  try {
    await sleep(500);
    await work();
    await sleep(1000);
    while (outcomes.some(({ milliseconds, failures }) => milliseconds.length + failures.length < minActions))
      await sleep(100);
  } catch (error) {
    // Failed actions may explain why the work failed.
    problem = error instanceof Error ? error.message : String(error);
  }
  end.abort();
  await Promise.all(running);
  const problems = outcomes.flatMap(({ label, milliseconds, failures }) =>
    failures.length === 0
      ? []
      : `${failures.length} of ${milliseconds.length + failures.length} ${label} failed: ${[...new Set(failures)].join('; ')}`,
  );
  strictEqual([problem, ...problems].filter((one) => one !== '').join('\n'), '');
  const total = outcomes.reduce((sum, { milliseconds }) => sum + milliseconds.length, 0);
  const reports = outcomes.map(
    ({ label, milliseconds }) => `${milliseconds.length} ${label}, p99 ${percentile99(milliseconds).toFixed(0)} ms`,
  );
  return `0 of ${total} actions failed: ${reports.join('; ')}`;
}

/** Returns the value that 99 % of the values do not exceed, which is the maximum of fewer than 100 values. */
function percentile99(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(0.99 * sorted.length) - 1] ?? NaN;
}

async function repeat({ pause, act }: Load, outcome: Outcome, signal: AbortSignal): Promise<void> {
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
}
