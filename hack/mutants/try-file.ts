import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Baseline, Job, Message } from './messages.ts';

export interface Outcome {
  /** Test that fails with the mutant, or how the process ended; undefined if all tests passed. */
  readonly by: string | undefined;
  /** Duration of the tests. */
  readonly milliseconds: number;
}

interface Attempt {
  readonly file: string;
  readonly sources: string;
  /** Remaining test milliseconds by mutant id, for the mutants that no test has killed yet. */
  readonly mutants: ReadonlyMap<string, number>;
  readonly report: (id: string, outcome: Outcome) => void;
  /** Receives the tests that fail without a mutant. */
  readonly failed: (titles: readonly string[]) => void;
  /** Receives the mutants of code that runs while modules are loaded. */
  readonly loaded: (ids: readonly string[]) => void;
}

/** Maximum mutants per process: tests leak memory, so the process is then replaced. */
const mutantsPerProcess = 400;
/** Timeout in milliseconds for all tests of a file without a mutant. */
const baselineTimeout = 300_000;

/** Tries the mutants with one test file. Replaces a process that exits, hangs or is no longer clean. */
export async function tryFile({ file, sources, mutants, report, failed, loaded }: Attempt): Promise<void> {
  let baseline: Baseline | undefined;
  const rest = new Map(mutants);
  const unclean = new Set<string>();
  for (;;) {
    const job: Job = {
      file,
      sources,
      // A new process tries the unclean mutants first.
      mutants: [...rest]
        .toSorted(([one], [other]) => Number(unclean.has(other)) - Number(unclean.has(one)))
        .slice(0, mutantsPerProcess),
      ...(baseline === undefined ? {} : { baseline }),
    };
    let isUnclean = false;
    const end = await work(job, (message) => {
      if (message.type === 'baseline') {
        ({ baseline } = message);
        failed(message.failed);
        loaded(message.baseline.loaded);
        const { reached } = message.baseline;
        for (const id of rest.keys()) if (reached[id] === undefined) rest.delete(id);
      } else if (message.type === 'tried') {
        rest.delete(message.id);
        report(message.id, { by: message.by, milliseconds: message.milliseconds });
      } else if (message.type === 'unclean') {
        isUnclean = true;
        // A test that also fails without the mutant in a new process proves nothing about the mutant.
        if (unclean.has(message.id)) rest.delete(message.id);
        unclean.add(message.id);
      }
    });
    if (end.during !== undefined) {
      rest.delete(end.during);
      report(end.during, { by: end.reason, milliseconds: 0 });
    }
    // Mutants that only failing tests reach are not tried.
    if (end.isDone) for (const [id] of job.mutants) rest.delete(id);
    else if (end.during === undefined && !isUnclean) {
      failed([`the file itself: ${end.reason}`]);
      return;
    }
    if (rest.size === 0) return;
  }
}

interface End {
  readonly isDone: boolean;
  /** Mutant that was active and not yet reported when the process ended. */
  readonly during: string | undefined;
  readonly reason: string;
}

function work(job: Job, onMessage: (message: Message) => void): Promise<End> {
  return new Promise((resolve) => {
    const child = fork(fileURLToPath(new URL('worker.ts', import.meta.url)), {
      execArgv: ['--disable-warning=ExperimentalWarning', '--max-old-space-size=4096'],
      stdio: ['ignore', 'ignore', process.env['MUTANTS_DEBUG'] === undefined ? 'ignore' : 'inherit', 'ipc'],
    });
    let during: string | undefined;
    let reason = 'the process exited';
    let isDone = false;
    const killHung = (): void => {
      reason = 'the process hung';
      child.kill('SIGKILL');
    };
    let timer = setTimeout(killHung, baselineTimeout);
    child.on('message', (message: Message) => {
      if (message.type === 'start') {
        during = message.id;
        clearTimeout(timer);
        timer = setTimeout(killHung, 30_000 + 5 * message.expected);
      } else if (message.type !== 'baseline') during = undefined;
      if (message.type === 'done') isDone = true;
      onMessage(message);
    });
    child.once('exit', () => {
      clearTimeout(timer);
      resolve({ isDone, during, reason });
    });
    child.send(job);
  });
}
