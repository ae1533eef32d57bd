/** Reproducible tar archives in memory: all files belong to root and are dated 1970. */
import { pack } from 'tar-stream';

interface Common {
  /** Path without a leading slash. */
  readonly path: string;
  readonly mode?: number;
}

export type TarEntry = Common & ({ readonly content: Buffer } | { readonly link: string } | { readonly folder: true });

/** Returns the bytes of an archive in pieces, without copies. */
export async function tar(entries: readonly TarEntry[]): Promise<Buffer[]> {
  const archive = pack();
  for (const entry of entries) {
    const header = { name: entry.path, mtime: new Date(0), ...(entry.mode === undefined ? {} : { mode: entry.mode }) };
    if ('folder' in entry) archive.entry({ ...header, type: 'directory' });
    else if ('link' in entry) archive.entry({ ...header, type: 'symlink', linkname: entry.link });
    else archive.entry(header, entry.content);
  }
  archive.finalize();
  const pieces: Buffer[] = [];
  for await (const piece of archive) pieces.push(piece as Buffer);
  return pieces;
}
