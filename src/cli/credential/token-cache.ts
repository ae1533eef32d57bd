/**
 * Caches tokens between calls in a file that only its owner can read. No lock is needed: two calls that refresh at the
 * same time get the same new token from the server, so both write the same content.
 */
import { createHash, randomUUID } from 'node:crypto';
import { chmod, constants, lstat, mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { tokensIn } from './responses.ts';

export interface CachedTokens {
  readonly accessToken: string;
  /** Milliseconds since the epoch, like `expiresAt`. */
  readonly obtainedAt: number;
  readonly expiresAt: number;
  readonly refreshToken: string;
}

/** Returns the path of the file. `parts` identify the purpose of the tokens. */
export const cacheFile = (parts: readonly string[], home: string = homedir()): string => {
  const name = createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
  return join(home, '.kube/cache/platform-apiserver', `${name}.json`);
};

/** Returns the cached tokens; undefined if there are none. Reports a file that cannot be trusted or read. */
export async function readTokens(file: string, report: (note: string) => void): Promise<CachedTokens | undefined> {
  try {
    const tokens = tokensIn((parse(await readOwn(file)) ?? {}) as Readonly<Record<string, unknown>>);
    if (tokens !== undefined) return tokens;
    report(`ignoring ${file}: it contains no valid tokens`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') report(`ignoring ${file}: ${(error as Error).message}`);
  }
  return undefined;
}

/** Parses the file. Errors do not quote the text, because it contains tokens. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new SyntaxError('it is not JSON');
  }
}

/** Rejects files that other users could have read or written. */
async function readOwn(file: string): Promise<string> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || !isOwn(stats.uid) || (hasModes() && (stats.mode & 0o077) !== 0))
      throw new Error('it must be a file that you own and that no other user can read');
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

/** Returns whether files have modes and owners. Windows protects home directories by other means. */
const hasModes = (): boolean => process.getuid !== undefined;
const isOwn = (uid: number): boolean => !hasModes() || uid === process.getuid?.();

/** Replaces the file atomically. Throws if the folder belongs to another user. */
export async function writeTokens(file: string, tokens: CachedTokens): Promise<void> {
  const folder = dirname(file);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const stats = await lstat(folder);
  if (!stats.isDirectory() || !isOwn(stats.uid))
    throw new Error(`tokens cannot be saved: ${folder} must be a folder that you own, not a link`);
  await chmod(folder, 0o700);
  const temporary = `${file}.${randomUUID()}`;
  try {
    await writeFile(temporary, JSON.stringify(tokens), { mode: 0o600, flag: 'wx' });
    await rename(temporary, file);
  } catch (error) {
    // A full disk may have left a partial file.
    await rm(temporary, { force: true });
    throw error;
  }
}

export const forgetTokens = (file: string): Promise<void> => rm(file, { force: true });
