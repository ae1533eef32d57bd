import { build } from '../../../hack/build.ts';

/**
 * Environment variable set when the server is built, since a starting server must not read a file that another run
 * writes.
 */
export const builtVariable = 'INTEGRATION_BUILT';

/** Builds the server unless it is built already. */
export async function buildOnce(): Promise<void> {
  if (process.env[builtVariable] === undefined) await build();
}
