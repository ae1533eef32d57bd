import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Baseline, Job, Message } from './messages.ts';

export interface Outcome {
  /** Test that fails with the mutant, or what happened to the process; undefined if all tests passed. */
  readonly by: string | undefined;
  /** How long the tests took, or are known to take. */
  readonly milliseconds: number;
}

interface Attempt {
  readonly file: string;
  readonly sources: string;
  /** Ids of the mutants that no test has killed yet, and the milliseconds that the tests of each may still take. */
  readonly mutants: ReadonlyMap<string, number>;
  readonly report: (id: string, outcome: Outcome) => void;
  /** Tests that fail without a mutant. */
  readonly failed: (titles: readonly string[]) => void;
  /** Mutants of code that runs while modules are loaded. */
  readonly loaded: (ids: readonly string[]) => void;
}

/** Turns after which a process is replaced: tests leave memory behind. */
const turns = 400;
/** Milliseconds for all tests of a file without a mutant. */
const longestBaseline = 300_000;

/** Tries the mutants with one test file. A process that ends, hangs or is no longer clean is replaced. */
export async function tryFile({ file, sources, mutants, report, failed, loaded }: Attempt): Promise<void> {
  let baseline: Baseline | undefined;
  const rest = new Map(mutants);
  const unclean = new Set<string>();
  for (;;) {
    const job: Job = {
      file,
      sources,
      // In a new process those that were not clean are the first.
      mutants: [...rest]
        .toSorted(([one], [other]) => Number(unclean.has(other)) - Number(unclean.has(one)))
        .slice(0, turns),
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
        // A test that fails in a new process too, without a mutant, says nothing about the mutant.
        if (unclean.has(message.id)) rest.delete(message.id);
        unclean.add(message.id);
      }
    });
    if (end.during !== undefined) {
      rest.delete(end.during);
      report(end.during, { by: end.why, milliseconds: 0 });
    }
    // Mutants that only failing tests reach are not tried.
    if (end.isDone) for (const [id] of job.mutants) rest.delete(id);
    else if (end.during === undefined && !isUnclean) {
      failed([`the file itself: ${end.why}`]);
      return;
    }
    if (rest.size === 0) return;
  }
}

interface End {
  readonly isDone: boolean;
  /** Mutant that was active, unless it was reported. */
  readonly during: string | undefined;
  readonly why: string;
}

function work(job: Job, heard: (message: Message) => void): Promise<End> {
  return new Promise((resolve) => {
    const child = fork(fileURLToPath(new URL('worker.ts', import.meta.url)), {
      execArgv: ['--disable-warning=ExperimentalWarning', '--max-old-space-size=4096'],
      stdio: ['ignore', 'ignore', process.env['MUTANTS_DEBUG'] === undefined ? 'ignore' : 'inherit', 'ipc'],
    });
    let during: string | undefined;
    let why = 'the process ended';
    let isDone = false;
    const hang = (): void => {
      why = 'the process hung';
      child.kill('SIGKILL');
    };
    let timer = setTimeout(hang, longestBaseline);
    child.on('message', (message: Message) => {
      if (message.type === 'start') {
        during = message.id;
        clearTimeout(timer);
        timer = setTimeout(hang, 30_000 + 5 * message.expected);
      } else if (message.type !== 'baseline') during = undefined;
      if (message.type === 'done') isDone = true;
      heard(message);
    });
    child.once('exit', () => {
      clearTimeout(timer);
      resolve({ isDone, during, why });
    });
    child.send(job);
  });
}
