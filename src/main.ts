#!/usr/bin/env node
/**
 * Runs the server, or the command named by the first argument (cli/help.ts). Exit codes: 0 success, 1 failure, 2 wrong
 * command line.
 *
 * Other modules are imported after the signal handlers are set, so that no signal is lost during the import. The first
 * process of a container receives only signals that it handles.
 */
const ended = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.on(signal, () => {
    // A second signal ends the process at once.
    if (ended.signal.aborted) process.exit(1);
    ended.abort(signal);
  });

async function run(argv: readonly string[]): Promise<number> {
  // Older versions of Node.js lack functions that other modules import.
  const problem = (await import('./runtime/package.ts')).nodeProblem();
  if (problem !== undefined) {
    process.stderr.write(`platform-apiserver ${problem}\n`);
    return 1;
  }
  const information = (await import('./cli/help.ts')).informationFor(argv);
  if (information !== undefined) {
    process.stdout.write(`${information}\n`);
    return 0;
  }
  const [command, ...rest] = argv;
  const tool = tools.get(command ?? '');
  if (tool === undefined) {
    (await import('./cli/help.ts')).rejectUnknownCommand(argv);
    return await (await import('./cli/serve.ts')).serve(argv, ended.signal);
  }
  // Commands need no orderly shutdown. The first signal ends a command, even while it waits for input or its modules
  // are imported.
  if (ended.signal.aborted) process.exit(1);
  ended.signal.addEventListener('abort', () => process.exit(1));
  return await tool(rest);
}

const tools: ReadonlyMap<string, (argv: readonly string[]) => Promise<number>> = new Map([
  ['hash-password', async (argv) => await (await import('./cli/hash-password.ts')).hashPassword(argv)],
  ['credential', async (argv) => await (await import('./cli/credential/index.ts')).credential(argv, process.env)],
  ['doctor', async (argv) => await (await import('./cli/doctor/index.ts')).doctor(argv, process.env)],
  ['check-config', async (argv) => await (await import('./cli/check-config.ts')).checkConfig(argv)],
  ['version', async (argv) => (await import('./cli/version.ts')).version(argv)],
]);

try {
  process.exitCode = await run(process.argv.slice(2));
  // After an orderly shutdown, only keep-alive sockets could keep the event loop running.
  process.exit();
} catch (error) {
  const { UsageError } = await import('./config/flags.ts');
  if (error instanceof UsageError) {
    process.stderr.write(`platform-apiserver: ${error.message}\nsee platform-apiserver --help\n`);
    process.exit(2);
  }
  const { createLogger } = await import('./runtime/logger.ts');
  createLogger().error('startup failed', { error });
  process.exit(1);
}
