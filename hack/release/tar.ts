/** Reproducible archives: sorted, owned by root and dated 1970. */
import { gzipSync } from 'node:zlib';
import { tar as tarInOrder, type TarEntry as Entry } from '../../src/runtime/tar.ts';

export type { Entry };

export const text = (path: string, content: string): Entry => ({ path, content: Buffer.from(content) });

/** Compares code units, since the order of a locale would depend on the machine. */
const byPath = (a: Entry, b: Entry): number => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0);

/** Returns the bytes of an archive in pieces, without copying the contents of the files. */
export const tar = (entries: readonly Entry[]): Promise<Buffer[]> => tarInOrder(entries.toSorted(byPath));

/** Returns a compressed archive. Its header contains neither a name nor a time. */
export const tarGzip = async (entries: readonly Entry[]): Promise<Buffer> =>
  gzipSync(Buffer.concat(await tar(entries)), { level: 9 });
