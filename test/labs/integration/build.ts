import { build } from '../../../hack/build.ts';

/**
 * Environment variable that is set once the server is built. No other process then builds the server again, because a
 * starting server must not read a file that is being written.
 */
export const builtVariable = 'INTEGRATION_BUILT';

/** Builds the server unless it is built already. */
export async function buildOnce(): Promise<void> {
  if (process.env[builtVariable] === undefined) await build();
}
