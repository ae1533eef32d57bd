/**
 * The managedFields of many objects. They say who manages which fields, so those of objects of one make are the same text but for times,
 * addresses and owners: each such text is kept once.
 */
import { LRUCache } from 'lru-cache';
import { Packer, type Packed } from './packed.ts';

/** In what one object has of its own: when something was written, and the keys of lists that are addresses or uids. */
const own = /("time":"|\\"(?:ip|uid)\\":\\")([^"\\]*)/g;
/** Stands for it; no JSON text holds it. */
const mark = '\0';
/** Characters of texts that are known, whether anybody has them or not. */
const maxKnown = 2 * 1024 * 1024;

/** What stands between the marks of a text that several have. */
interface Shared {
  pieces?: readonly string[];
}

class Filled implements Packed {
  readonly #pieces: readonly string[];
  readonly #values: string;

  constructor(pieces: readonly string[], values: string) {
    this.#pieces = pieces;
    this.#values = values;
  }

  get size(): number {
    return this.#values.length;
  }

  get bytes(): Buffer {
    const [first, ...rest] = this.#pieces;
    const values = this.#values.split(mark);
    return Buffer.from(
      rest.reduce((text, piece, index) => `${text}${values[index]}${piece}`, first ?? ''),
      'latin1',
    );
  }
}

export class ManagedFields {
  readonly #known = new LRUCache<string, Shared>({ maxSize: maxKnown, sizeCalculation: (_, text) => text.length + 1 });
  readonly #packer = new Packer();

  /** A text that nobody else has is packed by itself. */
  pack(bytes: Buffer): Packed {
    if (bytes.includes(mark)) return this.#packer.pack(bytes);
    const values: string[] = [];
    const text = bytes.toString('latin1').replace(own, (_, before: string, value: string) => {
      values.push(value);
      return `${before}${mark}`;
    });
    const shared = this.#known.get(text);
    if (shared === undefined) {
      this.#known.set(text, {});
      return this.#packer.pack(bytes);
    }
    shared.pieces ??= text.split(mark);
    return new Filled(shared.pieces, values.join(mark));
  }
}
