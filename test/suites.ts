/**
 * `node test/suites.ts [unit] [conformance] [integration]` runs the suites, all unless some are named, and prints the time of each
 * against its budget. The last line counts the tests of them all. Exit codes: 0 all passed, 1 not so, 2 wrong command line.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface Suite {
  readonly name: string;
  /** Seconds, on a machine where everything that is downloaded or built once is there already. */
  readonly budget: number;
  readonly options: readonly string[];
}

/** Ends a test that hangs, on however busy a machine; jest's own 5 s end others too. */
const patience = '--testTimeout=120000';

const suites: readonly Suite[] = [
  { name: 'unit', budget: 120, options: [patience] },
  { name: 'conformance', budget: 180, options: [patience] },
  // One control plane, one test file after the other.
  { name: 'integration', budget: 900, options: ['--runInBand', patience] },
];
/** Seconds for all suites together. */
const wholeBudget = 25 * 60;

/** What is read of jest's --json. */
interface Results {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  /** Files that failed before any test ran. */
  readonly numRuntimeErrorTestSuites: number;
}

interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly seconds: number;
  /** Why the suite fails, apart from failed tests; '' if it does not. */
  readonly problem: string;
}

function run({ name, options }: Suite): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'platform-apiserver-tests-'));
  const file = join(folder, 'results.json');
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const jest = spawn(
      process.execPath,
      [
        '--experimental-vm-modules',
        '--disable-warning=ExperimentalWarning',
        'node_modules/jest/bin/jest.js',
        '--json',
        `--outputFile=${file}`,
        ...options,
        `test/${name}/`,
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    jest.once('error', reject);
    jest.once('exit', (code) => {
      const seconds = (performance.now() - started) / 1_000;
      const results = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Results) : undefined;
      rmSync(folder, { recursive: true });
      resolve({ ...judge(results, code), seconds });
    });
  });
}

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

const named = process.argv.slice(2);
const unknown = named.filter((name) => !suites.some((suite) => suite.name === name));
if (unknown.length > 0) {
  console.error(
    `suites: there is no suite ${unknown.join(', ')}; there are ${suites.map(({ name }) => name).join(', ')}`,
  );
  process.exit(2);
}

let passed = 0;
let failed = 0;
let seconds = 0;
const lines: string[] = [];
const chosen = suites.filter(({ name }) => (named.length === 0 ? existsSync(`test/${name}`) : named.includes(name)));
for (const suite of chosen) {
  const outcome = await run(suite);
  passed += outcome.passed;
  failed += outcome.failed;
  seconds += outcome.seconds;
  lines.push(
    [
      suite.name.padEnd(12),
      `${outcome.seconds.toFixed(1)} s of ${suite.budget} s`.padStart(18),
      `${outcome.passed} passed, ${outcome.failed} failed`,
      ...(outcome.problem === '' ? [] : [`(${outcome.problem})`]),
      ...(outcome.seconds > suite.budget ? ['WARNING: over budget'] : []),
    ].join('  '),
  );
}
if (seconds > wholeBudget) lines.push(`WARNING: ${Math.round(seconds)} s are more than ${wholeBudget} s`);
console.log(`\n${lines.join('\n')}`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
