import { availableParallelism } from 'node:os';
import { poolSizeFor, lowerWorkers } from '../accounts/passwords/threads.ts';
import { parseFlags } from '../config/flags.ts';
import { createLogger } from '../runtime/logger.ts';
import { startServer, type RunningServer } from '../server.ts';

/**
 * Runs the server until `ended` is aborted with the name of a signal as the reason. Returns the exit code. Throws
 * UsageError.
 */
export async function serve(argv: readonly string[], ended: AbortSignal): Promise<number> {
  const log = createLogger();
  const flags = parseFlags(argv, process.env);
  // A bug in one request must not affect other requests.
  process.on('unhandledRejection', (error) => log.error('unhandled promise rejection', { error }));
  process.on('uncaughtException', (error) => log.error('uncaught exception', { error }));
  // The variable must be set before `lowerWorkers`, which is the first to use the pool. The import of modules does not
  // use the pool.
  process.env['UV_THREADPOOL_SIZE'] ??= String(poolSizeFor(availableParallelism()));
  await lowerWorkers().catch((error: unknown) =>
    log.warn('failed to lower the priority of hashing threads', { error }),
  );
  let server: RunningServer;
  try {
    server = await startServer(flags, log, ended);
  } catch (error) {
    if (ended.aborted) return 0;
    // The error is logged last, so that the last line contains the reason.
    log.error('startup failed', { error });
    return 1;
  }
  if (!ended.aborted) await new Promise((resolve) => ended.addEventListener('abort', resolve));
  log.info('shutting down', { signal: String(ended.reason) });
  // In a cluster, load balancers need a few seconds to detect that the server is not ready. A server at a terminal has
  // no load balancer.
  await server.stop({ announce: ended.reason === 'SIGTERM' ? 4_000 : 0, grace: 20_000 });
  return 0;
}
