import { join } from 'node:path';
import { output } from '../../../hack/cluster/exec.ts';

const root = join(import.meta.dirname, '../../..');

/**
 * Environment variable set when the server is built, since a starting server must not read a file that another run
 * writes.
 */
export const builtVariable = 'INTEGRATION_BUILT';

/** Compiles the server without type checks. */
export async function build(): Promise<void> {
  if (process.env[builtVariable] === undefined)
    await output(process.execPath, ['node_modules/.bin/tsc', '-p', 'tsconfig.build.json'], { cwd: root });
}
