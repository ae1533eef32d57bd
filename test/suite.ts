/** One suite, run by jest in a process group of its own, which is ended if it takes too long: a test that hangs must not hang the run. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { unfinishedFile } from './unfinished.ts';

export interface Suite {
  /** Of its folder. */
  readonly name: string;
  /** Of jest. */
  readonly options: readonly string[];
  /** Seconds after which it is ended. */
  readonly limit: number;
}

export interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly seconds: number;
  /** Why the suite fails, apart from failed tests; '' if it does not. */
  readonly problem: string;
}

/** What is read of jest's --json. */
interface Results {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  /** Files that failed before any test ran. */
  readonly numRuntimeErrorTestSuites: number;
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export async function runSuite({ name, options, limit }: Suite): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'platform-apiserver-tests-'));
  const file = join(folder, 'results.json');
  const started = performance.now();
  const jest = spawn(
    process.execPath,
    [
      '--experimental-vm-modules',
      '--disable-warning=ExperimentalWarning',
      'node_modules/jest/bin/jest.js',
      '--json',
      `--outputFile=${file}`,
      '--reporters=default',
      `--reporters=${join(import.meta.dirname, 'unfinished.ts')}`,
      ...options,
      `test/${name}/`,
    ],
    { stdio: ['ignore', 'ignore', 'inherit'], detached: true },
  );
  const end = (): void => {
    if (jest.pid !== undefined) process.kill(-jest.pid, 'SIGKILL');
  };
  // Ctrl-C at the terminal does not reach another group.
  const endAll = (signal: NodeJS.Signals): void => {
    end();
    process.kill(process.pid, signal);
  };
  for (const signal of signals) process.once(signal, endAll);
  let isTooLong = false;
  const timer = setTimeout(() => {
    isTooLong = true;
    end();
  }, limit * 1_000);
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      jest.once('error', reject);
      jest.once('exit', resolve);
    });
    const seconds = (performance.now() - started) / 1_000;
    const results = read(file) as Results | undefined;
    if (!isTooLong) return { ...judge(results, code), seconds };
    const unfinished = (read(join(folder, unfinishedFile)) ?? []) as string[];
    const { numPassedTests: passed, numFailedTests: failed } = results ?? { numPassedTests: 0, numFailedTests: 0 };
    return { passed, failed: failed + 1, problem: `ended after ${limit} s; ${leftBy(unfinished, name)}`, seconds };
  } finally {
    clearTimeout(timer);
    for (const signal of signals) process.off(signal, endAll);
    rmSync(folder, { recursive: true });
  }
}

const read = (file: string): unknown => (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined);

const leftBy = (paths: readonly string[], name: string): string =>
  paths.length === 0
    ? 'all files had finished: something was left open'
    : `not finished: ${paths.map((path) => path.slice(path.lastIndexOf(`test/${name}/`))).join(', ')}`;

function judge(results: Results | undefined, code: number | null): Omit<Outcome, 'seconds'> {
  if (results === undefined) return { passed: 0, failed: 1, problem: 'jest gave no results' };
  const { numPassedTests: passed, numPendingTests, numTodoTests, numRuntimeErrorTestSuites: broken } = results;
  const failed = results.numFailedTests + broken;
  const left = numPendingTests + numTodoTests;
  // What was not run has not passed.
  if (left > 0) return { passed, failed: failed + left, problem: `${left} skipped` };
  if (passed + failed === 0) return { passed, failed: 1, problem: 'no test' };
  if (code !== 0 && failed === 0) return { passed, failed: 1, problem: `jest ended with code ${code}` };
  return { passed, failed, problem: broken > 0 ? `${broken} files that could not be run` : '' };
}
