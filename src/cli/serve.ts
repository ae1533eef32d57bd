import { availableParallelism } from 'node:os';
import { poolSizeFor, lowerWorkers } from '../accounts/passwords/threads.ts';
import { parseFlags } from '../config/flags.ts';
import { createLogger } from '../runtime/logger.ts';
import { startServer, type RunningServer } from '../server.ts';

/** Serves until `ended` is aborted; its reason is the signal that asked for it. Returns the exit code. Throws UsageError. */
export async function serve(argv: readonly string[], ended: AbortSignal): Promise<number> {
  const log = createLogger();
  const flags = parseFlags(argv, process.env);
  // A bug in one request must not end the others.
  process.on('unhandledRejection', (error) => log.error('a rejected promise was not handled', { error }));
  process.on('uncaughtException', (error) => log.error('an error was not caught', { error }));
  // Loading modules does not use the pool; reading the names of its threads does.
  process.env['UV_THREADPOOL_SIZE'] ??= String(poolSizeFor(availableParallelism()));
  await lowerWorkers().catch((error: unknown) =>
    log.warn('could not lower the priority of hashing threads', { error }),
  );
  let server: RunningServer;
  try {
    server = await startServer(flags, log, ended);
  } catch (error) {
    if (ended.aborted) return 0;
    // Behind what it has said before: the last line tells why.
    log.error('the server cannot start', { error });
    return 1;
  }
  if (!ended.aborted) await new Promise((resolve) => ended.addEventListener('abort', resolve));
  log.info('shutting down', { signal: String(ended.reason) });
  // In a cluster, whoever routes to us needs a moment to see that we are not ready; at a terminal, nobody routes.
  await server.stop({ announce: ended.reason === 'SIGTERM' ? 4_000 : 0, grace: 20_000 });
  return 0;
}
