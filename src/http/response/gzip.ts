/**
 * Builds a gzip member (RFC 1952) from fragments that were deflated separately in advance. A fragment ends on a byte
 * boundary and contains no references to earlier data, so fragments can be joined in any order. The checksum of the
 * whole is computed from the checksums of the fragments.
 */
import { constants, crc32, deflateRaw } from 'node:zlib';
import { promisify } from 'node:util';

export interface Fragment {
  readonly deflated: Buffer;
  readonly crc: number;
  /** Bytes before compression. */
  readonly length: number;
  /** Factor that advances a checksum over `length` zero bytes. */
  readonly shift: number;
}

/** The polynomial of CRC-32, with the lowest power in the highest bit. */
const polynomial = 0xedb88320;
const one = 0x80000000;

/** Returns the product of two polynomials over GF(2), modulo the polynomial of CRC-32. */
function multiply(a: number, b: number): number {
  let product = 0;
  let shifted = b;
  for (let bit = one; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) product ^= shifted;
    shifted = (shifted & 1) === 0 ? shifted >>> 1 : (shifted >>> 1) ^ polynomial;
  }
  return product >>> 0;
}

/** Returns x^(8 × bytes). Multiplying a checksum by this power has the effect of appending `bytes` zero bytes. */
function shiftOver(bytes: number): number {
  // The powers are x^8, x^16, x^32 and so on, one for each bit of `bytes`.
  let power = one >>> 8;
  let shift = one;
  for (let rest = bytes; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) shift = multiply(shift, power);
    power = multiply(power, power);
  }
  return shift;
}

const deflate = promisify(deflateRaw);
const level = 1;

/** Deflates the bytes in a thread, not on the event loop. */
export async function deflateFragment(bytes: Buffer): Promise<Fragment> {
  const deflated = await deflate(bytes, { level, finishFlush: constants.Z_SYNC_FLUSH });
  // The data is copied, because zlib returns a slice of a larger buffer.
  return { deflated: Buffer.from(deflated), crc: crc32(bytes), length: bytes.length, shift: shiftOver(bytes.length) };
}

/** Joins consecutive fragments into one. */
export function joinFragments(fragments: readonly Fragment[]): Fragment {
  let crc = 0;
  let length = 0;
  let shift = one;
  for (const fragment of fragments) {
    crc = multiply(fragment.shift, crc) ^ fragment.crc;
    length += fragment.length;
    shift = multiply(shift, fragment.shift);
  }
  return { deflated: Buffer.concat(fragments.map(({ deflated }) => deflated)), crc: crc >>> 0, length, shift };
}

const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
const maxStored = 0xffff;

/** Returns the bytes in stored blocks (RFC 1951 section 3.2.4), for data that is too short to deflate. */
function stored(bytes: Buffer): Buffer[] {
  const blocks: Buffer[] = [];
  for (let start = 0; start < bytes.length; start += maxStored) {
    const part = bytes.subarray(start, start + maxStored);
    blocks.push(blockHeader(part.length, false), part);
  }
  return blocks;
}

function blockHeader(length: number, isLast: boolean): Buffer {
  const block = Buffer.alloc(5);
  block[0] = isLast ? 1 : 0;
  block.writeUInt16LE(length, 1);
  block.writeUInt16LE(length ^ maxStored, 3);
  return block;
}

/** Returns the pieces of a gzip member that contains these parts in order. */
export function gzipOf(parts: readonly (Fragment | Buffer)[]): Buffer[] {
  const pieces: Buffer[] = [header];
  let crc = 0;
  let length = 0;
  for (const part of parts) {
    const isFragment = !Buffer.isBuffer(part);
    pieces.push(...(isFragment ? [part.deflated] : stored(part)));
    crc = multiply(isFragment ? part.shift : shiftOver(part.length), crc) ^ (isFragment ? part.crc : crc32(part));
    length += part.length;
  }
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(crc >>> 0, 0);
  trailer.writeUInt32LE(length % 2 ** 32, 4);
  return [...pieces, blockHeader(0, true), trailer];
}
