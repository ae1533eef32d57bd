/**
 * Runs one suite with jest in its own process group. A group that takes too long is killed, so that a hanging test
 * cannot hang the run.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Report } from './reporter.ts';

export interface Suite {
  /** Folder of the suite. */
  readonly name: string;
  /** Part of the suite to run, such as `2/3`. */
  readonly part?: string;
  /** Options of jest. */
  readonly options: readonly string[];
  /** Options of Node for jest and its workers. */
  readonly nodeOptions?: readonly string[];
  /** Seconds after which the suite is killed. */
  readonly limit: number;
}

export interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly seconds: number;
  /** CPU time of the suite; undefined if the suite was killed. */
  readonly cpuSeconds: number | undefined;
  /** Reason other than failed tests why the suite failed; '' if there is none. */
  readonly problem: string;
  /** Failures of each failed file, formatted for people. */
  readonly failures: readonly string[];
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Runs a suite. `progress` is the destination of jest's output. */
export async function runSuite(
  { name, part, options, nodeOptions = [], limit }: Suite,
  progress: 'inherit' | 'ignore' = 'inherit',
): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'platform-apiserver-tests-'));
  const file = join(folder, 'report.json');
  const started = performance.now();
  const jest = spawn(
    process.execPath,
    [
      '--experimental-vm-modules',
      '--disable-warning=ExperimentalWarning',
      ...nodeOptions,
      'node_modules/jest/bin/jest.js',
      // The reporter writes this file. jest itself would write it only with --json.
      `--outputFile=${file}`,
      `--reporters=${join(import.meta.dirname, 'reporter.ts')}`,
      ...options,
      ...(part === undefined ? [] : [`--shard=${part}`]),
      `test/${name}/`,
    ],
    { stdio: ['ignore', 'ignore', progress], detached: true },
  );
  try {
    const { code, isTooLong } = await ended(jest, limit);
    const seconds = (performance.now() - started) / 1_000;
    const report = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Report) : undefined;
    const { cpuSeconds, failures = [] } = report ?? {};
    const verdict = isTooLong ? verdictOfHanging(report, name, limit) : verdictOf(report, code);
    return { ...verdict, seconds, cpuSeconds, failures };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Waits until jest ends. Kills jest after `limit` seconds, or when this process ends. */
async function ended(jest: ChildProcess, limit: number): Promise<{ code: number | null; isTooLong: boolean }> {
  const end = (): void => {
    if (jest.pid !== undefined) process.kill(-jest.pid, 'SIGKILL');
  };
  // Signals are forwarded, because Ctrl-C at the terminal does not reach another process group.
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
    return { code, isTooLong };
  } finally {
    clearTimeout(timer);
    for (const signal of signals) process.off(signal, endAll);
  }
}

type Verdict = Pick<Outcome, 'passed' | 'failed' | 'problem'>;

function verdictOfHanging(report: Report | undefined, name: string, limit: number): Verdict {
  const { passed = 0, failed = 0, unfinished = [] } = report ?? {};
  const left =
    unfinished.length === 0
      ? 'all files had finished, but a handle is still open'
      : `not finished: ${unfinished.map((path) => path.slice(path.lastIndexOf(`test/${name}/`))).join(', ')}`;
  return { passed, failed: failed + 1, problem: `killed after ${limit} s; ${left}` };
}

function verdictOf(report: Report | undefined, code: number | null): Verdict {
  if (report === undefined) return { passed: 0, failed: 1, problem: 'jest wrote no report' };
  const { passed, skipped, broken, aborted } = report;
  const failed = report.failed + broken;
  if (aborted !== undefined) return { passed, failed: Math.max(failed, 1), problem: `aborted: ${aborted}` };
  // Skipped tests count as failed.
  if (skipped > 0) return { passed, failed: failed + skipped, problem: `${skipped} skipped` };
  if (passed + failed === 0) return { passed, failed: 1, problem: 'no tests' };
  if (code !== 0 && failed === 0) return { passed, failed: 1, problem: `jest exited with code ${code}` };
  return { passed, failed, problem: broken > 0 ? `${broken} files could not be run` : '' };
}
