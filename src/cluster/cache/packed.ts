/**
 * Bytes that are kept but seldom read, deflated (RFC 1951): each against others that are like it, with a preset dictionary, or many as one.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** Up to so many bytes lie in the V8 heap: a Buffer of its own would cost more than it holds. */
const longestText = 4096;
/** Less is not worth the work. */
const shortest = 256;
/** zlib clears the memory that it works in each time: what these allow is enough for an object, and packing it takes a third of the time. */
const deflation = { level: 3, memLevel: 5, windowBits: 14 };
/** A dictionary that is unlike what is packed with it is changed for a better one, so often. */
const maxDictionaries = 8;

/** Bytes that are kept in a form that takes less room. */
export interface Packed {
  /** Bytes that it takes, what it shares with others apart. */
  readonly size: number;
  /** As they were: a copy. */
  readonly bytes: Buffer;
}

class Deflated implements Packed {
  readonly #kept: string | Buffer;
  /** Undefined if the bytes are kept as they are. */
  readonly #dictionary: Buffer | undefined;
  readonly #length: number;

  constructor(kept: Buffer, dictionary: Buffer | undefined, length: number) {
    this.#kept = kept.length > longestText ? Buffer.from(kept) : kept.toString('latin1');
    this.#dictionary = dictionary;
    this.#length = length;
  }

  get size(): number {
    return this.#kept.length;
  }

  get bytes(): Buffer {
    const kept = typeof this.#kept === 'string' ? Buffer.from(this.#kept, 'latin1') : this.#kept;
    if (this.#dictionary === undefined) return kept;
    return inflateRawSync(kept, { dictionary: this.#dictionary, chunkSize: Math.max(this.#length, 64) });
  }
}

/** Packs what is alike, one by one. */
export class Packer {
  #dictionary: Buffer = Buffer.alloc(0);
  #dictionaries = 0;

  pack(bytes: Buffer): Packed {
    if (bytes.length < shortest) return new Deflated(bytes, undefined, bytes.length);
    const deflated = this.#deflate(bytes);
    const unlike = deflated.length * 3 > bytes.length && bytes.length > this.#dictionary.length;
    if (!unlike || this.#dictionaries === maxDictionaries)
      return new Deflated(deflated, this.#dictionary, bytes.length);
    this.#dictionary = Buffer.from(bytes);
    this.#dictionaries += 1;
    return new Deflated(this.#deflate(bytes), this.#dictionary, bytes.length);
  }

  #deflate(bytes: Buffer): Buffer {
    return deflateRawSync(bytes, { ...deflation, dictionary: this.#dictionary });
  }
}

/** For bytes that are alike: what is said twice is found anyway, so that trying hard is not worth it. */
const joint = { level: 1 };

/** Many that are alike packed as one: that takes a fifth of the time, and reading them in their order little. */
export function packTogether(all: readonly Buffer[]): readonly Packed[] {
  const whole = Buffer.concat(all);
  const run = new Run(deflateRawSync(whole, joint), whole.length);
  let start = 0;
  return all.map(({ length }) => {
    start += length;
    return new Part(run, start - length, start);
  });
}

class Run {
  readonly #deflated: Buffer;
  readonly #length: number;
  #inflated: WeakRef<Buffer> | undefined;

  constructor(deflated: Buffer, length: number) {
    this.#deflated = Buffer.from(deflated);
    this.#length = length;
  }

  /** How many bytes one takes of what a byte of all takes. */
  get density(): number {
    return this.#deflated.length / this.#length;
  }

  /** Whoever reads one will read the next. */
  get memory(): Buffer {
    let memory = this.#inflated?.deref();
    if (memory === undefined) {
      memory = inflateRawSync(this.#deflated, { chunkSize: Math.max(this.#length, 64) });
      this.#inflated = new WeakRef(memory);
    }
    return memory;
  }
}

class Part implements Packed {
  readonly #run: Run;
  readonly #start: number;
  readonly #end: number;

  constructor(run: Run, start: number, end: number) {
    this.#run = run;
    this.#start = start;
    this.#end = end;
  }

  get size(): number {
    return Math.ceil((this.#end - this.#start) * this.#run.density);
  }

  get bytes(): Buffer {
    return this.#run.memory.subarray(this.#start, this.#end);
  }
}
