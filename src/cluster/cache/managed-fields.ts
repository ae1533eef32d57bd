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

/** Templates that are tried before the template is looked up by its text, which takes ten times as long. */
const maxRecent = 4;

/** The pieces of bytes between their own values. */
class Template {
  readonly #pieces: readonly Buffer[];

  constructor(text: string) {
    this.#pieces = text.split(placeholder).map((piece) => Buffer.from(piece, 'latin1'));
  }

  /** Returns the bytes as this template with its own values; undefined if the bytes differ from the pieces. */
  match(bytes: Buffer): Packed | undefined {
    const values: string[] = [];
    let at = 0;
    for (const [index, piece] of this.#pieces.entries()) {
      if (index > 0) {
        const end = bytes.indexOf(piece[0] ?? 0, at);
        if (end === -1) return undefined;
        values.push(bytes.toString('latin1', at, end));
        at = end;
      }
      const end = at + piece.length;
      if (end > bytes.length || bytes.compare(piece, 0, piece.length, at, end) !== 0) return undefined;
      at = end;
    }
    return at === bytes.length ? new FilledTemplate(this.#pieces, values.join(placeholder)) : undefined;
  }
}

class FilledTemplate implements Packed {
  readonly #pieces: readonly Buffer[];
  readonly #values: string;

  constructor(pieces: readonly Buffer[], values: string) {
    this.#pieces = pieces;
    this.#values = values;
  }

  get size(): number {
    return this.#values.length;
  }

  get bytes(): Buffer {
    const values = this.#values.split(placeholder);
    return Buffer.concat(
      this.#pieces.flatMap((piece, index) =>
        index === 0 ? [piece] : [Buffer.from(values[index - 1] ?? '', 'latin1'), piece],
      ),
    );
  }
}

export class ManagedFields {
  /** Templates by their text. The pieces are made when a second object uses the template. */
  readonly #templates = new LRUCache<string, { template: Template | undefined }>({
    maxSize: maxTemplates,
    sizeCalculation: (_, text) => text.length + 1,
  });
  /** Templates that were used last, latest first. */
  #recent: readonly Template[] = [];
  readonly #packer = new Packer();

  /** Returns the packed bytes: only the object's own values if the template is known, otherwise the deflated text. */
  pack(bytes: Buffer): Packed {
    if (bytes.includes(placeholder)) return this.#packer.pack(bytes);
    for (const template of this.#recent) {
      const filled = template.match(bytes);
      if (filled !== undefined) return filled;
    }
    const text = bytes.toString('latin1').replace(ownValues, (_, before: string) => `${before}${placeholder}`);
    const known = this.#templates.get(text);
    if (known === undefined) {
      this.#templates.set(text, { template: undefined });
      return this.#packer.pack(bytes);
    }
    known.template ??= new Template(text);
    this.#recent = [known.template, ...this.#recent].slice(0, maxRecent);
    return known.template.match(bytes) ?? this.#packer.pack(bytes);
  }
}
