#!/usr/bin/env node
/**
 * `platform-apiserver [flags]` serves; `platform-apiserver hash-password` and `check-config FILE` are tools.
 * Exit codes: 0 ended as asked, 1 could not start or go on, 2 wrong command line.
 */
import { checkConfig } from './cli/check-config.ts';
import { hashPassword } from './cli/hash-password.ts';
import { parseFlags, UsageError } from './config/flags.ts';
import { createLogger } from './logger.ts';
import { startServer } from './server.ts';

async function serve(argv: readonly string[]): Promise<number> {
  const log = createLogger();
  const flags = parseFlags(argv, process.env);
  const starting = new AbortController();
  const asked = new Promise<NodeJS.Signals>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const)
      process.once(signal, () => {
        resolve(signal);
        starting.abort();
        // Asked twice, no waiting.
        process.once(signal, () => process.exit(1));
      });
  });
  let server: Awaited<ReturnType<typeof startServer>>;
  try {
    server = await startServer(flags, log, starting.signal);
  } catch (error) {
    if (starting.signal.aborted) return 0;
    throw error;
  }
  const signal = await asked;
  log.info('shutting down', { signal });
  // In a cluster, whoever routes to us needs a moment to see that we are not ready; at a terminal, nobody routes.
  await server.stop({ announce: signal === 'SIGTERM' ? 4_000 : 0, grace: 20_000 });
  return 0;
}

// A bug in one request must not end the others; one outside of any promise leaves nobody knows what state.
process.on('unhandledRejection', (error) => createLogger().error('a rejected promise was not handled', { error }));

async function run([command, ...rest]: readonly string[]): Promise<number> {
  if (command === 'hash-password') return await hashPassword();
  if (command === 'check-config') return await checkConfig(rest[0]);
  return await serve(command === undefined ? [] : [command, ...rest]);
}

try {
  process.exitCode = await run(process.argv.slice(2));
  // What still holds the event loop after an orderly end is a keep-alive socket at most.
  process.exit();
} catch (error) {
  if (error instanceof UsageError) {
    process.stderr.write(`platform-apiserver: ${error.message}\n`);
    process.exit(2);
  }
  createLogger().error('the server cannot start', { error });
  process.exit(1);
}
