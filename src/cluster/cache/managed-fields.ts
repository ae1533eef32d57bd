/**
 * Stores the managedFields of many objects. managedFields record who manages which fields. The managedFields of objects
 * from the same source differ only in times, addresses and uids, so their common text is stored once, as a template.
 */
import { LRUCache } from 'lru-cache';
import { Packer, type Packed } from './packed.ts';

/** Values that differ between objects: times of writes, and list keys that are addresses or uids. */
const ownValues = /("time":"|\\"(?:ip|uid)\\":\\")([^"\\]*)/g;
/** Character that replaces an object's own value in a template. JSON texts never contain this character. */
const placeholder = '\0';
/** Maximum characters of all templates, including unused ones. */
const maxTemplates = 2 * 1024 * 1024;

interface Template {
  /** Text between the placeholders; undefined until a second object uses the template. */
  pieces?: readonly string[];
}

class FilledTemplate implements Packed {
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
    const values = this.#values.split(placeholder);
    return Buffer.from(
      rest.reduce((text, piece, index) => `${text}${values[index]}${piece}`, first ?? ''),
      'latin1',
    );
  }
}

export class ManagedFields {
  readonly #templates = new LRUCache<string, Template>({
    maxSize: maxTemplates,
    sizeCalculation: (_, text) => text.length + 1,
  });
  readonly #packer = new Packer();

  /** Returns the packed bytes: only the object's own values if the template is known, otherwise the deflated text. */
  pack(bytes: Buffer): Packed {
    if (bytes.includes(placeholder)) return this.#packer.pack(bytes);
    const values: string[] = [];
    const text = bytes.toString('latin1').replace(ownValues, (_, before: string, value: string) => {
      values.push(value);
      return `${before}${placeholder}`;
    });
    const template = this.#templates.get(text);
    if (template === undefined) {
      this.#templates.set(text, {});
      return this.#packer.pack(bytes);
    }
    template.pieces ??= text.split(placeholder);
    return new FilledTemplate(template.pieces, values.join(placeholder));
  }
}
