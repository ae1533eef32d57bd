import { text as textOf } from 'node:stream/consumers';
import { readFlagFile } from '../config/flag-file.ts';
import { parseArguments } from '../config/flags.ts';
import { formatProblem } from '../config/parse.ts';
import { parseWrapped } from './wrapped-configuration.ts';

/**
 * Prints all problems of a configuration. Returns the exit code: 0 if it is valid, 1 if it is invalid, 2 if it cannot
 * be read. Throws UsageError.
 */
export async function checkConfig(
  argv: readonly string[],
  input: NodeJS.ReadableStream = process.stdin,
): Promise<number> {
  const [file = ''] = parseArguments(argv, 'check-config FILE', 1);
  const name = file === '-' ? 'standard input' : file;
  let text: string;
  try {
    text = file === '-' ? await textOf(input) : await readFlagFile('check-config', file);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 2;
  }
  const parsed = parseWrapped(text);
  if (parsed.ok) {
    console.log(`${name} is valid`);
    return 0;
  }
  for (const problem of parsed.problems) console.error(`${name}: ${formatProblem(problem)}`);
  return 1;
}
