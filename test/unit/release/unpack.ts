import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { extract, type Header } from 'tar-stream';

interface Unpacked {
  readonly header: Header;
  readonly content: Buffer;
}

/** Returns the entries of an archive by name. The archive can be compressed with gzip. */
export async function unpack(bytes: Buffer): Promise<Map<string, Unpacked>> {
  const entries = new Map<string, Unpacked>();
  const files = extract();
  files.end(bytes[0] === 0x1f ? gunzipSync(bytes) : bytes);
  for await (const file of files) {
    const pieces: Buffer[] = [];
    for await (const piece of file) pieces.push(piece as Buffer);
    entries.set(file.header.name, { header: file.header, content: Buffer.concat(pieces) });
  }
  return entries;
}

export const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
