import { expect, test } from '@jest/globals';
import { tarGzip, text, type Entry } from '../../../hack/release/tar.ts';
import { unpack } from './unpack.ts';

const entries: readonly Entry[] = [
  text('b', 'second'),
  { path: 'a', content: Buffer.from('first'), mode: 0o755 },
  { path: 'folder', folder: true, mode: 0o1777 },
  { path: 'link', link: 'a' },
];

test('an archive does not depend on the order of its entries', async () => {
  expect((await tarGzip(entries)).equals(await tarGzip(entries.toReversed()))).toBe(true);
});

test('the entries of an archive are sorted, are owned by root and have a modification time in 1970', async () => {
  const bytes = await tarGzip(entries);
  expect(bytes.readUInt32LE(4)).toBe(0); // The field MTIME of RFC 1952.
  const headers = [...(await unpack(bytes)).values()].map(({ header }) => header);
  expect(headers.map(({ name, type, mode }) => [name, type, mode?.toString(8)])).toEqual([
    ['a', 'file', '755'],
    ['b', 'file', '644'],
    ['folder', 'directory', '1777'],
    ['link', 'symlink', '644'],
  ]);
  for (const { uid, gid, mtime } of headers) expect([uid, gid, mtime?.getTime()]).toEqual([0, 0, 0]);
});
