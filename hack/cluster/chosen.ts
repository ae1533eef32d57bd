import { createServer } from 'node:net';
import { once } from 'node:events';
import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Numbers chosen once for a state folder (ports, the address block) and kept for its next use, in `<folder>/chosen.json`. */
export async function chosen(
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

/** The same number below `limit` for the same text each time: two work trees start their search in different places. */
export const seed = (text: string, limit: number): number =>
  createHash('sha256').update(text).digest().readUInt32BE(0) % limit;

/** The first free TCP port of `address` from `first` on. */
export async function freePort(first: number, address = '127.0.0.1', taken: readonly number[] = []): Promise<number> {
  for (let port = first; port < 65_536; port++) if (!taken.includes(port) && (await isFree(port, address))) return port;
  throw new Error(`no free port on ${address} from ${first} on`);
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
