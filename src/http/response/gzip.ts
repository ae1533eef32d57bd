/**
 * One gzip member (RFC 1952) from fragments that were deflated long before, each by itself. A fragment ends on a byte boundary and
 * refers to nothing before it, so fragments can follow each other in any order; their checksums are combined arithmetically.
 */
import { constants, crc32, deflateRaw } from 'node:zlib';
import { promisify } from 'node:util';

export interface Fragment {
  readonly deflated: Buffer;
  readonly crc: number;
  /** Of what was deflated, in bytes. */
  readonly length: number;
  /** What takes a checksum over so many zero bytes. */
  readonly shift: number;
}

/** CRC-32's polynomial, the lowest power in the highest bit. */
const polynomial = 0xedb88320;
const one = 0x80000000;

/** The product of two polynomials over GF(2), modulo CRC-32's. */
function multiply(a: number, b: number): number {
  let product = 0;
  let shifted = b;
  for (let bit = one; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) product ^= shifted;
    shifted = (shifted & 1) === 0 ? shifted >>> 1 : (shifted >>> 1) ^ polynomial;
  }
  return product >>> 0;
}

/** x^(8 × bytes): multiplying a checksum by it is what so many zero bytes would make of it. */
function shiftOver(bytes: number): number {
  // x^8, x^16, x^32, …: one for each bit of the number.
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

/** Off the event loop. */
export async function deflateFragment(bytes: Buffer): Promise<Fragment> {
  const deflated = await deflate(bytes, { level, finishFlush: constants.Z_SYNC_FLUSH });
  // What zlib answers lies in a larger piece of memory.
  return { deflated: Buffer.from(deflated), crc: crc32(bytes), length: bytes.length, shift: shiftOver(bytes.length) };
}

/** One fragment of several that follow each other. */
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
const longestStored = 0xffff;

/** Bytes as they are, in blocks (RFC 1951 section 3.2.4): for what is too short to be worth deflating. */
function stored(bytes: Buffer): Buffer[] {
  const blocks: Buffer[] = [];
  for (let start = 0; start < bytes.length; start += longestStored) {
    const part = bytes.subarray(start, start + longestStored);
    blocks.push(blockHeader(part.length, false), part);
  }
  return blocks;
}

function blockHeader(length: number, isLast: boolean): Buffer {
  const block = Buffer.alloc(5);
  block[0] = isLast ? 1 : 0;
  block.writeUInt16LE(length, 1);
  block.writeUInt16LE(length ^ longestStored, 3);
  return block;
}

/** The pieces of a gzip member that holds these, one behind the other. */
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
