import { readFile } from 'node:fs/promises';
import { getSystemErrorMessage } from 'node:util';

/** Reads a file that a flag or a command names. Throws fileError. */
export const readFlagFile = (flag: string, file: string): Promise<string> =>
  readFile(file, 'utf8').catch((error: unknown) => {
    throw fileError(flag, file, error);
  });

/** Describes a file that cannot be read: `--ca-file: cannot read /x: no such file or directory`. Returns other errors unchanged. */
export function fileError(flag: string, file: string, cause: unknown): unknown {
  const { errno, path = file } = cause as Partial<NodeJS.ErrnoException>;
  // Only system errors have an errno.
  if (errno === undefined) return cause;
  return new Error(`${flag}: cannot read ${path}: ${getSystemErrorMessage(errno)}`, { cause });
}
