import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, expect, test } from '@jest/globals';
import { abortMark } from '../reporter.ts';
import { runSuite, type Outcome } from '../suite.ts';

const root = mkdtempSync(join(tmpdir(), 'platform-apiserver-suite-'));
afterAll(() => rmSync(root, { recursive: true }));

/** Runs a suite in a separate project with these test files. */
async function outcomeOf(
  name: string,
  files: Readonly<Record<string, string>>,
  limit: number,
  config: object = {},
): Promise<Outcome> {
  const folder = join(root, 'test', name);
  mkdirSync(folder, { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  const options = ['--runInBand', `--config=${JSON.stringify(config)}`, '--rootDir', root];
  return await runSuite({ name, options, limit }, 'ignore');
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie process has ended, even if its parent process has not yet collected its exit status.
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

test('a suite whose tests pass succeeds, and its CPU time includes the processes that its tests start', async () => {
  const burn = 'while (process.cpuUsage().user < 3e5);';
  const text = `test('good', () => {
    require('node:child_process').execFileSync(process.execPath, ['-e', ${JSON.stringify(burn)}]);
  });`;
  const outcome = await outcomeOf('passes', { 'good.test.js': text }, 1_000);
  expect(outcome).toMatchObject({ passed: 1, failed: 0, problem: '', failures: [] });
  expect(outcome.cpuSeconds).toBeGreaterThan(0.3);
});

test('a suite with a failed test reports the failure with the console lines of the test file', async () => {
  const text = "test('bad', () => { console.warn('a hint'); throw new Error('the reason'); });";
  const good = "test('good', () => undefined);";
  const outcome = await outcomeOf('fails', { 'bad.test.js': text, 'good.test.js': good }, 1_000);
  expect(outcome).toMatchObject({ passed: 1, failed: 1, problem: '' });
  expect(outcome.failures).toEqual([expect.stringMatching(/bad\.test\.js\n {2}console\.warn: a hint\n[^]*the reason/)]);
});

test('a suite whose setup aborts the run starts no further file and reports the reason once', async () => {
  const setup = join(root, 'abort.cjs');
  writeFileSync(setup, `throw new Error(${JSON.stringify(`${abortMark}etcd has ended\nits log`)});`);
  const files = { 'a.test.js': "test('a', () => undefined);", 'b.test.js': "test('b', () => undefined);" };
  const outcome = await outcomeOf('aborts', files, 1_000, { setupFilesAfterEnv: [setup] });
  expect(outcome).toMatchObject({ passed: 0, failed: 1, problem: 'aborted: etcd has ended' });
  expect(outcome.failures).toHaveLength(1);
});

/** Runs a suite that never ends, with an increasing time limit until `isEnough` accepts its outcome. */
async function ended(
  name: string,
  files: Readonly<Record<string, string>>,
  isEnough: (outcome: Outcome) => boolean,
): Promise<Outcome> {
  for (let limit = 3; ; limit *= 2) {
    const outcome = await outcomeOf(name, files, limit);
    if (isEnough(outcome)) return { ...outcome, problem: outcome.problem.replace(`${limit} s`, 'the limit') };
  }
}

test('a suite that hangs is terminated with all processes that it has started, and the hanging file is named', async () => {
  const pid = join(root, 'test/hangs/pid');
  const hangs = `test('hangs', async () => {
    const { pid } = require('node:child_process').spawn('sleep', ['100000']);
    require('node:fs').writeFileSync(${JSON.stringify(pid)}, String(pid));
    await new Promise(() => undefined);
  }, 1e9);`;
  const files = { 'good.test.js': "test('good', () => undefined);", 'bad.test.js': hangs };
  const outcome = await ended('hangs', files, () => existsSync(pid));
  expect(outcome).toMatchObject({ failed: 1, problem: 'killed after the limit; not finished: test/hangs/bad.test.js' });
  while (isAlive(Number(readFileSync(pid, 'utf8')))) await setTimeout(50);
});

test('a suite that leaves a resource open fails, even if its tests pass', async () => {
  const open = "test('opens', () => { require('node:net').createServer().listen(0, '127.0.0.1'); });";
  const outcome = await ended('open', { 'open.test.js': open }, ({ passed }) => passed === 1);
  expect(outcome).toMatchObject({
    failed: 1,
    problem: 'killed after the limit; all files had finished, but a handle is still open',
  });
});
