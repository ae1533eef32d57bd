import { expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { maxConcurrentHashes, poolSizeFor } from '../../../../src/accounts/passwords/threads.ts';

const run = promisify(execFile);

/**
 * The script runs in a separate process whose machine seems to have 16 cores. Each hash blocks a thread of the pool, in open(2) of a
 * named pipe, until the pipe has a writer. The addresses differ, so that only the queue of the pool limits the hashes.
 */
const script = `
import { lookup } from 'node:dns/promises';
import { open, readFile } from 'node:fs/promises';
import os from 'node:os';
import { constants, closeSync, openSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
os.availableParallelism = () => 16;
syncBuiltinESMExports();
const { Passwords } = await import('./src/accounts/passwords/passwords.ts');
const pipe = process.env.PIPE;
let hashing = 0;
let max = 0;
const block = async () => {
  max = Math.max(max, (hashing += 1));
  await (await open(pipe, 'r')).close();
  hashing -= 1;
  return '';
};
const passwords = new Passwords({ hash: block, verify: block });
const logins = Array.from({ length: 32 }, (_, index) => passwords.hash('secret', '10.0.0.' + index));
await lookup('localhost');
await readFile('package.json');
await promisify(gzip)('text');
const writer = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
await Promise.all(logins);
closeSync(writer);
console.log(max);
`;

test('DNS, files and compression have free threads while logins fill the hash queue', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hash-threads-'));
  try {
    const pipe = join(folder, 'pipe');
    await run('mkfifo', [pipe]);
    const { UV_THREADPOOL_SIZE: _, ...env } = process.env;
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script], {
      env: { ...env, PIPE: pipe },
      timeout: 30_000,
      killSignal: 'SIGKILL',
    });
    expect(stdout.trim()).toBe('2');
  } finally {
    await rm(folder, { recursive: true });
  }
});

test.each([
  [1, '', 1],
  [2, '', 1],
  [5, '', 2],
  [5, '6', 4],
  [64, '128', 8],
  [64, '1', 1],
])('concurrent hashes with cores=%i and UV_THREADPOOL_SIZE="%s" are limited to %i', (cores, size, expected) => {
  expect(maxConcurrentHashes(cores, { UV_THREADPOOL_SIZE: size })).toBe(expected);
});

test.each([
  [1, 4],
  [2, 4],
  [5, 6],
  [64, 10],
])('the number of CPU cores (%i) determines the size of the thread pool: %i', (cores, expected) => {
  expect(poolSizeFor(cores)).toBe(expected);
});
