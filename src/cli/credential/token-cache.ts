/**
 * Tokens between two calls, in a file that only its owner may read. It needs no lock: two calls that refresh at once get the same
 * successor from the server, so whichever writes last writes what the other wrote.
 */
import { createHash, randomUUID } from 'node:crypto';
import { chmod, constants, lstat, mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { tokensIn } from './answers.ts';

export interface CachedTokens {
  readonly accessToken: string;
  /** Milliseconds since the epoch, as is `expiresAt`. */
  readonly obtainedAt: number;
  readonly expiresAt: number;
  readonly refreshToken: string;
}

/** `parts`: what the tokens are for. */
export const cacheFile = (parts: readonly string[], home: string = homedir()): string => {
  const name = createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
  return join(home, '.kube/cache/platform-apiserver', `${name}.json`);
};

/** Undefined if there are none, or none that can be trusted or read: then `tell` says so. */
export async function readTokens(file: string, tell: (note: string) => void): Promise<CachedTokens | undefined> {
  try {
    const tokens = tokensIn((parse(await readOwn(file)) ?? {}) as Readonly<Record<string, unknown>>);
    if (tokens !== undefined) return tokens;
    tell(`${file} has no tokens that can be used: as if it were not there`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      tell(`${file} cannot be used (${(error as Error).message}): as if it were not there`);
  }
  return undefined;
}

/** Throws without quoting the text, which holds tokens. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new SyntaxError('it is not JSON');
  }
}

/** What others could have read or put there is not used. */
async function readOwn(file: string): Promise<string> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || !isOwn(stats.uid) || (hasModes() && (stats.mode & 0o077) !== 0))
      throw new Error('it must be a file that its owner, who is to be you, alone may read');
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

/** Windows has other means, by which a home directory is its owner's alone. */
const hasModes = (): boolean => process.getuid !== undefined;
const isOwn = (uid: number): boolean => !hasModes() || uid === process.getuid?.();

/** Another call reads those before or these, never a half. Throws for a folder of somebody else. */
export async function writeTokens(file: string, tokens: CachedTokens): Promise<void> {
  const folder = dirname(file);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const stats = await lstat(folder);
  if (!stats.isDirectory() || !isOwn(stats.uid))
    throw new Error(`tokens are not kept: ${folder} must be a folder of your own, and no link`);
  await chmod(folder, 0o700);
  const beside = `${file}.${randomUUID()}`;
  try {
    await writeFile(beside, JSON.stringify(tokens), { mode: 0o600, flag: 'wx' });
    await rename(beside, file);
  } catch (error) {
    // A disk that is full may hold them by half.
    await rm(beside, { force: true });
    throw error;
  }
}

export const forgetTokens = (file: string): Promise<void> => rm(file, { force: true });
