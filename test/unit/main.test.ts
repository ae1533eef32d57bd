import { expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** Emits SIGTERM once main.ts handles it, before it imports anything. */
const early = `process.on('newListener', (name) => {
  if (name === 'SIGINT') process.emit('SIGTERM');
});`;

test('a command that receives a signal while its modules are imported exits', async () => {
  const main = join(import.meta.dirname, '../../src/main.ts');
  const tool = spawn(process.execPath, ['--import', `data:text/javascript,${early}`, main, 'hash-password'], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  try {
    expect(await once(tool, 'exit')).toEqual([1, null]);
  } finally {
    tool.kill('SIGKILL');
  }
});
