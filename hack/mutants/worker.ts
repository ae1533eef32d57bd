/**
 * Tries mutants with the tests of one file, in a separate process that loads the file once. The mutated sources contain
 * every mutant; a variable selects the active one.
 */
import { jestExpect } from '@jest/expect';
import type { Circus } from '@jest/types';
import { addEventHandler, getState, run } from 'jest-circus';
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import { jest } from './globals.ts';
import type { Baseline, Job, Message } from './messages.ts';

/** Variables that the mutated sources use to read the active mutant, and to count how often each mutant is reached. */
interface Switch {
  activeMutant: string | undefined;
  currentTestId: string | undefined;
  mutantCoverage: { static: Record<string, number>; perTest: Record<string, Record<string, number>> };
  hitCount?: number | undefined;
  hitLimit?: number | undefined;
}

const switches: Switch = {
  activeMutant: undefined,
  currentTestId: undefined,
  mutantCoverage: { static: {}, perTest: {} },
};
Object.assign(globalThis, { __stryker__: switches });

/** Coverage key of hooks that run once for several tests. */
const shared = 'hooks';
const hookTimeout = 15_000;
/** A mutant counts as an endless loop after 1,000 hits plus this multiple of its hits in the baseline. */
const loopFactor = 200;

const send = (message: Message): void => void process.send?.(message);

function testsOf(block: Circus.DescribeBlock): Circus.TestEntry[] {
  return block.children.flatMap((child) => (child.type === 'test' ? [child] : testsOf(child)));
}

const titleOf = (test: Circus.TestEntry): string => {
  const titles = [test.name];
  for (let block = test.parent; block.parent !== undefined; block = block.parent) titles.unshift(block.name);
  return titles.join(' › ');
};

let tests: Circus.TestEntry[] = [];
let started = 0;
const times: number[] = [];
let firstFailed: Circus.TestEntry | undefined;
let endsAtFailure = false;
/** Unregisters the metrics of servers that earlier runs started: each name can be registered once. */
let forgetMetrics = (): void => undefined;

addEventHandler((event: Circus.Event) => {
  if (event.name === 'hook_start' && event.hook.type.endsWith('All')) switches.currentTestId = shared;
  if (event.name === 'test_started') {
    switches.currentTestId = String(tests.indexOf(event.test));
    started = performance.now();
  }
  if (event.name !== 'test_done') return;
  const { test } = event;
  for (const { error } of jestExpect.extractExpectedAssertionsErrors()) test.errors.push(error);
  times[tests.indexOf(test)] = performance.now() - started;
  switches.currentTestId = undefined;
  if (test.errors.length === 0) return;
  firstFailed ??= test;
  if (endsAtFailure) for (const other of tests) other.mode = 'skip';
});

/** Runs the chosen tests until one fails, or all of them with `all`. Returns the test that failed first. */
async function runTests(chosen: ReadonlySet<number>, all = false): Promise<Circus.TestEntry | undefined> {
  jest.useRealTimers();
  jest.restoreAllMocks();
  forgetMetrics();
  const state = getState();
  state.unhandledErrors = [];
  for (const [index, test] of tests.entries()) {
    test.mode = chosen.has(index) ? undefined : 'skip';
    test.errors = [];
    test.seenDone = false;
    test.status = null;
  }
  firstFailed = undefined;
  endsAtFailure = !all;
  await run();
  return firstFailed ?? (state.unhandledErrors.length === 0 ? undefined : tests[[...chosen][0] ?? 0]);
}

async function measure(): Promise<Baseline> {
  await runTests(new Set(tests.keys()), true);
  const failed = tests.filter(({ errors }) => errors.length > 0);
  const reached: Record<string, [number, number][]> = {};
  const { perTest } = switches.mutantCoverage;
  for (const index of tests.keys()) {
    const own = Object.entries(perTest[index] ?? {});
    const hooks = Object.entries(perTest[shared] ?? {}).filter(([id]) => perTest[index]?.[id] === undefined);
    for (const [id, hits] of [...own, ...hooks]) (reached[id] ??= []).push([index, hits]);
  }
  const baseline = {
    times: tests.map((test, index) => (failed.includes(test) ? undefined : (times[index] ?? 0))),
    reached,
    loaded: Object.keys(switches.mutantCoverage.static),
  };
  send({ type: 'baseline', baseline, failed: failed.map(titleOf) });
  return baseline;
}

/** Returns the tests that reach the mutant, the quickest first, as many as fit into its budget. */
function choose({ times: known, reached }: Baseline, id: string, budget: number): { chosen: number[]; hits: number } {
  const usable = (reached[id] ?? []).filter(([test]) => known[test] !== undefined);
  const sorted = usable.toSorted(([one], [other]) => (known[one] ?? 0) - (known[other] ?? 0));
  const chosen: number[] = [];
  let milliseconds = 0;
  for (const [test] of sorted) {
    if (chosen.length > 0 && milliseconds > budget) break;
    milliseconds += known[test] ?? 0;
    chosen.push(test);
  }
  return { chosen, hits: Math.max(1, ...usable.map(([, count]) => count)) };
}

async function attempt(baseline: Baseline, id: string, budget: number): Promise<boolean> {
  const { chosen, hits } = choose(baseline, id, budget);
  if (chosen.length === 0) return true;
  const expected = chosen.reduce((sum, test) => sum + (baseline.times[test] ?? 0), 0);
  send({ type: 'start', id, expected });
  const startedAt = performance.now();
  for (const test of chosen) {
    const entry = tests[test] as Circus.TestEntry;
    entry.timeout = 1_500 + 10 * (baseline.times[test] ?? 0);
  }
  Object.assign(switches, { activeMutant: id, hitCount: 0, hitLimit: 1_000 + loopFactor * hits });
  const failed = await runTests(new Set(chosen));
  Object.assign(switches, { activeMutant: undefined, hitCount: undefined, hitLimit: undefined });
  if (failed !== undefined && (await runTests(new Set([tests.indexOf(failed)]))) !== undefined) {
    send({ type: 'unclean', id });
    return false;
  }
  const by = failed === undefined ? {} : { by: titleOf(failed) };
  send({ type: 'tried', id, ...by, milliseconds: performance.now() - startedAt });
  return true;
}

async function work({ file, sources, mutants, baseline: known }: Job): Promise<void> {
  const changed = new Map(Object.entries(JSON.parse(readFileSync(sources, 'utf8')) as Record<string, string>));
  registerHooks({
    resolve: (specifier, context, next) =>
      next(specifier === '@jest/globals' ? new URL('globals.ts', import.meta.url).href : specifier, context),
    load: (url, context, next) => {
      const source = changed.get(url);
      return source === undefined ? next(url, context) : { format: 'module-typescript', source, shortCircuit: true };
    },
  });
  getState().testTimeout = hookTimeout;
  await import(new URL('../../test/assertions.ts', import.meta.url).href);
  await import(pathToFileURL(file).href);
  tests = testsOf(getState().rootDescribeBlock);
  const { registry } = await import('../../src/runtime/metrics/registry.ts');
  const lasting = new Set(registry.getMetricsAsArray().map(({ name }) => name));
  forgetMetrics = () => {
    for (const { name } of registry.getMetricsAsArray()) if (!lasting.has(name)) registry.removeSingleMetric(name);
  };
  const baseline = known ?? (await measure());
  for (const [id, budget] of mutants) if (!(await attempt(baseline, id, budget))) return;
  send({ type: 'done' });
}

process.once('message', (job: Job) => {
  void work(job).finally(() => process.exit());
});
