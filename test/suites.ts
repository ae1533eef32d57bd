/**
 * `node test/suites.ts [unit] [conformance] [conformance/log-store] [integration]` runs the named suites. Default: all
 * suites. The two halves of the integration suite and the other suites run in parallel, because none of them keeps two
 * cores busy. The script prints the failures, then the duration, budget and CPU time of each suite, then the number of
 * tests. A suite that exceeds its budget causes only a warning, because the duration depends on the machine. A hanging
 * suite is killed. Exit codes: 0 if all tests passed, 1 after a failure, 2 for a wrong command line.
 */
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { buildOnce, builtVariable } from './labs/integration/build.ts';
import { runSuite, type Outcome, type Suite } from './suite.ts';

interface Budgeted extends Omit<Suite, 'limit'> {
  /**
   * Expected duration in seconds on two cores, with the other lanes in parallel and with warm caches of downloads and
   * builds. The halves of the integration suite took 422 s and 517 s on an idle machine on 2026-11-23, log-store took
   * 676 s, unit 143 s and conformance 165 s. On a busy machine, the suites take up to 1.5 times as long.
   */
  readonly budget: number;
  /** The suites of a lane run sequentially. The lanes run in parallel. */
  readonly lane: 'first' | 'second' | 'third';
}

/**
 * Timeout of a test, which ends only hanging tests, even on a busy machine. jest's default of 5 s would also end tests
 * that are only slow.
 */
const testTimeout = '--testTimeout=120000';

/**
 * Restarts a worker whose heap has grown. Jest keeps the modules of all files that a process has run, and each garbage
 * collection scans them. Tests that collect garbage took 12 to 25 times their CPU time in the unit suite.
 */
const idleMemory = (megabytes: number): string => `--workerIdleMemoryLimit=${megabytes}MB`;

/**
 * Makes garbage collections rarer. Jest reloads every module for each file, and modules survive each collection of the
 * young generation: with Node's default sizes, collections took twice as long.
 */
const largeHeap = ['--min-semi-space-size=32', '--max-semi-space-size=64', '--initial-heap-size=512'];

const cores = availableParallelism();

const suites: readonly Budgeted[] = [
  // Each part has its own control plane and runs its test files sequentially.
  ...(['first', 'second'] as const).map((which, index) => ({
    name: 'integration',
    part: `${index + 1}/2`,
    lane: which,
    budget: 900,
    options: ['--runInBand', testTimeout],
  })),
  // The test files run sequentially, because each real server needs much memory.
  { name: 'conformance/log-store', lane: 'third', budget: 1_000, options: ['--runInBand', testTimeout] },
  // The suite uses all cores. By default, jest leaves one core unused, and would run the files sequentially on two
  // cores.
  {
    name: 'unit',
    lane: 'first',
    budget: 160,
    options: [`--maxWorkers=${cores}`, idleMemory(384), testTimeout],
    nodeOptions: largeHeap,
  },
  {
    name: 'conformance',
    lane: 'second',
    budget: 240,
    // The suite has more workers than cores, because many of its files wait for timers of the server.
    options: [
      `--maxWorkers=${cores + 1}`,
      idleMemory(256),
      '--testPathIgnorePatterns=test/conformance/log-store/',
      testTimeout,
    ],
  },
];
/** A suite that takes longer than this multiple of its budget hangs, even on a busy machine, and is killed. */
const limitFactor = 10;

const named = process.argv.slice(2);
const unknown = named.filter((name) => !suites.some((suite) => suite.name === name));
if (unknown.length > 0) {
  console.error(
    `suites: unknown suite ${unknown.join(', ')}; available suites: ${[...new Set(suites.map(({ name }) => name))].join(', ')}`,
  );
  process.exit(2);
}

const chosen = suites.filter(({ name }) => (named.length === 0 ? existsSync(`test/${name}`) : named.includes(name)));
interface Finished {
  readonly suite: Budgeted;
  readonly outcome: Outcome;
}

async function runLane(lane: readonly Budgeted[]): Promise<Finished[]> {
  const done: Finished[] = [];
  for (const suite of lane)
    done.push({ suite, outcome: await runSuite({ ...suite, limit: limitFactor * suite.budget }) });
  return done;
}

const started = performance.now();
// The server is built once for both parts.
if (chosen.some(({ name }) => name === 'integration')) {
  await buildOnce();
  process.env[builtVariable] = 'true';
}
const lanes = [...Map.groupBy(chosen, ({ lane }) => lane).values()];
const finished = (await Promise.all(lanes.map(runLane))).flat();
const seconds = (performance.now() - started) / 1_000;

const sum = (of: (outcome: Outcome) => number): number =>
  finished.reduce((total, { outcome }) => total + of(outcome), 0);

function lineOf({ suite, outcome }: Finished): string {
  return [
    `${suite.name}${suite.part === undefined ? '' : ` ${suite.part}`}`.padEnd(22),
    `${outcome.seconds.toFixed(1)} s of ${suite.budget} s`.padStart(18),
    `${outcome.cpuSeconds?.toFixed(1) ?? '?'} s of CPU`.padStart(15),
    `${outcome.passed} passed, ${outcome.failed} failed`,
    ...(outcome.problem === '' ? [] : [`(${outcome.problem})`]),
    ...(outcome.seconds > suite.budget ? ['WARNING: over budget'] : []),
  ].join('  ');
}

const cpuSeconds = sum((outcome) => outcome.cpuSeconds ?? 0);
const failures = finished.flatMap(({ outcome }) => outcome.failures);
if (failures.length > 0) console.log(`\n${failures.join('\n\n')}`);
console.log(`\n${finished.map(lineOf).join('\n')}`);
console.log(
  `${cpuSeconds.toFixed(0)} s of CPU, at least ${(cpuSeconds / cores).toFixed(0)} s on ${cores} cores; it took ${seconds.toFixed(0)} s`,
);
console.log(`${sum(({ passed }) => passed)} passed, ${sum(({ failed }) => failed)} failed`);
process.exitCode = sum(({ failed }) => failed) === 0 ? 0 : 1;
