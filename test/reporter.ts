/**
 * Jest reporter used by test/suite.ts: prints one line per file, and updates a report after each file, so that the
 * report is complete even if jest is killed.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';

export interface Report {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Files that failed before any test ran. */
  readonly broken: number;
  /** Test files that have started but not finished. */
  readonly unfinished: readonly string[];
  /** Failures of each failed file, formatted for people. */
  readonly failures: readonly string[];
  /** Reason in one line why no further test files ran. */
  readonly aborted?: string | undefined;
  /** CPU time of jest and of all its finished child processes; missing until jest ends. */
  readonly cpuSeconds?: number;
}

/** Prefix of an error message that aborts the run, because every further file would fail for the same reason. */
export const abortMark = 'Test run aborted: ';

interface TestFile {
  readonly path: string;
}

interface TestResult {
  readonly status: string;
  readonly title: string;
  readonly ancestorTitles: readonly string[];
}

/** The fields of jest's result for one file that the reporter reads. */
interface FileResult {
  readonly numPassingTests: number;
  readonly numFailingTests: number;
  readonly failureMessage?: string | null;
  readonly testExecError?: { readonly message: string };
  readonly perfStats: { readonly runtime: number };
  readonly testResults: readonly TestResult[];
  readonly console?: readonly { readonly type: string; readonly message: string }[];
}

/** The fields of jest's totals that the reporter reads. */
interface Totals {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly numRuntimeErrorTestSuites: number;
}

export default class Reporter {
  readonly #file: string;
  readonly #unfinished = new Set<string>();
  #report: Report = { passed: 0, failed: 0, skipped: 0, broken: 0, unfinished: [], failures: [] };

  constructor({ outputFile }: { readonly outputFile: string }) {
    this.#file = outputFile;
    this.#write({});
    process.once('exit', () => this.#write({ cpuSeconds: cpuSeconds() }));
  }

  onTestFileStart({ path }: TestFile): void {
    this.#unfinished.add(path);
    this.#write({});
  }

  onTestFileResult({ path }: TestFile, result: FileResult, totals: Totals): void {
    this.#unfinished.delete(path);
    const isFailed = typeof result.failureMessage === 'string' && result.failureMessage !== '';
    print(fileLines(path, result, isFailed));
    this.#write({
      passed: totals.numPassedTests,
      failed: totals.numFailedTests,
      skipped: totals.numPendingTests + totals.numTodoTests,
      broken: totals.numRuntimeErrorTestSuites,
      ...(isFailed ? { failures: [...this.#report.failures, failureOf(path, result)] } : {}),
    });
    const message = result.testExecError?.message ?? '';
    if (!message.startsWith(abortMark)) return;
    const [reason] = message.slice(abortMark.length).split('\n');
    this.#write({ aborted: reason });
    process.exit(1);
  }

  #write(change: Partial<Report>): void {
    this.#report = { ...this.#report, ...change, unfinished: [...this.#unfinished] };
    writeFileSync(this.#file, JSON.stringify(this.#report));
  }
}

const print = (lines: readonly string[]): void => {
  process.stderr.write(`${lines.join('\n')}\n`);
};

/** Returns one line for the file, and one line for each failed test. */
function fileLines(path: string, result: FileResult, isFailed: boolean): string[] {
  const seconds = `${(result.perfStats.runtime / 1_000).toFixed(1)} s`;
  const tests = `${result.numPassingTests + result.numFailingTests} tests`;
  const failed = result.testResults.filter(({ status }) => status === 'failed');
  return [
    `${isFailed ? 'FAIL' : 'pass'}  ${seconds.padStart(7)}  ${tests.padStart(10)}  ${relative('.', path)}`,
    ...failed.map((test) => `      failed: ${nameOf(test)}`),
  ];
}

/**
 * Returns the titles of the groups of a test, followed by the title of the test. Omits a group whose title the test
 * repeats.
 */
const nameOf = ({ title, ancestorTitles }: TestResult): string =>
  [...ancestorTitles.filter((group) => !title.startsWith(group)), title].join(' › ');

/** Returns the failure with the console output of the file's tests. */
const failureOf = (path: string, { failureMessage, console: entries = [] }: FileResult): string =>
  [
    `FAIL  ${relative('.', path)}`,
    ...entries.map(({ type, message }) => `  console.${type}: ${message}`),
    failureMessage ?? '',
  ].join('\n');

const ticksPerSecond = 100;

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + childrenTicks() / ticksPerSecond;
}

/** Returns the CPU time of finished child processes in ticks; 0 on systems without /proc. */
function childrenTicks(): number {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(fields[13]) + Number(fields[14]);
  } catch {
    return 0;
  }
}
