import { quote } from '../../hack/run/env-file.ts';

/**
 * Returns the command line that runs a program in a terminal. The standard output of the program is written to `file`,
 * and the terminal shows its standard error.
 */
export function inTerminal(commandLine: readonly string[], file: string): readonly [string, ...string[]] {
  const command = `exec ${commandLine.map(quote).join(' ')} >${quote(file)}`;
  return ['script', '--quiet', '--return', '--command', command, '/dev/null'];
}
