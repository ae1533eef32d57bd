import { createServer } from 'node:net';
import { once } from 'node:events';
import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Returns a number that is chosen once for a state folder, such as a port or the address block. `<folder>/chosen.json`
 * stores the number for the next start. `choose` receives the stored number and may replace it.
 */
export async function chooseOnce(
  folder: string,
  name: string,
  choose: (before?: number) => Promise<number>,
): Promise<number> {
  const file = join(folder, 'chosen.json');
  const text = await readFile(file, 'utf8').catch(() => '{}');
  const all = JSON.parse(text) as Record<string, number>;
  const value = await choose(all[name]);
  if (value !== all[name]) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(`${file}.new`, JSON.stringify({ ...all, [name]: value }));
    await rename(`${file}.new`, file);
  }
  return value;
}

/** Hashes a text to a number below `limit`, so that two work trees start their search at different numbers. */
export const seed = (text: string, limit: number): number =>
  createHash('sha256').update(text).digest().readUInt32BE(0) % limit;

/** Returns the first free TCP port of `address`, from `first` upwards. */
export async function freePort(first: number, address = '127.0.0.1', taken: readonly number[] = []): Promise<number> {
  for (let port = first; port < 65_536; port++) if (!taken.includes(port) && (await isFree(port, address))) return port;
  throw new Error(`no free port on ${address} from ${first} to 65535`);
}

export async function isFree(port: number, address = '127.0.0.1'): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, address);
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
