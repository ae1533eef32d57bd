/**
 * `node test/suites.ts [unit] [conformance] [conformance/log-store] [integration]` runs the suites, all unless some are named, and prints the time of each
 * against its budget; one that hangs is ended. The last line counts the tests of them all. Exit codes: 0 all passed, 1 not so, 2 wrong
 * command line.
 */
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { runSuite, type Suite } from './suite.ts';

interface Budgeted extends Omit<Suite, 'limit'> {
  /** Seconds, on a machine where everything that is downloaded or built once is there already. */
  readonly budget: number;
}

/** Ends a test that hangs, on however busy a machine; jest's own 5 s end others too. */
const patience = '--testTimeout=120000';

/**
 * Ends a worker whose heap has grown. Jest keeps the modules of all files that one process ran, and each garbage collection scans them:
 * tests that collect garbage took 12 to 25 times their CPU time in the unit suite.
 */
const idleMemory = '--workerIdleMemoryLimit=256MB';

const cores = availableParallelism();

const suites: readonly Budgeted[] = [
  // All cores: jest leaves one out by itself, and on two cores runs one file after the other.
  { name: 'unit', budget: 120, options: [`--maxWorkers=${cores}`, idleMemory, patience] },
  {
    name: 'conformance',
    budget: 210,
    // More than the cores: many of these files wait for timers of the server.
    options: [
      `--maxWorkers=${cores + 1}`,
      idleMemory,
      '--testPathIgnorePatterns=test/conformance/log-store/',
      patience,
    ],
  },
  // One real server after the other: each takes memory of its own.
  { name: 'conformance/log-store', budget: 360, options: ['--runInBand', patience] },
  // One control plane, one test file after the other.
  { name: 'integration', budget: 900, options: ['--runInBand', patience] },
];
/** So many times its budget a suite may take before it is ended: then it hangs, on however busy a machine. */
const mercy = 10;
/** Seconds for all suites together. */
const wholeBudget = 30 * 60;

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
  const outcome = await runSuite({ ...suite, limit: mercy * suite.budget });
  passed += outcome.passed;
  failed += outcome.failed;
  seconds += outcome.seconds;
  lines.push(
    [
      suite.name.padEnd(22),
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
