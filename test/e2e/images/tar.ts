/** Tar archives in memory, reproducible: everything belongs to root and is from 1970 (POSIX.1-2001 pax). */

interface Common {
  /** Without a leading slash. */
  readonly path: string;
  readonly mode?: number;
}

export type Entry = Common & ({ readonly content: Buffer } | { readonly link: string } | { readonly folder: true });

const block = 512;

/** The bytes of an archive, in pieces that are not copied. */
export function tar(entries: readonly Entry[]): Buffer[] {
  return [...entries.flatMap(pieces), Buffer.alloc(2 * block)];
}

function pieces(entry: Entry): Buffer[] {
  const long = Object.entries({ path: entry.path, linkpath: 'link' in entry ? entry.link : '' }).filter(
    ([, value]) => Buffer.byteLength(value) > 100,
  );
  // What does not fit into the header stands in a record before it.
  const records = Buffer.from(long.map(([name, value]) => record(name, value)).join(''));
  const before = records.length === 0 ? [] : [header('pax', 0o644, 'x', records.length), ...padded(records)];
  if ('folder' in entry) return [...before, header(`${entry.path}/`, entry.mode ?? 0o755, '5', 0)];
  if ('link' in entry) return [...before, header(entry.path, 0o777, '2', 0, entry.link)];
  return [...before, header(entry.path, entry.mode ?? 0o644, '0', entry.content.length), ...padded(entry.content)];
}

function record(name: string, value: string): string {
  const rest = ` ${name}=${value}\n`;
  let length = Buffer.byteLength(rest);
  // The length counts its own digits.
  while (String(length).length + Buffer.byteLength(rest) > length) length++;
  return `${length}${rest}`;
}

function padded(content: Buffer): Buffer[] {
  const rest = content.length % block;
  return rest === 0 ? [content] : [content, Buffer.alloc(block - rest)];
}

function header(path: string, mode: number, type: string, size: number, link = ''): Buffer {
  const bytes = Buffer.alloc(block);
  const octal = (value: number, offset: number, length: number): void => {
    bytes.write(`${value.toString(8).padStart(length - 1, '0')}\0`, offset);
  };
  bytes.write(path, 0, 100);
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(0, 136, 12);
  bytes.write('        ', 148);
  bytes.write(type, 156);
  bytes.write(link, 157, 100);
  bytes.write('ustar\x0000', 257);
  octal(
    bytes.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  );
  return bytes;
}
