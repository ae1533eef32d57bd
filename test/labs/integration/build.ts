import { join } from 'node:path';
import { output } from '../../../hack/cluster/exec.ts';

const root = join(import.meta.dirname, '../../..');

/** Set where the server is built already: a server that starts must not read a file that another run writes. */
export const builtVariable = 'INTEGRATION_BUILT';

/** Compiles the server; its types are checked elsewhere. */
export async function build(): Promise<void> {
  if (process.env[builtVariable] === undefined)
    await output(process.execPath, ['node_modules/.bin/tsc', '-p', 'tsconfig.build.json'], { cwd: root });
}
