#!/usr/bin/env node
/**
 * `platform-apiserver [flags]` serves; `platform-apiserver hash-password`, `check-config FILE` and
 * `credential` are tools; `--help` says more.
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

async function run(argv: readonly string[]): Promise<number> {
  const information = (await import('./cli/help.ts')).informationFor(argv);
  if (information !== undefined) {
    process.stdout.write(`${information}\n`);
    return 0;
  }
  const [command, ...rest] = argv;
  const tool = tools.get(command ?? '');
  if (tool === undefined) return await (await import('./cli/serve.ts')).serve(argv, ended.signal);
  // A tool has nothing to stop in order: the first signal ends it while it waits for its input, or while its modules were imported.
  if (ended.signal.aborted) process.exit(1);
  ended.signal.addEventListener('abort', () => process.exit(1));
  return await tool(rest);
}

const tools: ReadonlyMap<string, (argv: readonly string[]) => Promise<number>> = new Map([
  ['hash-password', async (argv) => await (await import('./cli/hash-password.ts')).hashPassword(argv)],
  ['credential', async (argv) => await (await import('./cli/credential/index.ts')).credential(argv, process.env)],
  ['check-config', async (argv) => await (await import('./cli/check-config.ts')).checkConfig(argv)],
]);

try {
  process.exitCode = await run(process.argv.slice(2));
  // What still holds the event loop after an orderly end is a keep-alive socket at most.
  process.exit();
} catch (error) {
  const { UsageError } = await import('./config/flags.ts');
  if (error instanceof UsageError) {
    process.stderr.write(`platform-apiserver: ${error.message}\nsee platform-apiserver --help\n`);
    process.exit(2);
  }
  const { createLogger } = await import('./runtime/logger.ts');
  createLogger().error('the server cannot start', { error });
  process.exit(1);
}
