import { expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { execute } from '../../hack/cluster/exec.ts';

/** Emits SIGTERM after main.ts has installed its signal handlers, and before main.ts imports other modules. */
const early = `process.on('newListener', (name) => {
  if (name === 'SIGINT') process.emit('SIGTERM');
});`;

test.each([['credential'], ['--namespace=ns']])(
  'the command "%s" with an older Node.js prints one line with the required version',
  async (argument) => {
    const older = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } });`;
    const main = join(import.meta.dirname, '../../src/main.ts');
    const { code, stdout, stderr } = await execute(process.execPath, [
      '--import',
      `data:text/javascript,${older}`,
      main,
      argument,
    ]);
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: '',
      stderr: 'platform-apiserver requires Node.js 24 or later, got 20.20.2\n',
    });
  },
);

test('a command exits when it receives a signal while its modules are imported', async () => {
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
