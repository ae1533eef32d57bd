import { parseArguments } from '../config/flags.ts';
import { versionLine } from './help.ts';

/** Prints the version. Returns the exit code. Throws UsageError. */
export function version(argv: readonly string[]): number {
  parseArguments(argv, 'version', 0);
  console.log(versionLine());
  return 0;
}
