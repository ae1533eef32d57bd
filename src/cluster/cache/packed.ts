/** Compresses rarely read bytes one by one with DEFLATE (RFC 1951) and a preset dictionary of similar bytes. */
import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** Maximum bytes that are stored as a string in the V8 heap, where a Buffer would cost more memory than its content. */
const maxTextLength = 4096;
/** Minimum length in bytes of data that is compressed. */
const minLength = 256;
/**
 * zlib clears its memory for each call. This low memory level suffices for an object, and makes compression three times
 * as fast.
 */
const deflation = { level: 3, memLevel: 5, windowBits: 14 };
/** Bytes of a dictionary that compression can use. */
const windowSize = 2 ** deflation.windowBits;
/** Maximum number of times that the dictionary is replaced by a more similar one. */
const maxDictionaries = 8;

/** Bytes in a compressed form. */
export interface Packed {
  /** Compressed size in bytes, without memory that is shared with other data. */
  readonly size: number;
  /** Number of original bytes. */
  readonly length: number;
  /** Copy of the original bytes. */
  readonly bytes: Buffer;
}

class Deflated implements Packed {
  readonly length: number;
  readonly #packed: string | Buffer;
  /** Dictionary, undefined if the bytes are not compressed. */
  readonly #dictionary: Buffer | undefined;

  constructor(packed: Buffer, dictionary: Buffer | undefined, length: number) {
    this.#packed = packed.length > maxTextLength ? Buffer.from(packed) : packed.toString('latin1');
    this.#dictionary = dictionary;
    this.length = length;
  }

  get size(): number {
    return this.#packed.length;
  }

  get bytes(): Buffer {
    const packed = typeof this.#packed === 'string' ? Buffer.from(this.#packed, 'latin1') : this.#packed;
    if (this.#dictionary === undefined) return packed;
    return inflateRawSync(packed, { dictionary: this.#dictionary, chunkSize: Math.max(this.length, 64) });
  }
}

/** Packs similar bytes one by one. */
export class Packer {
  #dictionary: Buffer = Buffer.alloc(0);
  #dictionaries = 0;

  pack(bytes: Buffer): Packed {
    if (bytes.length < minLength) return new Deflated(bytes, undefined, bytes.length);
    const deflated = this.#deflate(bytes);
    const isUnlike = deflated.length * 3 > bytes.length && bytes.length > this.#dictionary.length;
    if (!isUnlike || this.#dictionaries === maxDictionaries)
      return new Deflated(deflated, this.#dictionary, bytes.length);
    this.#dictionary = Buffer.from(bytes.subarray(-windowSize));
    this.#dictionaries += 1;
    return new Deflated(this.#deflate(bytes), this.#dictionary, bytes.length);
  }

  #deflate(bytes: Buffer): Buffer {
    return deflateRawSync(bytes, { ...deflation, dictionary: this.#dictionary });
  }
}
