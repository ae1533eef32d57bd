/**
 * Bytes that are kept but seldom read, deflated against others that are like them (RFC 1951 with a preset dictionary): the managed
 * fields of one node differ little from those of the next, and an old state of an object little from any other.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** Up to so many bytes lie in the V8 heap: a Buffer of its own would cost more than it holds. */
const longestText = 4096;
/** Less is not worth the work. */
const shortest = 256;
/** zlib clears the memory that it works in each time: what these allow is enough for an object, and packing it takes a third of the time. */
const deflation = { level: 3, memLevel: 5, windowBits: 14 };
/** A dictionary that is unlike what is packed with it is changed for a better one, so often. */
const mostDictionaries = 8;

export class Packed {
  readonly #kept: string | Buffer;
  /** Undefined if the bytes are kept as they are. */
  readonly #dictionary: Buffer | undefined;
  readonly #length: number;

  constructor(kept: Buffer, dictionary: Buffer | undefined, length: number) {
    this.#kept = kept.length > longestText ? Buffer.from(kept) : kept.toString('latin1');
    this.#dictionary = dictionary;
    this.#length = length;
  }

  /** Bytes that it takes, the dictionary apart. */
  get size(): number {
    return this.#kept.length;
  }

  /** A copy of what was packed. */
  get bytes(): Buffer {
    const kept = typeof this.#kept === 'string' ? Buffer.from(this.#kept, 'latin1') : this.#kept;
    if (this.#dictionary === undefined) return kept;
    return inflateRawSync(kept, { dictionary: this.#dictionary, chunkSize: Math.max(this.#length, 64) });
  }
}

/** Packs what is alike. */
export class Packer {
  #dictionary: Buffer = Buffer.alloc(0);
  #dictionaries = 0;

  pack(bytes: Buffer): Packed {
    if (bytes.length < shortest) return new Packed(bytes, undefined, bytes.length);
    const deflated = this.#deflate(bytes);
    const unlike = deflated.length * 3 > bytes.length && bytes.length > this.#dictionary.length;
    if (!unlike || this.#dictionaries === mostDictionaries) return new Packed(deflated, this.#dictionary, bytes.length);
    this.#dictionary = Buffer.from(bytes);
    this.#dictionaries += 1;
    return new Packed(this.#deflate(bytes), this.#dictionary, bytes.length);
  }

  #deflate(bytes: Buffer): Buffer {
    return deflateRawSync(bytes, { ...deflation, dictionary: this.#dictionary });
  }
}
