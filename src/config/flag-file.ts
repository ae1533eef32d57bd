import { readFile } from 'node:fs/promises';
import { getSystemErrorMessage } from 'node:util';

/** Reads a file that a flag or a command names. Throws the error that `fileError` returns. */
export const readFlagFile = (flag: string, file: string): Promise<string> =>
  readFile(file, 'utf8').catch((error: unknown) => {
    throw fileError(flag, file, error);
  });

/**
 * Describes a file that cannot be read: `--ca-file: cannot read /x: no such file or directory`. Other errors keep their
 * message, which follows the flag.
 */
export function fileError(flag: string, file: string, cause: unknown): Error {
  const { errno, path = file, message = String(cause) } = cause as Partial<NodeJS.ErrnoException>;
  // Only system errors have an errno.
  const problem = errno === undefined ? message : `cannot read ${path}: ${getSystemErrorMessage(errno)}`;
  return new Error(`${flag}: ${problem}`, { cause });
}
