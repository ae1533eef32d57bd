import { expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Runs in a separate process, since the priority of a thread cannot be raised again. */
const script = `
import { readdir, readFile } from 'node:fs/promises';
import { getPriority } from 'node:os';
import { lowerWorkers } from './src/accounts/passwords/threads.ts';
await lowerWorkers();
const threads = await Promise.all((await readdir('/proc/self/task')).map(async (thread) =>
  [(await readFile('/proc/self/task/' + thread + '/comm', 'utf8')).trim(), getPriority(Number(thread))]));
console.log(JSON.stringify({ own: getPriority(), threads }));
`;

test('only the hashing threads have a lower scheduling priority', async () => {
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script]);
  const { own, threads } = JSON.parse(stdout) as { own: number; threads: [string, number][] };
  const workers = threads.filter(([name]) => name === 'libuv-worker');
  expect(workers.length).toBeGreaterThan(0);
  expect(new Set(workers.map(([, priority]) => priority))).toEqual(new Set([10]));
  expect(threads.filter(([name, priority]) => name !== 'libuv-worker' && priority !== own)).toEqual([]);
});
