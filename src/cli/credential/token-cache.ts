/**
 * Tokens between two calls, in a file that only its owner may read. It needs no lock: two calls that refresh at once get the same
 * successor from the server, so whichever writes last writes what the other wrote.
 */
import { createHash, randomUUID } from 'node:crypto';
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

export interface CachedTokens {
  readonly accessToken: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  readonly refreshToken: string;
}

/** `parts`: what the tokens are for. */
export const cacheFile = (parts: readonly string[], home: string = homedir()): string => {
  const name = createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
  return join(home, '.kube/cache/platform-apiserver', `${name}.json`);
};

/** Undefined if there are none, or nothing that can be read. */
export async function readTokens(file: string): Promise<CachedTokens | undefined> {
  try {
    const read = JSON.parse(await readFile(file, 'utf8')) as Partial<CachedTokens>;
    const { accessToken, expiresAt, refreshToken } = read;
    const isWhole = [accessToken, refreshToken].every((one) => typeof one === 'string');
    return isWhole && typeof expiresAt === 'number' ? (read as CachedTokens) : undefined;
  } catch {
    return undefined;
  }
}

/** Another call reads those before or these, never a half. */
export async function writeTokens(file: string, tokens: CachedTokens): Promise<void> {
  const folder = dirname(file);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  const beside = `${file}.${randomUUID()}`;
  await writeFile(beside, JSON.stringify(tokens), { mode: 0o600, flag: 'wx' });
  await rename(beside, file);
}

export const forgetTokens = (file: string): Promise<void> => rm(file, { force: true });
