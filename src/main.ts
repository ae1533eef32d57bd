#!/usr/bin/env node
/**
 * `platform-apiserver [flags]` serves; `platform-apiserver hash-password` and `check-config FILE` are tools.
 * Exit codes: 0 ended as asked, 1 could not start or go on, 2 wrong command line.
 *
 * Everything else is imported late: a container's first process gets no signal that it does not handle, and one that comes while
 * the modules are still being read must not be lost.
 */
const ended = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.on(signal, () => {
    // Asked twice, no waiting.
    if (ended.signal.aborted) process.exit(1);
    ended.abort(signal);
  });

async function run([command, ...rest]: readonly string[]): Promise<number> {
  if (command === 'hash-password') return await (await import('./cli/hash-password.ts')).hashPassword();
  if (command === 'check-config') return await (await import('./cli/check-config.ts')).checkConfig(rest[0]);
  const { serve } = await import('./cli/serve.ts');
  return await serve(command === undefined ? [] : [command, ...rest], ended.signal);
}

try {
  process.exitCode = await run(process.argv.slice(2));
  // What still holds the event loop after an orderly end is a keep-alive socket at most.
  process.exit();
} catch (error) {
  const { UsageError } = await import('./config/flags.ts');
  if (error instanceof UsageError) {
    process.stderr.write(`platform-apiserver: ${error.message}\n`);
    process.exit(2);
  }
  const { createLogger } = await import('./logger.ts');
  createLogger().error('the server cannot start', { error });
  process.exit(1);
}
