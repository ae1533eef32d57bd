import { execute, type Executed } from '../../../hack/cluster/exec.ts';
import { join } from 'node:path';

const main = join(import.meta.dirname, '../../../dist/main.js');

/** Runs one of the server's commands. */
export const platformApiserver = (args: readonly string[], input = ''): Promise<Executed> =>
  execute(process.execPath, [main, ...args], { input, timeout: 60_000 });
